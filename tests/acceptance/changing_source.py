"""A source that changes while nobody looks, and what a target must hold after any number of loads of it."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from tests.acceptance.command_line import ProjectFolder

MONTHS = 8
Row = tuple[Any, ...]
_BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
_NOTES = ("plain", 'with "quotes", and a comma', "ünïcödé 🫖", "a\ttab", "back\\slash")
_FILES = 3
_ROWS_A_FILE = 3_000
_ORDERS = 8_000
_PRODUCTS = 2_000

EVENTS = pa.schema([("event_id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("note", pa.string())])


class ChangingSource:
    """Events as CSV, readings as Parquet (both appended by month), orders (upsert) and products (truncate)."""

    TARGETS = ("events", "readings", "orders", "products")
    APPENDED = ("events", "readings")

    def __init__(self, project: ProjectFolder, url: str, random: Random) -> None:
        self._project = project
        self._url = url
        self._random = random
        self._next_id = 1
        self._latest = _BEGIN + timedelta(days=30 * MONTHS)
        self._files: dict[str, dict[str, list[Row]]] = {"events": {}, "readings": {}}

    def begin(self) -> None:
        self._declare()
        for table, files in self._files.items():
            for number in range(_FILES):
                files[f"{number}"] = self._rows(_ROWS_A_FILE)
                self._write(table, f"{number}")
        with psycopg.connect(self._url) as connection:
            connection.execute(
                "CREATE TABLE orders (order_id bigint PRIMARY KEY, updated_at timestamptz NOT NULL, note text)"
            )
            connection.execute("CREATE TABLE products (sku text, price numeric(10, 2))")
        self._insert_orders(_ORDERS)
        self._replace_products()

    def change(self) -> list[str]:
        """Two or three changes; answers what they were."""
        kinds = [
            self._a_new_file, self._a_rewritten_file, self._new_orders, self._updated_orders, self._ties,
            self._replace_products,
        ]  # fmt: skip
        return [kind() for kind in self._random.sample(kinds, self._random.randint(2, 3))]

    def expected(self, target: str) -> Counter[Row]:
        if target in self._files:
            return Counter(row for rows in self._files[target].values() for row in rows)
        query = {
            "orders": "SELECT order_id, updated_at, note FROM orders",
            "products": "SELECT sku, price FROM products",
        }[target]
        with psycopg.connect(self._url) as connection:
            return Counter(connection.execute(query.encode()).fetchall())

    @staticmethod
    def actual(connection: psycopg.Connection[Any], target: str) -> Counter[Row]:
        columns = {
            "events": "event_id, at, note", "readings": "event_id, at, note",
            "orders": "order_id, updated_at, note", "products": "sku, price",
        }[target]  # fmt: skip
        return Counter(connection.execute(f"SELECT {columns} FROM raw.{target}".encode()).fetchall())

    def _declare(self) -> None:
        landing = {"connector": "postgres", "config": {"schema": "raw"}}
        typed = {"event_id": "bigint", "at": "timestamptz", "note": "text"}
        for table, form in (("events", "csv"), ("readings", "parquet")):
            columns = {"columns": typed} if form == "csv" else {}
            self._project.pipeline(
                {
                    "id": table,
                    "source": {"connector": "files", "config": {"path": "data", "format": form}},
                    "destination": landing,
                    "incremental": "at",
                    "tables": [{"name": table, "path": f"data/{table}/", "load": {"mode": "append"}} | columns],
                }
            )
        self._project.pipeline(
            {
                "id": "shop",
                "source": {"connector": "postgres", "config": {"url": "${SHOP_URL}", "schema": "public"}},
                "destination": landing,
                "tables": [
                    {
                        "name": "orders",
                        "primary_key": ["order_id"],
                        "incremental": "updated_at",
                        "load": {"mode": "upsert"},
                    },
                    {"name": "products", "load": {"mode": "truncate"}},
                ],
            }
        )
        self._project.env["SHOP_URL"] = self._url

    def _a_new_file(self) -> str:
        table = self._random.choice(self.APPENDED)
        name = f"{len(self._files[table])}"
        self._files[table][name] = self._rows(_ROWS_A_FILE // 4, months=2)
        self._write(table, name)
        return f"new {table}/{name}"

    def _a_rewritten_file(self) -> str:
        table = self._random.choice(self.APPENDED)
        name = self._random.choice(list(self._files[table]))
        rows = self._files[table][name]
        kept = self._random.sample(rows, k=len(rows) * 2 // 3)
        self._files[table][name] = [*kept, *self._rows(50)]
        self._write(table, name)
        return f"rewritten {table}/{name}"

    def _new_orders(self) -> str:
        self._latest += timedelta(hours=self._random.randint(1, 24 * 20))
        self._insert_orders(500, not_before=self._latest)
        return "new orders"

    def _updated_orders(self) -> str:
        self._latest += timedelta(hours=1)
        changed = [(self._latest, f"updated {self._latest:%d %H}", number) for number in self._some_orders(300)]
        self._many("UPDATE orders SET updated_at = %s, note = %s WHERE order_id = %s", changed)
        return "updated orders"

    def _ties(self) -> str:
        """Rows that share the highest mark, added after it was committed."""
        with psycopg.connect(self._url) as connection:
            (highest,) = connection.execute("SELECT max(updated_at) FROM orders").fetchone() or (None,)
        self._many("INSERT INTO orders VALUES (%s, %s, 'a tie')", [(self._id(), highest) for _ in range(20)])
        return "ties"

    def _replace_products(self) -> str:
        priced = [(f"sku {number}", self._random.randint(1, 99_999) / 100) for number in range(_PRODUCTS)]
        with psycopg.connect(self._url) as connection:
            connection.execute("TRUNCATE products")
            connection.cursor().executemany("INSERT INTO products VALUES (%s, %s)", priced)
        return "other products"

    def _insert_orders(self, count: int, not_before: datetime = _BEGIN) -> None:
        span = (self._latest - not_before).total_seconds()
        rows = [
            (self._id(), not_before + timedelta(seconds=self._random.randint(0, int(span))), self._note())
            for _ in range(count)
        ]
        self._latest = max(self._latest, *(row[1] for row in rows))
        self._many("INSERT INTO orders VALUES (%s, %s, %s)", rows)

    def _many(self, statement: str, rows: Sequence[Row]) -> None:
        with psycopg.connect(self._url) as connection:
            connection.cursor().executemany(statement.encode(), rows)

    def _some_orders(self, count: int) -> list[int]:
        with psycopg.connect(self._url) as connection:
            numbers = [number for (number,) in connection.execute("SELECT order_id FROM orders ORDER BY 1")]
        return self._random.sample(numbers, count)

    def _rows(self, count: int, months: int = MONTHS) -> list[Row]:
        """Some share a moment, some have none."""
        begin = _BEGIN + timedelta(days=30 * self._random.randint(0, MONTHS - months))
        moments = [begin + timedelta(minutes=self._random.randint(0, 30 * months * 1440)) for _ in range(count // 2)]
        return [(self._id(), self._random.choice([*moments[:200], None]), self._note()) for _ in range(count)]

    def _note(self) -> str:
        return self._random.choice(_NOTES)

    def _id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _write(self, table: str, name: str) -> None:
        rows = self._files[table][name]
        if table == "events":
            self._replace_file(f"data/events/{name}.csv", _csv(rows))
        else:
            self._replace_file(f"data/readings/{name}.parquet", _parquet(rows))

    def _replace_file(self, name: str, contents: bytes) -> None:
        """As a careful exporter does it: nobody reads half a file."""
        final = self._project.root / name
        self._project.file(str(final.with_name(f".{final.name}")), contents).replace(final)


def _csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(EVENTS.names)
    writer.writerows((number, "" if at is None else at.isoformat(), note) for number, at, note in rows)
    return text.getvalue().encode()


def _parquet(rows: Sequence[Row]) -> bytes:
    sink = io.BytesIO()
    arrays = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), EVENTS, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=EVENTS), sink, row_group_size=1_000)
    return sink.getvalue()
