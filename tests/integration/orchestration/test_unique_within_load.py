"""Rows whose values another row of the load has, from the manifest to the warehouse and the quarantine table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hakiri_dagster.connectors.postgres import snapshot
from hakiri_dagster.pipeline import key_plan, key_search, passes
from hakiri_dagster.pipeline.planner import table_plan
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]
ParquetShop = Callable[..., ShopProject]

UNIQUE = {"type": "unique_within_load", "field": "email", "on_fail": "skip"}
KEPT = 'SELECT "ruleId", "row"->>\'id\' FROM hakiri.quarantine_shop_orders ORDER BY 1, 2'


def test_every_row_of_a_group_is_set_aside_and_null_passes(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[UNIQUE])
    shop.file("data/orders.csv", "id,email\n1,a@b\n2,c@d\n3,a@b\n4,\n5,\n6,A@b\n7,a@b\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (4, 3, None)
    assert shop.column("orders", "id") == [2, 4, 5, 6]
    assert shop.rows(KEPT) == [("unique_within_load_email", id_) for id_ in "137"]
    assert shop.rows("SELECT DISTINCT message FROM hakiri.quarantine_shop_orders") == [
        ("it does not hold that email is unique within the load",)
    ]


def test_a_gate_publishes_nothing_and_a_warning_publishes_all(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[UNIQUE | {"on_fail": "abort"}])
    shop.file("data/orders.csv", "id,email\n1,a\n2,a\n3,b\n")
    error = shop.apply()["orders"]["error"]
    assert "unique_within_load_email: 2 of 3 row(s) break it (email is unique within the load)" in error
    assert shop.rows("SELECT count(*) FROM raw.orders") == [(0,)]
    csv_shop(row_level=[UNIQUE | {"on_fail": "warn"}])
    told = shop.apply()["orders"]
    assert (told["rows"], told["error"]) == (3, None)
    assert any("rule unique_within_load_email: 2 of 3 row(s) break it" in warning for warning in told["warnings"])


def test_a_threshold_counts_every_row_of_a_group(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[UNIQUE | {"max_failed_rows": 1}])
    shop.file("data/orders.csv", "id,email\n1,a\n2,a\n3,b\n")
    assert "2 of 3 row(s) break it" in shop.apply()["orders"]["error"]


def test_several_fields_are_one_key(csv_shop: Declare) -> None:
    rules = [{"type": "uniqueWithinLoad", "fields": ["a", "b"], "onFail": "skip"}, UNIQUE | {"field": "c"}]
    shop = csv_shop(row_level=rules)
    shop.file("data/orders.csv", "id,a,b,c\n1,x,yz,1\n2,xy,z,2\n3,x,yz,3\n4,x,,4\n5,x,,5\n6,p,q,6\n7,r,s,6\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"]) == (3, 4)
    assert shop.rows(KEPT) == [
        ("unique_within_load_a_b", "1"),
        ("unique_within_load_a_b", "3"),
        ("unique_within_load_c", "6"),
        ("unique_within_load_c", "7"),
    ]


def test_lines_that_cannot_be_read_do_not_count_and_rows_of_other_rules_do(csv_shop: Declare) -> None:
    shop = csv_shop(
        columns={"n": "integer"},
        row_level=[{"type": "range", "field": "n", "max": 10, "on_fail": "skip"}, UNIQUE],
    )
    shop.file("data/orders.csv", "id,email,n\n1,a,1\n2,a,x\n3,b,1\n4,b,99\n5,c,1\n")
    told = shop.apply()["orders"]
    assert shop.column("orders", "id") == [1, 5]
    assert told["quarantined"] == 3
    assert shop.rows(KEPT) == [
        ("malformed", None),
        ("range_n", "4"),
        ("unique_within_load_email", "3"),
    ]


def test_each_file_is_a_load_of_its_own(csv_shop: Declare) -> None:
    shop = csv_shop(path="data/*.csv", row_level=[UNIQUE])
    shop.file("data/one.csv", "id,email\n1,a\n2,b\n")
    shop.file("data/two.csv", "id,email\n3,a\n4,c\n5,c\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["chunks"]["done"]) == (3, 2, 2)
    assert shop.column("orders", "id") == [1, 2, 3]


@pytest.fixture
def parquet_shop(shop: ShopProject) -> ParquetShop:
    def declare(columns: dict[str, Any], *rules: dict[str, Any], **table: Any) -> ShopProject:
        shop.manifest(
            {
                "id": "shop",
                "source": {"connector": "files", "config": {"path": "data", "format": "parquet"}},
                "tables": [{"name": "orders", "row_level": list(rules)} | table],
            }
        )
        pq.write_table(pa.table(columns), shop.file("data/orders.parquet", b""), row_group_size=1000)
        return shop

    return declare


def test_windows_of_one_pass_are_told_apart(parquet_shop: ParquetShop) -> None:
    days = [date(2024, 1, 5), date(2024, 1, 6), date(2024, 2, 5), date(2024, 2, 6), date(2024, 2, 7)]
    shop = parquet_shop(
        {"id": [1, 2, 3, 4, 5], "day": days, "email": ["a", "b", "a", "c", "c"]},
        UNIQUE,
        incremental="day",
        backfill={"window": "1mo"},
    )
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["chunks"]["done"]) == (3, 2, 2)
    assert shop.column("orders", "id") == [1, 2, 3]


def test_many_runs_and_ranges_find_the_same(parquet_shop: ParquetShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_plan, "RUN_ROWS", 700)
    monkeypatch.setattr(key_search, "ranges_for", lambda _rows: 5)
    ids = list(range(20_000))
    shop = parquet_shop({"id": ids, "email": [f"user{n % 19_000}" for n in ids]}, UNIQUE)
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"]) == (18_000, 2000)
    assert shop.column("orders", "id") == list(range(1000, 19_000))


@pytest.mark.parametrize(
    "values",
    [
        [1.0, -0.0, 0.0, float("nan"), float("nan"), None],
        pa.array([b"a", b"b", b"b", b"c", b"c", None]),
        pa.array([True, False, False, None, None, None]),
        pa.array(["x", "y", "y", "z", "z", None]).dictionary_encode(),
        pa.array([1, 2, 2, 3, 3, None], pa.int16()),
    ],
)
def test_values_of_all_kinds_are_compared(parquet_shop: ParquetShop, values: Any) -> None:
    shop = parquet_shop({"id": list(range(6)), "email": values}, UNIQUE)
    assert shop.apply()["orders"]["error"] is None
    expected = [0, 3, 4, 5] if isinstance(values, pa.BooleanArray) else [0, 5]
    assert shop.column("orders", "id") == expected


def test_a_table_that_an_expression_asks_as_well_agrees(parquet_shop: ParquetShop) -> None:
    expression = {"type": "expression", "expression": "id < 4", "on_fail": "skip", "id": "low"}
    shop = parquet_shop({"id": [0, 1, 2, 3, 4, 5], "email": ["", "a", "a", "b", "b", "c"]}, expression, UNIQUE)
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"]) == (1, 5)
    assert shop.rows(KEPT) == [("low", "4"), ("low", "5"), *(("unique_within_load_email", id_) for id_ in "123")]


def test_a_key_that_is_no_value_or_not_there_is_told_at_plan(parquet_shop: ParquetShop) -> None:
    shop = parquet_shop(
        {"id": [1], "tags": [["a"]]},
        {"type": "unique_within_load", "field": "tags"},
        {"type": "unique_within_load", "fields": ["id", "email"]},
    )
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        refusals = table_plan(runtime.survey(table)).refusals
    assert len(refusals) == 2
    assert "rule unique_within_load_tags: tags is text[], which" in refusals[0]
    assert refusals[1] == "rule unique_within_load_id_email is about email, which the source does not have"


def test_tables_without_such_a_rule_are_read_once(csv_shop: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: Any) -> None:
        raise AssertionError("the source is read for keys")

    monkeypatch.setattr(key_search, "_seen", refuse)
    shop = csv_shop(row_level=[{"type": "not_null", "field": "id"}])
    shop.file("data/orders.csv", "id\n1\n")
    assert shop.apply()["orders"]["rows"] == 1


@pytest.fixture
def postgres_shop(shop: ShopProject) -> ShopProject:
    shop.execute(
        'CREATE SCHEMA src; CREATE TABLE src.orders (id int, email text, paid numeric(10,2), "o\'dd "" {}" int)'
    )
    shop.execute("INSERT INTO src.orders SELECT n, 'user' || n % 9, n, n % 8 FROM generate_series(1, 10) n")
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}},
            "tables": [{"name": "orders", "row_level": [UNIQUE, UNIQUE | {"field": "o'dd \" {}"}]}],
        }
    )
    return shop


def test_rows_of_postgres_are_told_apart(postgres_shop: ShopProject) -> None:
    told = postgres_shop.apply()["orders"]
    assert (told["quarantined"], told["error"]) == (4, None)
    assert postgres_shop.column("orders", "id") == [3, 4, 5, 6, 7, 8]


def meanwhile(monkeypatch: pytest.MonkeyPatch, shop: ShopProject, *statements: str) -> None:
    """Somebody writes between the two readings, each time another statement."""
    left = list(statements)
    kept = passes.repeated_keys

    def and_then(*given: Any, **more: Any) -> Any:
        found = kept(*given, **more)
        if left:
            with psycopg.connect(shop.url) as connection:
                connection.execute(left.pop(0).encode())
        return found

    monkeypatch.setattr(passes, "repeated_keys", and_then)


ANOTHER = "INSERT INTO src.orders VALUES (11, 'user5', 1, 100)"


def test_both_readings_of_a_database_show_the_same_rows(
    postgres_shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, postgres_shop, ANOTHER)
    told = postgres_shop.apply()["orders"]
    assert (told["quarantined"], told["error"]) == (4, None)
    assert postgres_shop.column("orders", "id") == [3, 4, 5, 6, 7, 8]


def test_rows_that_come_between_two_readings_without_a_snapshot_are_read_again(
    postgres_shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "export", lambda *_: None)  # as behind a pooler
    meanwhile(monkeypatch, postgres_shop, ANOTHER)
    told = postgres_shop.apply()["orders"]
    assert (told["quarantined"], told["error"]) == (6, None)
    assert postgres_shop.column("orders", "id") == [3, 4, 6, 7, 8]


def test_rows_that_never_stay_the_same_are_not_published(
    postgres_shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "export", lambda *_: None)
    meanwhile(monkeypatch, postgres_shop, *(ANOTHER.replace("11", str(n)) for n in range(11, 20)))
    told = postgres_shop.apply()["orders"]
    assert "the rows changed between the two readings that a rule unique_within_load needs" in told["error"]
    assert postgres_shop.rows("SELECT count(*) FROM raw.orders") == [(0,)]


def test_nothing_of_the_search_is_left_on_disk(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[UNIQUE])
    shop.file("data/orders.csv", "id,email\n1,a\n2,a\n3,b\n")
    assert shop.apply()["orders"]["error"] is None
    assert list((shop.root / ".hakiri" / "candidates").rglob("*.keys")) == []
