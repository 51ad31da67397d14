"""Loads whose rows somebody deleted: told where it is cheap, and never of a load whose rows are there."""

from __future__ import annotations

import pytest

from hakiri_dagster.destinations.postgres import vanished
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order, window


def loaded(shop: Shop, loads: int, rows: int = 1) -> list[int]:
    return [
        shop.publish([order(n * rows + i, updated_at=n * 10) for i in range(rows)], window(n * 10, n * 10 + 10)).load_id
        for n in range(loads)
    ]


@pytest.fixture
def shop(make_shop: MakeShop) -> Shop:
    return make_shop("append")


def gone(shop: Shop, loads: list[int]) -> list[int]:
    return sorted(shop.destination.without_rows(shop.table, loads))


def test_a_load_whose_rows_are_there_is_never_told(shop: Shop) -> None:
    loads = loaded(shop, 3)
    assert gone(shop, loads) == []
    shop.query(f"DELETE FROM raw.orders WHERE _hakiri_load_id IN ({loads[0]}, {loads[2]})")
    assert gone(shop, loads) == [loads[0], loads[2]]


@pytest.mark.parametrize("how", ["TRUNCATE raw.orders", "DELETE FROM raw.orders"])
@pytest.mark.parametrize("mode", ["append", "upsert", "truncate"])
def test_an_empty_target_has_lost_them_all(make_shop: MakeShop, mode: str, how: str) -> None:
    shop = make_shop(mode)
    loads = loaded(shop, 2) if mode != "truncate" else [shop.publish([order(1)]).load_id]
    assert gone(shop, loads) == []
    shop.query(how)
    assert gone(shop, loads) == loads


def test_where_rows_are_found_by_key_only_an_empty_target_tells(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    first = shop.publish([order(1, updated_at=1)], window(0, 10)).load_id
    second = shop.publish([order(1, updated_at=11)], window(10, 20)).load_id
    assert gone(shop, [first, second]) == [], "the second has taken the first one's row over, and the ledger knows both"


def test_of_a_large_target_a_sample_of_its_pages_and_the_index_tell(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vanished, "PAGES_READ", 1)
    loads = loaded(shop, 30, rows=50)
    shop.query(f"DELETE FROM raw.orders WHERE _hakiri_load_id = {loads[7]}")
    assert gone(shop, loads[:15]) == [loads[7]]
    shop.query(f"DELETE FROM raw.orders WHERE _hakiri_load_id < {loads[25]}")
    told = gone(shop, loads)
    assert told[0] == loads[0]
    assert set(told) <= set(loads[:25])
    assert len(told) <= vanished.LOOKED_FOR, "there are too many to look for each of them"


def test_partitions_are_looked_at_as_one(shop: Shop) -> None:
    shop.query(
        "CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint, customer text, amount numeric(10,2), updated_at bigint)"
        " PARTITION BY RANGE (updated_at)"
    )
    shop.query("CREATE TABLE raw.early PARTITION OF raw.orders FOR VALUES FROM (MINVALUE) TO (10)")
    shop.query("CREATE TABLE raw.late PARTITION OF raw.orders FOR VALUES FROM (10) TO (MAXVALUE)")
    loads = loaded(shop, 3)
    assert gone(shop, loads) == []
    shop.query("DROP TABLE raw.early")
    assert gone(shop, loads) == [loads[0]]
    shop.query("TRUNCATE raw.orders")
    assert gone(shop, loads) == loads


def test_what_takes_long_is_not_told(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    loads = loaded(shop, 2)
    shop.query(f"DELETE FROM raw.orders WHERE _hakiri_load_id = {loads[0]}")
    monkeypatch.setattr(vanished, "_PATIENCE", "1ms")
    monkeypatch.setattr(
        vanished, "_SAMPLE", "SELECT {load_id} FROM {target} TABLESAMPLE SYSTEM ({percent}), pg_sleep(1) -- {loads}"
    )
    assert gone(shop, loads) == []


def test_rows_of_loads_that_the_ledger_has_lost_are_known_by_their_ids(shop: Shop) -> None:
    loads = loaded(shop, 3)
    assert shop.destination.unknown_loads(shop.table) == ()
    shop.query(f"DELETE FROM hakiri.ledger WHERE load_id <> {loads[1]}")
    shop.query("INSERT INTO raw.orders (id) VALUES (99)")  # somebody else's
    assert shop.destination.unknown_loads(shop.table) == (loads[0], loads[2])


def test_a_target_of_somebody_else_holds_none(make_shop: MakeShop) -> None:
    shop = make_shop("append")
    shop.query("CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint); INSERT INTO raw.orders VALUES (1)")
    assert shop.destination.unknown_loads(shop.table) == ()
    assert gone(shop, [1]) == []
