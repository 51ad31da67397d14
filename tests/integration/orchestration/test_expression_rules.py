"""Rules that are expressions, from the manifest to the warehouse, the quarantine table and Dagster's checks."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hakiri_dagster.errors import ManifestError
from hakiri_dagster.pipeline import passes
from hakiri_dagster.pipeline.planner import table_plan
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]


def rule(expression: str, on_fail: str = "skip", **more: Any) -> dict[str, Any]:
    return {"type": "expression", "expression": expression, "on_fail": on_fail} | more


def checks(shop: ShopProject) -> dict[str, bool]:
    key = dg.AssetKey(["shop", "orders"])
    names = [spec.name for spec in _specs(shop)]
    records = shop.instance.event_log_storage.get_latest_asset_check_execution_by_key(
        [dg.AssetCheckKey(key, name) for name in names if name != "no_rows_set_aside"]
    )
    return {
        check.name: record.event.dagster_event.asset_check_evaluation_data.passed  # type: ignore[union-attr]
        for check, record in records.items()
        if record.event is not None
    }


def _specs(shop: ShopProject) -> list[dg.AssetCheckSpec]:
    from hakiri_dagster.orchestration.checks import check_specs

    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
    return check_specs(table, dg.StaticPartitionsDefinition(["full"]))


def test_expressions_skip_warn_and_pass(csv_shop: Declare) -> None:
    shop = csv_shop(
        row_level=[
            rule("shipped <= received AND upper(status) IN ('A', 'B')", id="shipping"),
            rule("price / pieces < 100", "warn", id="cheap"),
            rule("price >= 0", "abort", id="price"),
        ]
    )
    shop.file(
        "data/orders.csv",
        "id,shipped,received,status,price,pieces\n"
        "1,2024-01-01,2024-01-02,a,5,1\n"
        "2,2024-01-03,2024-01-02,a,5,1\n"
        "3,2024-01-01,2024-01-02,c,5,1\n"
        "4,2024-01-01,,b,5,1\n"
        "5,2024-01-01,2024-01-02,,500,1\n"
        "6,2024-01-01,2024-01-02,B,5,0\n",
    )
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (4, 2, None)
    assert any(
        "rule cheap: 2 of 6 row(s) break it, and it sets none of them aside" in warning for warning in told["warnings"]
    )
    assert shop.column("orders", "id") == [1, 4, 5, 6]
    assert shop.rows('SELECT "ruleId", "onFail", "row"->>\'id\' FROM hakiri.quarantine_shop_orders ORDER BY 3') == [
        ("shipping", "skip", "2"),
        ("shipping", "skip", "3"),
        ("cheap", "warn", "5"),
        ("cheap", "warn", "6"),
    ]
    assert shop.rows("SELECT DISTINCT message FROM hakiri.quarantine_shop_orders WHERE \"ruleId\" = 'shipping'") == [
        ("it does not hold that shipped <= received AND upper(status) IN ('A', 'B')",)
    ]
    assert checks(shop) == {"shipping": False, "cheap": False, "price": True}


def test_an_expression_that_aborts_publishes_nothing(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[rule("n > 0", "abort")])
    shop.file("data/orders.csv", "n\n1\n-1\n")
    told = shop.apply()["orders"]
    assert "1 of 2 row(s) break it (n > 0)" in told["error"]
    assert shop.rows("SELECT count(*) FROM raw.orders") == [(0,)]


def test_too_many_rows_that_break_an_expression_stop_the_publish(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[rule("n > 0", id="positive", max_failed_ratio=0.4)])
    shop.file("data/orders.csv", "n\n1\n-1\n")
    assert "positive: 1 of 2 row(s) break it (n > 0), and max_failed_ratio is 0.4" in shop.apply()["orders"]["error"]


def test_no_row_can_make_an_expression_fail_the_load(csv_shop: Declare) -> None:
    shop = csv_shop(
        row_level=[
            rule("n / zero > 1", "warn", id="division"),
            rule("CAST(word AS INT) > 5", "warn", id="cast"),
            rule("n * 9223372036854775807 > 0", "warn", id="overflow"),
            rule("TRY_CAST(word AS INT) > 5", "warn", id="lenient"),
            rule("zero = 0 OR n / zero > 1", "warn", id="decided"),
        ]
    )
    shop.file("data/orders.csv", "n,zero,word\n1,0,x\n2,1,7\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["error"]) == (2, None)
    assert shop.rows('SELECT "ruleId", "row"->>\'n\' FROM hakiri.quarantine_shop_orders ORDER BY 1, 2') == [
        ("cast", "1"),
        ("division", "1"),
        ("overflow", "2"),
    ]


def test_empty_texts_are_null_to_an_expression_as_well(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[rule("length(word) > 2"), rule("word IS NOT NULL", id="there")])
    shop.file("data/orders.csv", "id,word\n1,\n2,abc\n3,ab\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"]) == (1, 2)
    assert shop.rows("SELECT \"ruleId\" FROM hakiri.quarantine_shop_orders WHERE \"row\"->>'id' = '1'") == [("there",)]


NAMES = ["first name", "a.b", "back`tick", 'quo"te', "Upper", "upper", "select", "o'hara", "50%", "größe", "x]y", "c0",
         "${env:HOME}", "_hidden"]  # fmt: skip


def test_columns_of_any_name_can_be_asked_of(csv_shop: Declare) -> None:
    quoted = {name: "`" + name.replace("`", "``") + "`" for name in NAMES if '"' not in name}
    rules = [rule(f"{q} = 'v{NAMES.index(name)}'", "abort", id=f"r{NAMES.index(name)}") for name, q in quoted.items()]
    shop = csv_shop(row_level=[*rules, rule("Upper <> upper", "abort", id="case")])
    header = ",".join('"' + name.replace('"', '""') + '"' for name in NAMES)
    shop.file("data/orders.csv", f"{header}\n{','.join(f'v{place}' for place in range(len(NAMES)))}\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["error"]) == (1, None)


@pytest.fixture
def parquet_shop(shop: ShopProject) -> Callable[..., ShopProject]:
    def declare(columns: dict[str, Any], *rules: dict[str, Any], **table: Any) -> ShopProject:
        shop.manifest(
            {
                "id": "shop",
                "source": {"connector": "files", "config": {"path": "data", "format": "parquet"}},
                "tables": [{"name": "orders", "row_level": list(rules)} | table],
            }
        )
        pq.write_table(pa.table(columns), shop.file("data/orders.parquet", b""))
        return shop

    return declare


def test_rows_of_parquet_are_asked_too(parquet_shop: Callable[..., ShopProject]) -> None:
    shop = parquet_shop({"n": [1, 2, 3, None], "t": ["", "b", "c", "d"]}, rule("n < 3 AND t <> 'b'"))
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"]) == (2, 2)
    assert shop.rows("SELECT n, t FROM raw.orders ORDER BY n") == [(1, ""), (None, "d")]


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Those that rows of the loads took."""
    noted: list[str] = []
    kept = passes.map_rows

    def map_rows(frame: Any, direct: Any, *given: Any) -> Any:
        noted.append("through the JVM" if direct is None else "past the JVM")
        return kept(frame, direct, *given)

    monkeypatch.setattr(passes, "map_rows", map_rows)
    return noted


def test_an_expression_that_arrow_computes_keeps_no_rows_from_passing_the_jvm_by(
    parquet_shop: Callable[..., ShopProject], ways: list[str]
) -> None:
    cents = pa.decimal128(15, 2)
    price = pa.array([Decimal("100.00"), Decimal("-1.00"), Decimal("5.00"), None], cents)
    off = pa.array([Decimal("0.99")] * 4, cents)
    shop = parquet_shop(
        {"id": [1, 2, 3, 4], "price": price, "off": off, "mode": ["AIR", "AIR", "", None]},
        rule("price * (1 - off) >= 0 AND mode <> ''"),
    )
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (2, 2, None)
    assert shop.column("orders", "id") == [1, 4]
    assert ways == ["past the JVM"]


def test_an_expression_that_only_spark_computes_brings_the_rows_through_the_jvm(
    parquet_shop: Callable[..., ShopProject], ways: list[str]
) -> None:
    shop = parquet_shop({"t": ["A", "b", "İ"]}, rule("t = upper(t)"), rule("t <> 'x'", id="other"))
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (2, 1, None)
    assert ways == ["through the JVM"]


def test_chunks_of_one_pass_are_counted_apart(parquet_shop: Callable[..., ShopProject]) -> None:
    shop = parquet_shop(
        {"day": pa.array(["2024-01-05", "2024-01-06", "2024-02-05"]).cast(pa.date32()), "n": [1, -1, 1]},
        rule("n > 0", "abort", id="positive"),
        incremental="day",
        backfill={"window": "1mo"},
    )
    told = shop.apply()["orders"]
    assert (told["chunks"]["done"], told["chunks"]["failed"], told["rows"]) == (1, 1, 1)
    assert "chunk 2024-01" in told["error"]
    assert "nothing was published: positive: 1 of 2 row(s) break it" in told["error"]


def test_rows_of_postgres_are_asked_too(shop: ShopProject, ways: list[str]) -> None:
    shop.execute(
        "CREATE SCHEMA src; CREATE TABLE src.orders (id int, made timestamptz, paid numeric(10,2), tags text[])"
    )
    shop.execute(
        "INSERT INTO src.orders VALUES (1, '2024-01-01', 1.50, '{a}'), (2, '2023-01-01', 1, NULL), (3, NULL, -1, NULL)"
    )
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}},
            "tables": [{"name": "orders", "row_level": [rule("made >= '2024-01-01' AND paid BETWEEN 0 AND 1.5")]}],
        }
    )
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (1, 2, None)
    assert shop.column("orders", "id") == [1]
    assert ways == ["past the JVM"]


def test_an_expression_that_does_not_fit_the_columns_is_told_at_plan(csv_shop: Declare) -> None:
    rules = [
        rule("nowhere > 1", id="absent"),
        rule("n", id="number"),
        rule("word > 5", id="mixed"),
        rule("n > 0", id="fine"),
    ]
    shop = csv_shop(row_level=rules)
    shop.file("data/orders.csv", "n,word\n1,a\n")
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        refusals = table_plan(runtime.survey(table)).refusals
    assert refusals == (
        "rule absent is about nowhere, which the source does not have",
        "rule number: it comes to a bigint, and not to true or false",
        "rule mixed: one side of > is a text, the other an integer; write CAST(… AS …) on one of them",
    )
    error = shop.apply()["orders"]["error"]
    assert all(refusal in error for refusal in refusals)
    assert shop.rows("SELECT to_regclass('raw.orders')") == [(None,)]


def test_an_unsafe_expression_is_told_with_its_place(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[rule("reflect('java.lang.System', 'exit', 0) = n")])
    with pytest.raises(ManifestError) as refused, shop.runtime():
        pass
    (problem,) = refused.value.problems
    assert problem.message == "`row_level[0].expression` of table `orders`: the function reflect is not allowed"
    assert (problem.file, problem.pipeline_id) == ("manifests/pipelines/shop.json", "shop")
    assert problem.column > 1


def test_a_rule_about_a_column_that_a_contract_leaves_out_stops_its_table_at_plan(csv_shop: Declare) -> None:
    declared = {"contract": "discard_value"}
    shop = csv_shop(**declared)
    shop.file("data/orders.csv", "id\n1\n")
    assert shop.apply()["orders"]["error"] is None
    csv_shop(**declared, row_level=[rule("extra > 1", id="extra"), {"type": "not_null", "field": "extra"}])
    shop.file("data/orders.csv", "id,extra\n1,2\n")
    error = shop.apply()["orders"]["error"]
    assert "rule extra is about extra, which the source does not have" in error
    assert "rule not_null_extra is about extra, which the source does not have" in error
