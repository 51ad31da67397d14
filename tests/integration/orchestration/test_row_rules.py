"""Row rules, from the manifest to the warehouse, the quarantine table and Dagster's checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.manifest.load_spec import WHOLE_TABLE_MODES
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

SEED_RULES = [
    {"type": "notNull", "field": "id", "onFail": "abort"},
    {"type": "regex", "field": "email", "pattern": "^.+@.+$", "onFail": "skip"},
    {"type": "range", "field": "age", "min": 0, "max": 150, "onFail": "warn"},
    {"type": "maxLength", "field": "name", "max": 5, "onFail": "skip"},
    {"type": "fieldType", "field": "code", "expected": "uuid", "onFail": "skip"},
]
KEPT = 'SELECT "ruleId", "onFail", "row"->>\'id\' FROM hakiri.quarantine_shop_orders ORDER BY 1, 3'
UUID = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
HEAD = "id,email,age,name,code\n"
GOOD = f"1,a@b,7,ann,{UUID}\n"


def checks(shop: ShopProject) -> dict[str, bool]:
    """The newest word of each of the table's checks."""
    key = dg.AssetKey(["shop", "orders"])
    records = shop.instance.event_log_storage.get_latest_asset_check_execution_by_key(
        [dg.AssetCheckKey(key, name) for name in ("not_null_id", "regex_email", "range_age", "max_length_name")]
    )
    return {
        check.name: record.event.dagster_event.asset_check_evaluation_data.passed  # type: ignore[union-attr]
        for check, record in records.items()
        if record.event is not None
    }


def test_rules_of_the_seed_skip_warn_and_pass(csv_shop: Declare) -> None:
    shop = csv_shop(rowLevel=SEED_RULES)
    bad = f"2,nobody,7,ann,{UUID}\n3,a@b,200,ann,{UUID}\n4,a@b,7,annabelle,{UUID}\n5,x,7,annabelle,no\n"
    shop.file("data/orders.csv", HEAD + GOOD + bad)
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (2, 3, None)
    assert any(
        "rule range_age: 1 of 5 row(s) break it, and it sets none of them aside" in warning
        for warning in told["warnings"]
    )
    assert shop.column("orders", "id") == [1, 3]
    assert shop.rows(KEPT) == [
        ("max_length_name", "skip", "4"),
        ("range_age", "warn", "3"),
        ("regex_email", "skip", "2"),
        ("regex_email", "skip", "5"),
    ]
    assert checks(shop) == {"not_null_id": True, "regex_email": False, "range_age": False, "max_length_name": False}


@pytest.mark.parametrize("mode", ["append", "truncate", "upsert", "blue_green", "delete_missing", "scd2"])
def test_a_rule_that_aborts_leaves_the_target_as_it_was(csv_shop: Declare, mode: str) -> None:
    shop = csv_shop(primary_key=["key"], load={"mode": mode}, rowLevel=[SEED_RULES[0]])
    shop.file("data/orders.csv", "key,id\n1,1\n2,2\n")
    assert shop.apply()["orders"]["error"] is None
    before = shop.rows("SELECT sum(hashtextextended(o::text, 0)), sum(xmin::text::bigint) FROM raw.orders o")
    shop.file("data/orders.csv", "key,id\n1,5\n2,\n3,\n")
    told = shop.apply()["orders"]
    assert told["chunks"]["failed"] == 1
    assert "not_null_id: 2 of 3 row(s) break it (id is not NULL)" in told["error"]
    assert shop.rows("SELECT sum(hashtextextended(o::text, 0)), sum(xmin::text::bigint) FROM raw.orders o") == before
    assert shop.rows('SELECT "onFail", count(*) FROM hakiri.quarantine_shop_orders GROUP BY 1') == [("abort", 2)]
    assert checks(shop)["not_null_id"] is False
    shop.file("data/orders.csv", "key,id\n1,5\n2,6\n")
    assert shop.apply()["orders"]["error"] is None
    if mode in WHOLE_TABLE_MODES:  # else the other contents of the file were another chunk
        assert shop.rows("SELECT count(*) FROM hakiri.quarantine_shop_orders") == [(0,)]


@pytest.mark.parametrize("limit", [{"max_failed_rows": 1}, {"max_failed_ratio": 0.4}])
def test_too_many_rows_to_skip_stop_the_publish(csv_shop: Declare, limit: dict[str, Any]) -> None:
    shop = csv_shop(rowLevel=[SEED_RULES[1] | limit])
    shop.file("data/orders.csv", "id,email\n1,a@b\n2,x\n3,y\n")
    told = shop.apply()["orders"]
    (name,) = limit
    assert f"regex_email: 2 of 3 row(s) break it (email matches ^.+@.+$), and {name} is {limit[name]}" in told["error"]
    assert shop.rows("SELECT count(*) FROM raw.orders") == [(0,)]
    shop.file("data/orders.csv", "id,email\n1,a@b\n2,x\n3,c@d\n")
    assert shop.apply()["orders"]["rows"] == 2


def test_a_rule_that_does_not_fit_its_column_is_refused_before_anything_moves(csv_shop: Declare) -> None:
    rules = [
        {"type": "range", "field": "name", "min": 0},
        {"type": "regex", "field": "nowhere", "pattern": "x"},
        {"type": "compare", "field": "id", "op": "<", "other": "name"},
    ]
    shop = csv_shop(rowLevel=rules)
    shop.file("data/orders.csv", "id,name\n1,a\n")
    error = shop.apply()["orders"]["error"]
    assert "rule range_name: name is text, and the bounds are numbers" in error
    assert "rule regex_nowhere is about nowhere, which the source does not have" in error
    assert "rule compare_id: id is bigint and name text" in error
    assert shop.rows("SELECT to_regclass('raw.orders')") == [(None,)]


def test_rules_see_rows_of_parquet_as_well(shop: ShopProject) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rule = {"type": "one_of", "field": "n", "values": [1, 2], "on_fail": "skip"}
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "parquet"}},
            "tables": [{"name": "orders", "row_level": [rule]}],
        }
    )
    pq.write_table(pa.table({"n": [1, 2, 3, None]}), shop.file("data/orders.parquet", b""))
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"]) == (3, 1)
    assert shop.rows("SELECT n FROM raw.orders ORDER BY n") == [(1,), (2,), (None,)]
