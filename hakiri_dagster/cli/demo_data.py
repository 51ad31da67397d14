"""A made-up shop: customers (CSV), orders (Parquet, a file a month), order items (JSON lines, a file a month).

Every day of the shop is drawn from a seed of its own, so the shop of tomorrow is that of today and one day more:
months that are over never change. Some lines are broken on purpose, and some orders have no `updated_at`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

MONTHS = 24
CUSTOMERS = 2_000
_ORDERS_A_DAY = (26, 40)
_MAX_ORDERS_A_DAY = 100
_WITHOUT_UPDATE = 0.0005

_FIRST_NAMES = (
    "Anna Björn Chloé Dmitri Elif Fatima Grace Håkon Inés João Kaan Lucía Małgorzata Noël Olga Priya Quentin Renée "
    "Søren Thảo Uwe Věra William Ximena Yūki Zoë Akira Bjørk Carlos Deniz Émile Farah Giulia Henrik"
)
_LAST_NAMES = (
    "Åberg Brown Çelik Díaz Eriksen Fernández García Horváth Ivanov Jørgensen Kowalski Lefèvre Müller Nguyễn O'Neill "
    "Papadopoulos Quiñones Rossi Škoda Tanaka Ünal Vasiliev Weiß Xu Yildiz Žukauskas Sørensen Dvořák Gonçalves Smith"
)
_CITIES = (
    ("Zürich", "CH", "08001"),
    ("Kraków", "PL", "30001"),
    ("Boston", "US", "02134"),
    ("São Paulo", "BR", "01001"),
    ("København", "DK", "01050"),
    ("İzmir", "TR", "35000"),
    ("Leipzig", "DE", "04109"),
    ("Málaga", "ES", "29001"),
    ("Göteborg", "SE", "41101"),
    ("Kyōto", "JP", "60000"),
)
_PRODUCTS = (
    ("TEA-001", "Sencha, 100 g", "8.90"),
    ("TEA-002", "Darjeeling, 250 g", "14.50"),
    ("CUP-001", "Cup, white", "6.00"),
    ("CUP-002", 'Cup, 3½", glazed', "11.25"),
    ("POT-001", "Cast-iron pot", "49.00"),
    ("POT-002", "Glass pot", "24.95"),
    ("TIN-001", "Tea tin", "4.75"),
    ("SPN-001", "Spoon, cherry wood", "3.20"),
    ("BOX-001", "Gift box «Fête»", "19.90"),
    ("FLT-001", "Paper filters, 100", "5.10"),
)
_STATUSES = ("delivered", "delivered", "delivered", "shipped", "paid", "cancelled")
_BROKEN_CUSTOMERS = (
    "2001,Ada Lovelace",
    "2002,Karl Ångström,karl@example.com,Uppsala,SE,75105,2021-02-30",
    "2003,Grace Hopper,grace@example.com,New York,US,10001,2020-12-09,navy",
)
_BROKEN_ITEM = '{"order_id": 1, "line": 1, "sku": "TEA-001", "quantity"'

_ORDER_SCHEMA = pa.schema(
    [
        ("order_id", pa.int64()),
        ("customer_id", pa.int64()),
        ("status", pa.string()),
        ("total", pa.decimal128(10, 2)),
        ("ordered_at", pa.timestamp("us", "UTC")),
        ("updated_at", pa.timestamp("us", "UTC")),
    ]
)


@dataclass(frozen=True, slots=True)
class _Item:
    order_id: int
    line: int
    sku: str
    product: str
    quantity: int
    unit_price: Decimal
    gift: bool

    def as_json(self) -> str:
        return json.dumps(
            {
                "order_id": self.order_id,
                "line": self.line,
                "sku": self.sku,
                "quantity": self.quantity,
                "unit_price": float(self.unit_price),
                "options": {"product": self.product, "gift": self.gift},
            },
            ensure_ascii=False,
        )


@dataclass(frozen=True, slots=True)
class _Order:
    order_id: int
    customer_id: int
    status: str
    ordered_at: datetime
    updated_at: datetime | None
    items: tuple[_Item, ...]

    @property
    def total(self) -> Decimal:
        return sum((item.quantity * item.unit_price for item in self.items), Decimal("0.00"))


def write_shop_data(directory: Path, today: date) -> None:
    """Writes only what is not there yet as it should be, so that a second run has nothing new to load."""
    _put(directory / "customers.csv", _customers())
    for month, days in _months(today):
        orders = [order for day in days for order in _orders(day)]
        _put(directory / "orders" / f"{month}.parquet", _parquet(orders))
        _put(directory / "order_items" / f"{month}.jsonl", _json_lines(month, orders))


def _put(path: Path, contents: bytes) -> None:
    if path.exists() and path.read_bytes() == contents:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    unfinished.write_bytes(contents)
    unfinished.replace(path)


def _months(today: date) -> Iterator[tuple[str, list[date]]]:
    """Months with their days, up to and including today."""
    last = today.year * 12 + today.month - 1
    for number in range(last - MONTHS + 1, last + 1):
        first = date(number // 12, number % 12 + 1, 1)
        following = date((number + 1) // 12, (number + 1) % 12 + 1, 1)
        end = min(following, today + timedelta(days=1))
        yield f"{first:%Y-%m}", [first + timedelta(days=n) for n in range((end - first).days)]


def _customers() -> bytes:
    random = Random("customers")
    first_names, last_names = _FIRST_NAMES.split(), _LAST_NAMES.split()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["customer_id", "name", "email", "city", "country", "zip", "signed_up"])
    broken = {random.randrange(CUSTOMERS): line for line in _BROKEN_CUSTOMERS}
    for number in range(1, CUSTOMERS + 1):
        first, last = random.choice(first_names), random.choice(last_names)
        city, country, zip_code = random.choice(_CITIES)
        signed_up = date(2019, 1, 1) + timedelta(days=random.randrange(1_500))
        writer.writerow([number, f"{first} {last}", f"user{number}@example.com", city, country, zip_code, signed_up])
        if number in broken:
            text.write(broken[number] + "\n")
    return text.getvalue().encode()


def _orders(day: date) -> Iterator[_Order]:
    random = Random(f"orders of {day}")
    midnight = datetime.combine(day, time(), UTC)
    for number in range(random.randint(*_ORDERS_A_DAY)):
        ordered_at = midnight + timedelta(seconds=random.randrange(80_000))
        updated_at = ordered_at + timedelta(seconds=random.randrange(6_000))
        order_id = day.toordinal() * _MAX_ORDERS_A_DAY + number
        yield _Order(
            order_id=order_id,
            customer_id=random.randint(1, CUSTOMERS),
            status=random.choice(_STATUSES),
            ordered_at=ordered_at,
            updated_at=None if random.random() < _WITHOUT_UPDATE else updated_at,
            items=tuple(_items(order_id, random)),
        )


def _items(order_id: int, random: Random) -> Iterator[_Item]:
    for line, (sku, product, price) in enumerate(random.sample(_PRODUCTS, random.choice((1, 2, 2, 3, 4))), 1):
        yield _Item(order_id, line, sku, product, random.randint(1, 4), Decimal(price), random.random() < 0.1)


def _parquet(orders: list[_Order]) -> bytes:
    columns = {name: [getattr(order, name) for order in orders] for name in _ORDER_SCHEMA.names}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns, schema=_ORDER_SCHEMA), sink)
    return sink.getvalue()


def _json_lines(month: str, orders: list[_Order]) -> bytes:
    lines = [item.as_json() for order in orders for item in order.items]
    random = Random(f"items of {month}")
    if random.random() < 0.25:
        lines.insert(random.randrange(20), _BROKEN_ITEM)
    return ("\n".join(lines) + "\n").encode()
