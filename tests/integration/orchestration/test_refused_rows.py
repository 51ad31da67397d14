"""Rows that the destination itself refuses, from the source to the quarantine table and the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.destinations.contract import Candidate, LedgerEntry, Load, PreparedLoad
from hakiri_dagster.destinations.postgres import refused_rows
from hakiri_dagster.destinations.postgres.destination import PostgresDestination
from hakiri_dagster.errors import DestinationUnavailable
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

KEPT = 'SELECT "ruleId", "onFail", "row"->>\'id\' FROM hakiri.quarantine_shop_orders ORDER BY 3'
CHEAP = "ALTER TABLE raw.orders ADD CONSTRAINT cheap CHECK (price < 100) NOT VALID"
MODES = ["append", "upsert", "truncate", "blue_green", "delete_missing", "scd2"]


@pytest.fixture
def cheap_shop(csv_shop: Declare) -> Callable[..., ShopProject]:
    """One row is loaded; from then on the target takes cheap ones only."""

    def make(mode: str = "append", load: dict[str, Any] | None = None, **table: Any) -> ShopProject:
        shop = csv_shop(path="data/orders/", primary_key=["id"], load={"mode": mode} | (load or {}), **table)
        shop.file("data/orders/a.csv", "id,price\n1,10\n")
        assert shop.apply()["orders"]["error"] is None
        shop.execute(CHEAP)
        return shop

    return make


def set_aside_check(shop: ShopProject) -> tuple[bool, dict[str, Any]]:
    key = dg.AssetCheckKey(dg.AssetKey(["shop", "orders"]), "no_rows_set_aside")
    record = shop.instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
    evaluation = record.event.dagster_event.asset_check_evaluation_data  # type: ignore[union-attr]
    return evaluation.passed, {name: value.value for name, value in evaluation.metadata.items()}


@pytest.mark.parametrize("mode", MODES)
def test_refused_rows_are_kept_and_counted_everywhere(cheap_shop: Declare, mode: str) -> None:
    rule = {"type": "range", "field": "id", "max": 90, "on_fail": "skip"}
    shop = cheap_shop(mode, row_level=[rule])
    shop.file("data/orders/a.csv", "id,price\n1,10\n2,200\n3,30\n4,400\n99,1\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (2, 3, None)
    assert any("3 row(s) set aside, kept in hakiri.quarantine_shop_orders" in text for text in told["warnings"])
    assert shop.rows(KEPT) == [
        ("refused_by_destination", "skip", "2"),
        ("refused_by_destination", "skip", "4"),
        ("range_id", "skip", "99"),
    ]
    ((message, row, source_file),) = shop.rows(
        'SELECT message, "row", "sourceFile" FROM hakiri.quarantine_shop_orders WHERE "row"->>\'id\' = \'2\''
    )
    assert message == 'new row for relation "orders" violates check constraint "cheap"' or mode == "blue_green"
    assert row == {"id": 2, "price": 200}
    assert source_file.endswith("data/orders/a.csv")
    assert shop.column("orders", "id") == [1, 3]
    passed, numbers = set_aside_check(shop)
    assert (passed, numbers["rows"], numbers["rows_set_aside"]) == (False, 2, 3)
    assert shop.rows("SELECT rows FROM hakiri.ledger ORDER BY load_id DESC LIMIT 1") == [(2,)]
    assert shop.apply()["orders"]["chunks"]["done"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_where_bad_rows_abort_the_first_of_them_is_named_and_all_are_kept(cheap_shop: Declare, mode: str) -> None:
    shop = cheap_shop(mode, load={"bad_rows": "abort"})
    before = shop.rows("SELECT sum(hashtextextended(o::text, 0)), sum(xmin::text::bigint) FROM raw.orders o")
    shop.file("data/orders/a.csv", "id,price\n1,10\n2,200\n3,30\n4,400\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["chunks"]["failed"]) == (0, 1)
    assert '2 row(s) cannot be loaded, and load.bad_rows = "abort"; the first: new row for relation' in told["error"]
    assert 'violates check constraint "cheap"' in told["error"]
    assert [id_ for _, _, id_ in shop.rows(KEPT)] == ["2", "4"]
    assert shop.rows("SELECT sum(hashtextextended(o::text, 0)), sum(xmin::text::bigint) FROM raw.orders o") == before
    shop.execute("ALTER TABLE raw.orders DROP CONSTRAINT cheap")
    assert shop.apply()["orders"]["error"] is None
    assert shop.column("orders", "id") == [1, 2, 3, 4]
    assert shop.rows(KEPT) == []


def test_nothing_is_deleted_for_being_missing_while_rows_are_refused(cheap_shop: Declare) -> None:
    shop = cheap_shop("delete_missing")
    shop.file("data/orders/a.csv", "id,price\n2,200\n3,30\n")
    told = shop.apply()["orders"]
    kept = "nothing was deleted, because 1 row(s) of the source were set aside"
    assert any(kept in text for text in told["warnings"])
    assert shop.column("orders", "id") == [1, 3]


@pytest.mark.parametrize("mode", MODES)
def test_a_chunk_of_which_every_row_is_refused_fails(cheap_shop: Declare, mode: str) -> None:
    shop = cheap_shop(mode)
    shop.file("data/orders/a.csv", "id,price\n2,200\n3,300\n")
    told = shop.apply()["orders"]
    assert "none of 2 row(s) can be loaded, so nothing was changed; the first: new row for relation" in told["error"]
    assert [id_ for _, _, id_ in shop.rows(KEPT)] == ["2", "3"]
    assert shop.column("orders", "id") == [1]


def test_rows_of_windows_are_from_the_files_that_their_hash_tells(csv_shop: Declare) -> None:
    shop = csv_shop(path="data/orders/", incremental="day", columns={"day": "date"})
    shop.file("data/orders/a.csv", "id,day,price\n1,2026-01-05,1\n2,2026-02-05,1\n")
    shop.file("data/orders/b.csv", "id,day,price\n3,2026-01-06,1\n4,2026-02-06,1\n")
    shop.apply()
    shop.execute(CHEAP)
    shop.file("data/orders/a.csv", "id,day,price\n1,2026-01-05,1\n2,2026-02-05,200\n")
    shop.file("data/orders/b.csv", "id,day,price\n3,2026-01-06,300\n4,2026-02-06,1\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (2, 2, None)
    kept = shop.rows(
        'SELECT "row"->>\'id\', "chunkKey", right("sourceFile", 5) FROM hakiri.quarantine_shop_orders ORDER BY 1'
    )
    assert kept == [("2", "2026-02", "a.csv"), ("3", "2026-01", "b.csv")]
    assert shop.column("orders", "id") == [1, 4]


def test_a_search_that_leads_nowhere_is_given_up(cheap_shop: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_rows, "MOST_REFUSED", 5)
    shop = cheap_shop("upsert")
    shop.file("data/orders/a.csv", "id,price\n1,10\n" + "".join(f"{number},200\n" for number in range(2, 50)))
    told = shop.apply()["orders"]
    assert "PostgreSQL refuses more than 5 rows of the load, and the search for others was given up" in told["error"]
    assert "those found are kept in hakiri.quarantine_shop_orders" in told["error"]
    assert [id_ for _, _, id_ in shop.rows(KEPT)] == ["2", "3", "4", "5", "6", "7"]
    assert shop.column("orders", "price") == [10]


def test_with_the_quarantine_off_they_are_counted_and_told(cheap_shop: Declare) -> None:
    shop = cheap_shop(validate={"quarantine": {"enabled": False}})
    shop.file("data/orders/a.csv", "id,price\n1,10\n2,200\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"]) == (1, 1)
    assert any("1 row(s) set aside, not kept, because quarantine is off" in text for text in told["warnings"])


def test_what_is_refused_at_another_try_to_publish_is_kept_instead(
    cheap_shop: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost at the commit, and meanwhile the constraint has changed."""
    shop = cheap_shop("append")
    prepare, tried = PostgresDestination.prepare, list[Load]()

    class Lost:
        def __init__(self, load: PreparedLoad) -> None:
            self._load = load

        def __getattr__(self, name: str) -> Any:
            return getattr(self._load, name)

        def publish(self, *_args: object) -> LedgerEntry:
            self._load.undo()
            shop.execute("ALTER TABLE raw.orders DROP CONSTRAINT cheap")
            shop.execute("ALTER TABLE raw.orders ADD CONSTRAINT dear CHECK (price > 20) NOT VALID")
            raise DestinationUnavailable("the connection was lost")

    def losing(destination: PostgresDestination, load: Load, candidate: Candidate) -> Any:
        tried.append(load)
        prepared = prepare(destination, load, candidate)
        return Lost(prepared) if len(tried) == 1 else prepared

    monkeypatch.setattr(PostgresDestination, "prepare", losing)
    shop.file("data/orders/a.csv", "id,price\n1,10\n2,200\n3,30\n4,400\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (3, 1, None)
    assert [id_ for _, _, id_ in shop.rows(KEPT)] == ["1"]
    assert shop.column("orders", "id") == [2, 3, 4]


@pytest.mark.parametrize("mode", ["append", "upsert", "incremental_watermark", "scd2"])
def test_a_table_whose_newest_row_is_refused_converges(shop: ShopProject, mode: str) -> None:
    shop.execute("CREATE SCHEMA src; CREATE TABLE src.orders (id int PRIMARY KEY, price int, at timestamp)")
    shop.execute("INSERT INTO src.orders VALUES (1, 1, '2026-01-01'), (2, 2, '2026-01-02')")
    load = {"mode": mode} | ({"watermark_column": "at"} if mode == "incremental_watermark" else {})
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}},
            "tables": [{"name": "orders", "primary_key": ["id"], "incremental": "at", "load": load}],
        }
    )
    assert shop.apply()["orders"]["error"] is None
    shop.execute(CHEAP)
    shop.execute("INSERT INTO src.orders VALUES (3, 3, '2026-01-03'), (4, 400, '2026-01-04')")
    told = shop.apply()["orders"]
    assert (told["quarantined"], told["error"]) == (1, None)
    assert shop.apply()["orders"]["chunks"]["done"] == 0
    assert shop.column("orders", "id") == [1, 2, 3]
    shop.execute("INSERT INTO src.orders VALUES (5, 5, '2026-01-05')")
    assert shop.apply()["orders"]["error"] is None
    assert shop.column("orders", "id") == [1, 2, 3, 5]
    assert {id_ for _, _, id_ in shop.rows(KEPT)} == {"4"}  # read again at the mark, it was refused by either load
