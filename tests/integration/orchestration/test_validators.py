"""Dataset validators, from the manifest to the publish and Dagster's checks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

KEY = dg.AssetKey(["shop", "orders"])
EVERY_MODE = ["append", "truncate", "upsert", "blue_green", "delete_missing", "scd2", "incremental_watermark"]
SEED_VALIDATORS = {
    "rowCount": {"min": 3, "max": 1000000, "onFail": "abort"},
    "freshness": {"withinHours": 24, "column": "updated_at", "onFail": "warn"},
    "fkIntegrity": {"column": "customer_id", "refTable": "raw.customers", "refColumn": "id", "onFail": "abort"},
    "cardinality": {"column": "country", "minDistinct": 5, "onFail": "warn"},
    "duplicateKey": {"columns": ["customer_id", "order_date"], "onFail": "abort"},
}


def evaluation(shop: ShopProject, check: str) -> dg.AssetCheckEvaluation:
    """The newest of the check, of whatever partition."""
    records = shop.instance.event_log_storage.get_asset_check_execution_history(dg.AssetCheckKey(KEY, check), limit=1)
    (record,) = records
    assert record.event is not None
    assert record.event.dagster_event is not None
    return record.event.dagster_event.asset_check_evaluation_data


def numbers(shop: ShopProject, check: str) -> dict[str, Any]:
    found = evaluation(shop, check).metadata
    return {name: value.value for name, value in found.items() if isinstance(value.value, int | float)}


def by_partition(shop: ShopProject, check: str) -> dict[str, bool]:
    records = shop.instance.event_log_storage.get_asset_check_execution_history(dg.AssetCheckKey(KEY, check), limit=20)
    events = [record.event.dagster_event for record in records if record.event is not None]
    found = [event.asset_check_evaluation_data for event in events if event is not None]
    return {one.partition: one.passed for one in found if one.partition is not None}


def contents(shop: ShopProject) -> list[tuple[Any, ...]]:
    return shop.rows("SELECT sum(hashtextextended(o::text, 0)), sum(xmin::text::bigint) FROM raw.orders o")


GATES = {
    "row_count": [{"max": 2}, {"scope": "table", "max": 2}],
    "duplicate_key": {"columns": ["code"]},
    "sql": {"statement": "SELECT code FROM {table} GROUP BY code HAVING count(*) > 1", "scope": "table"},
}


@pytest.mark.parametrize("mode", EVERY_MODE)
def test_a_gate_that_fails_leaves_the_target_as_it_was(csv_shop: Declare, mode: str) -> None:
    load = {"mode": mode} | ({"watermark_column": "id"} if mode == "incremental_watermark" else {})
    shop = csv_shop(primary_key=["id"], load=load, dataset_level=GATES)
    shop.file("data/orders/1.csv", "id,code\n1,1\n2,2\n")
    assert shop.apply()["orders"]["error"] is None
    before = contents(shop)
    shop.file("data/orders/2.csv", "id,code\n3,7\n4,7\n5,8\n")
    told = shop.apply()["orders"]
    assert told["chunks"]["failed"] == 1
    assert "nothing was published" in told["error"]
    assert contents(shop) == before
    for check in ("row_count", "table_row_count", "duplicate_key_code", "table_sql"):
        assert evaluation(shop, check).passed is False
        assert evaluation(shop, check).severity is dg.AssetCheckSeverity.ERROR
    shop.file("data/orders/2.csv", "id,code\n3,7\n")
    relaxed = csv_shop(primary_key=["id"], load=load)
    assert relaxed.apply()["orders"]["error"] is None
    assert len(relaxed.rows("SELECT DISTINCT id FROM raw.orders")) == 3


def test_what_only_warns_is_told_of_a_load_that_a_gate_stops(csv_shop: Declare) -> None:
    shop = csv_shop(
        row_level=[{"type": "range", "field": "id", "max": 1, "on_fail": "warn"}],
        dataset_level={"row_count": {"min": 3}, "null_ratio": {"column": "code", "on_fail": "warn"}},
    )
    shop.file("data/orders.csv", "id,code\n1,1\n2,\n")
    told = shop.apply()["orders"]
    assert "nothing was published: row_count: 2 row(s)" in told["error"]
    assert [text.partition(": ")[2] for text in told["warnings"]] == [
        "rule range_id: 1 of 2 row(s) break it, and it sets none of them aside",
        "validator null_ratio_code: 1 of 2 row(s) have no code (0.5) (expected: at most 0 of the rows have no code); "
        "it stops nothing",
    ]


def test_hooks_can_rebuild_what_validators_have_looked_at(csv_shop: Declare) -> None:
    """blue_green runs its post-hooks on the new table while the load is open."""
    post_hook = {"type": "sql", "statement": "REINDEX TABLE {table}"}
    duplicates = [{"columns": ["id"]}, {"columns": ["id"], "scope": "table"}]
    shop = csv_shop(load={"mode": "blue_green", "post_hook": post_hook}, dataset_level={"duplicate_key": duplicates})
    shop.file("data/orders.csv", "id,code\n1,1\n2,2\n")
    assert shop.apply()["orders"]["error"] is None


def test_the_validators_of_the_seed_all_report(shop: ShopProject) -> None:
    """A gate that fails does not keep the others from being asked."""
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
            "tables": ["customers", {"name": "orders", "datasetLevel": SEED_VALIDATORS}],
        }
    )
    shop.file("data/customers.csv", "id,name\n1,ann\n")
    shop.file(
        "data/orders.csv",
        "customer_id,order_date,country,updated_at\n1,2024-01-01,DE,2024-01-01\n7,2024-01-01,FR,2024-01-01\n"
        "1,2024-01-01,IT,2024-01-02\n",
    )
    told = shop.apply()["orders"]
    assert "fk_integrity_customer_id: 1 of 3 row(s) refer to what raw.customers does not hold: 7" in told["error"]
    assert "duplicate_key_customer_id_order_date: 2 of 3 row(s) share" in told["error"]
    assert numbers(shop, "row_count") == {"rows": 3}
    assert numbers(shop, "cardinality_country") == {"distinct": 3}
    assert numbers(shop, "fk_integrity_customer_id") == {"violations": 1, "rows": 3}
    passed = {check: evaluation(shop, check).passed for check in shop.checks}
    assert passed == {
        "no_rows_set_aside": True,
        "row_count": True,
        "freshness_updated_at": False,
        "fk_integrity_customer_id": False,
        "cardinality_country": False,
        "duplicate_key_customer_id_order_date": False,
    }
    assert shop.rows("SELECT count(*) FROM raw.orders") == [(0,)]


def test_a_validator_that_warns_publishes_and_is_told(csv_shop: Declare) -> None:
    shop = csv_shop(dataset_level={"null_ratio": {"column": "name", "max": 0.1, "on_fail": "warn"}})
    shop.file("data/orders.csv", "id,name\n1,\n2,b\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["error"]) == (2, None)
    assert any("validator null_ratio_name: 1 of 2 row(s) have no name (0.5)" in text for text in told["warnings"])
    assert evaluation(shop, "null_ratio_name").severity is dg.AssetCheckSeverity.WARN
    assert numbers(shop, "null_ratio_name") == {"nulls": 1, "rows": 2, "ratio": 0.5}


def test_each_chunk_is_asked_of_its_own_rows(csv_shop: Declare) -> None:
    """Read in one pass, and split among the windows."""
    shop = csv_shop(
        incremental="day",
        load={"mode": "append"},
        backfill={"window": "1mo"},
        dataset_level={
            "row_count": {"max": 2},
            "cardinality": {"column": "kind", "max_distinct": 1, "on_fail": "warn"},
            "duplicate_key": {"columns": ["id"], "on_fail": "warn"},
        },
    )
    shop.file(
        "data/orders.csv",
        "id,kind,day\n1,a,2024-01-01\n1,b,2024-01-02\n2,c,2024-02-01\n3,c,2024-02-02\n3,d,2024-03-01\n4,d,2024-03-02\n"
        "5,d,2024-03-03\n",
    )
    told = shop.apply()["orders"]
    assert (told["rows"], told["chunks"]["done"], told["chunks"]["failed"]) == (4, 2, 1)
    assert [text.partition(":")[0] for text in told["warnings"]] == ["chunk 2024-01", "chunk 2024-01"]
    assert "chunk 2024-03" in told["error"]
    assert "row_count: 3 row(s)" in told["error"]
    assert by_partition(shop, "row_count") == {"2024-01": True, "2024-02": True, "2024-03": False}
    assert by_partition(shop, "duplicate_key_id") == {"2024-01": False, "2024-02": True, "2024-03": True}


def test_history_need_not_be_fresh_but_the_last_window_must(csv_shop: Declare) -> None:
    shop = csv_shop(
        incremental="at",
        load={"mode": "append"},
        backfill={"window": "1mo"},
        dataset_level={"freshness": {"within_hours": 48, "column": "at"}},
    )
    now = datetime.now(UTC)
    old, fresh = "2024-01-01T00:00:00Z", (now - timedelta(hours=1)).isoformat()
    shop.file("data/orders.csv", f"id,at\n1,{old}\n2,2024-02-01T00:00:00Z\n")
    told = shop.apply()["orders"]
    assert (told["chunks"]["done"], told["chunks"]["failed"]) == (1, 1)
    assert "freshness_at: the newest is of 2024-02-01T00:00:00Z" in told["error"]
    shop.file("data/orders.csv", f"id,at\n1,{old}\n2,2024-02-01T00:00:00Z\n3,{fresh}\n")
    assert shop.apply()["orders"]["error"] is None
    assert shop.column("orders", "id") == [1, 2, 3]


def test_rows_that_rules_skip_are_not_asked_about(csv_shop: Declare) -> None:
    shop = csv_shop(
        rowLevel=[{"type": "not_null", "field": "name", "on_fail": "skip"}],
        dataset_level={"null_ratio": {"column": "name"}, "row_count": {"min": 2, "max": 2}},
    )
    shop.file("data/orders.csv", "id,name\n1,\n2,b\n3,c\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (2, 1, None)


def test_a_reference_that_is_not_there_yet_is_told_and_does_not_pass(csv_shop: Declare) -> None:
    fk = {"column": "id", "ref_table": "customers", "ref_column": "id"}
    shop = csv_shop(dataset_level={"fk_integrity": fk})
    shop.file("data/orders.csv", "id,name\n1,a\n")
    told = shop.apply()["orders"]
    assert "validator fk_integrity_id: raw.customers, to which id refers, does not exist yet" in told["warnings"]
    assert "fk_integrity_id: raw.customers does not exist" in told["error"]


def test_a_reference_to_another_type_is_refused_before_there_is_a_target(csv_shop: Declare) -> None:
    fk = {"column": "id", "ref_table": "customers", "ref_column": "id"}
    shop = csv_shop(dataset_level={"fk_integrity": fk})
    shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.customers (id text)")
    shop.file("data/orders.csv", "id,name\n1,a\n")
    error = shop.apply()["orders"]["error"]
    why = "operator does not exist: text = bigint, for id is bigint"
    cure = "give one of them the other's type (`columns` declares one), or refer to another column"
    assert f"validator fk_integrity_id: id cannot refer to raw.customers: {why}; {cure}" in error
    assert shop.rows("SELECT to_regclass('raw.orders') IS NULL") == [(True,)]
    fk["ref_column"] = "nr"
    shop.execute("ALTER TABLE raw.customers ADD nr bigint; INSERT INTO raw.customers VALUES ('a', 1)")
    csv_shop(dataset_level={"fk_integrity": fk})
    assert shop.apply()["orders"]["error"] is None


def test_a_reference_to_a_column_that_is_not_there_is_refused_before_anything_moves(csv_shop: Declare) -> None:
    fk = {"column": "id", "ref_table": "customers", "ref_column": "nope"}
    shop = csv_shop(dataset_level={"fk_integrity": fk, "cardinality": {"column": "gone", "min_distinct": 1}})
    shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.customers (id bigint)")
    shop.file("data/orders.csv", "id,name\n1,a\n")
    error = shop.apply()["orders"]["error"]
    told = 'id cannot refer to raw.customers: column "nope" does not exist; name one that it has as `ref_column`'
    assert f"validator fk_integrity_id: {told}" in error
    assert "validator cardinality_gone is about gone, which the source does not have" in error
    assert shop.rows("SELECT to_regclass('raw.orders')") == [(None,)]


def test_an_empty_load_is_asked_as_well(csv_shop: Declare) -> None:
    load = {"mode": "truncate", "fail_on_empty_source": False}
    shop = csv_shop(load=load, dataset_level={"row_count": {"min": 1}})
    shop.file("data/orders.csv", "id,name\n1,a\n")
    assert shop.apply()["orders"]["error"] is None
    shop.file("data/orders.csv", "id,name\n")
    assert "row_count: 0 row(s) (expected: at least 1 row(s))" in shop.apply()["orders"]["error"]
    assert shop.column("orders", "id") == [1]


def test_rows_that_rules_skip_do_not_stop_a_load_that_stops_at_rows_that_cannot_be_loaded(csv_shop: Declare) -> None:
    rule = {"type": "not_null", "field": "name", "on_fail": "skip"}
    shop = csv_shop(load={"bad_rows": "abort"}, columns={"id": "bigint"}, rowLevel=[rule])
    shop.file("data/orders.csv", "id,name\n1,\n2,b\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (1, 1, None)
    shop.file("data/orders.csv", "id,name\n1,\n2,b\nx,c\n")
    told = shop.apply()["orders"]
    assert '1 row(s) cannot be loaded, and load.bad_rows = "abort"; the first: `id` is no bigint' in told["error"]
    assert numbers(shop, "no_rows_set_aside") == {"rows": 1, "rows_set_aside": 2}
