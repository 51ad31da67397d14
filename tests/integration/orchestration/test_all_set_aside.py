"""A chunk of which no row is left: it fails, whatever its load mode, unless the manifest allows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

KEPT = "SELECT \"row\"->>'id' FROM hakiri.quarantine_shop_orders ORDER BY 1"
PAID = {"type": "regex", "field": "state", "pattern": "^paid$", "on_fail": "skip"}
OF_EVERY_KIND: dict[str, Any] = {
    "row_count": [{"min": 1}, {"scope": "table", "min": 3, "max": 3}],
    "freshness": {"column": "at", "within_hours": 1, "on_fail": "warn"},
    "fk_integrity": {"column": "id", "ref_table": "orders", "ref_column": "id"},
    "cardinality": {"column": "state", "min_distinct": 1, "on_fail": "warn"},
    "duplicate_key": {"columns": ["id"]},
    "null_ratio": {"column": "state", "max": 0.5},
    "accepted_values": {"column": "state", "values": ["paid"]},
    "range": {"column": "id", "max": 9},
    "schema_matches": {"columns": {"id": "bigint"}, "others": "allow"},
    "row_count_matches_source": {"checksum": True},
    "sql": {"statement": "SELECT id FROM {table}"},
}
FAILING = {"row_count", "freshness_at", "cardinality_state"}
WARNING = ["cardinality_state", "freshness_at"]
REPLACING = ["truncate", "blue_green", "delete_missing", "scd2"]
MODES = ["append", "upsert", *REPLACING]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("guard", [True, False])
def test_a_chunk_of_which_every_row_is_skipped_fails_and_keeps_them(csv_shop: Declare, mode: str, guard: bool) -> None:
    load = {"mode": mode, "fail_on_empty_source": guard}
    shop = csv_shop(primary_key=["id"], load=load, row_level=[PAID])
    shop.file("data/orders.csv", "id,state\n1,paid\n2,paid\n")
    assert shop.apply()["orders"]["error"] is None
    before = shop.rows("SELECT sum(hashtextextended(o::text, 0)), sum(xmin::text::bigint) FROM raw.orders o")
    shop.file("data/orders.csv", "id,state\n3,new\n4,new\n")
    told = shop.apply()["orders"]
    assert told["chunks"]["failed"] == 1
    assert "none of 2 row(s) can be loaded, so nothing was changed; the first: it does not hold" in told["error"]
    assert "they are kept in hakiri.quarantine_shop_orders" in told["error"]
    assert shop.rows("SELECT sum(hashtextextended(o::text, 0)), sum(xmin::text::bigint) FROM raw.orders o") == before
    assert shop.rows(KEPT) == [("3",), ("4",)]
    shop.file("data/orders.csv", "id,state\n3,new\n4,paid\n")
    assert (told := shop.apply()["orders"])["error"] is None
    assert (told["rows"], told["quarantined"]) == (1, 1)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_allowed_is_published_without_rows(csv_shop: Declare, mode: str) -> None:
    allowing: dict[str, Any] = {"validate": {"row_level": [PAID], "quarantine": {"allow_all": True}}}
    shop = csv_shop(primary_key=["id"], load={"mode": mode, "fail_on_empty_source": False}, **allowing)
    shop.file("data/orders.csv", "id,state\n3,new\n4,new\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (0, 2, None)
    assert shop.rows(KEPT) == [("3",), ("4",)]
    assert shop.apply()["orders"]["chunks"]["done"] == 0


@pytest.mark.parametrize("mode", REPLACING)
def test_what_is_allowed_does_not_empty_a_target_that_must_not_be_emptied(csv_shop: Declare, mode: str) -> None:
    allowing: dict[str, Any] = {"validate": {"row_level": [PAID], "quarantine": {"allowAll": True}}}
    shop = csv_shop(primary_key=["id"], load={"mode": mode}, **allowing)
    shop.file("data/orders.csv", "id,state\n1,paid\n")
    assert shop.apply()["orders"]["error"] is None
    shop.file("data/orders.csv", "id,state\n3,new\n")
    error = shop.apply()["orders"]["error"]
    assert "none of 1 row(s) can be loaded" in error
    assert "allow_all" not in error
    assert shop.column("orders", "id") == [1]


def test_other_chunks_go_on(csv_shop: Declare) -> None:
    shop = csv_shop(path="data/orders/", row_level=[PAID])
    shop.file("data/orders/a.csv", "id,state\n1,new\n")
    shop.file("data/orders/b.csv", "id,state\n2,paid\n")
    told = shop.apply()["orders"]
    assert (told["chunks"]["done"], told["chunks"]["failed"]) == (1, 1)
    assert shop.column("orders", "id") == [2]


def test_lines_that_belong_to_no_chunk_fail_none(csv_shop: Declare) -> None:
    """They are kept with the rows without a cursor, of which there may be none."""
    shop = csv_shop(incremental="day", columns={"day": "date"})
    shop.file("data/orders.csv", "id,day\n1,2026-01-05\n2,2026-02-05,too,many\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (1, 1, None)
    shop.again("orders", "2026-01")
    assert shop.column("orders", "id") == [1]


def test_a_table_of_nothing_but_such_lines_fails(csv_shop: Declare) -> None:
    shop = csv_shop(incremental="day", columns={"day": "date"})
    shop.file("data/orders.csv", "id,day\n1,2026-01-05,too,many\n2,2026-02-05,too,many\n")
    assert "none of 2 row(s) can be loaded" in shop.apply()["orders"]["error"]


def test_rows_without_a_cursor_may_all_be_set_aside(csv_shop: Declare) -> None:
    shop = csv_shop(incremental="day", columns={"day": "date"}, row_level=[PAID])
    shop.file("data/orders.csv", "id,day,state\n1,2026-01-05,paid\n2,,new\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (1, 1, None)


@pytest.mark.parametrize("mode", REPLACING)
@pytest.mark.parametrize("rows", ["", "3,new,2026-01-01\n4,new,2026-01-01\n"])
def test_all_validators_report_of_no_rows(csv_shop: Declare, mode: str, rows: str) -> None:
    """Of the load; of the table they report as it stays."""
    settings: dict[str, Any] = {"primary_key": ["id"], "load": {"mode": mode}, "columns": {"at": "timestamp"}}
    shop = csv_shop(**settings)
    shop.file("data/orders.csv", "id,state,at\n1,paid,2026-01-01\n2,paid,2026-01-01\n5,paid,2026-01-01\n")
    assert shop.apply()["orders"]["error"] is None
    csv_shop(**settings, row_level=[PAID], dataset_level=OF_EVERY_KIND)
    shop.file("data/orders.csv", f"id,state,at\n{rows}")
    failed = shop.apply()["orders"]
    assert failed["chunks"]["failed"] == 1
    assert [
        name for name in sorted(FAILING) if any(f"validator {name}:" in text for text in failed["warnings"])
    ] == WARNING
    told = {check: evaluation(shop, check) for check in shop.checks}
    assert len(told) == 2 + len(OF_EVERY_KIND) + 1
    set_aside = {"no_rows_set_aside", "regex_state"} if rows else set()
    assert {check for check, one in told.items() if not one.passed} == FAILING | set_aside
    assert told["row_count"].metadata["rows"].value == 0
    assert told["table_row_count"].metadata["rows"].value == 3


def evaluation(shop: ShopProject, check: str) -> dg.AssetCheckEvaluation:
    key = dg.AssetCheckKey(dg.AssetKey(["shop", "orders"]), check)
    record = shop.instance.get_latest_asset_check_evaluation_record(key)
    assert record is not None
    assert record.event is not None
    return record.event.asset_check_evaluation
