"""`hakiri check`: rules and validators of a target as it is now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.orchestration.apply import Applier
from hakiri_dagster.pipeline import live_checks
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.test_validators import evaluation

Declare = Callable[..., ShopProject]

RULES = [
    {"type": "not_null", "field": "name"},
    {"type": "range", "field": "id", "max": 9, "on_fail": "skip"},
    {"type": "unique_within_load", "field": "name", "on_fail": "warn"},
    {"type": "expression", "id": "short", "expression": "length(name) < 4", "on_fail": "warn"},
]
VALIDATORS = {
    "row_count": {"min": 2},
    "duplicate_key": {"columns": ["name"]},
    "row_count_matches_source": {"checksum": True, "on_fail": "warn"},
}


def checked(shop: ShopProject) -> dict[str, tuple[bool, str]]:
    """Of each check whether it passed, and what was observed."""
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        evaluations, error = Applier(runtime, shop.instance).check(table, None)
    assert error is None
    return {one.check_name: (one.passed, str(_told(one))) for one in evaluations}


def _told(one: dg.AssetCheckEvaluation) -> Any:
    told = one.metadata.get("observed") or one.metadata["rows_set_aside"]
    return told.value


def test_every_check_is_asked_of_the_target_as_it_is(csv_shop: Declare) -> None:
    shop = csv_shop(rowLevel=RULES, dataset_level=VALIDATORS, load={"mode": "append"})
    shop.file("data/orders.csv", "id,name\n1,ann\n2,bob\n10,cid\n")
    assert shop.apply()["orders"]["error"] is None
    before = shop.rows("SELECT count(*) FROM hakiri.ledger")
    shop.execute(
        "INSERT INTO raw.orders (id, name, _hakiri_load_id) SELECT added.id, added.name, _hakiri_load_id"
        " FROM raw.orders, (VALUES (11, 'bob'), (12, NULL), (13, 'dorothy')) AS added (id, name) WHERE orders.id = 1"
    )
    assert checked(shop) == {
        "no_rows_set_aside": (False, "1"),
        "not_null_name": (False, "1 of 5 row(s) break it"),
        "range_id": (False, "3 of 5 row(s) break it"),
        "unique_within_load_name": (False, "2 of 5 row(s) break it"),
        "short": (False, "1 of 5 row(s) break it"),
        "row_count": (True, "5 row(s)"),
        "duplicate_key_name": (False, "2 of 5 row(s) share (name) with others: (bob) 2 times"),
        "row_count_matches_source": (
            False,
            "5 row(s) here and 1 set aside, 3 at the source; values not compared, for rows were set aside",
        ),
    }
    assert evaluation(shop, "not_null_name").severity is dg.AssetCheckSeverity.ERROR
    assert evaluation(shop, "short").severity is dg.AssetCheckSeverity.WARN
    assert shop.rows("SELECT count(*) FROM hakiri.ledger") == before


@pytest.mark.parametrize(("expression", "past_the_jvm"), [("name <> 'Bob'", True), ("lower(name) = name", False)])
def test_a_target_is_asked_by_whoever_computes_an_expression(
    csv_shop: Declare, monkeypatch: pytest.MonkeyPatch, expression: str, past_the_jvm: bool
) -> None:
    ways: list[bool] = []
    kept = live_checks.map_rows

    def map_rows(frame: Any, direct: Any, *given: Any) -> Any:
        ways.append(direct is not None)
        return kept(frame, direct, *given)

    monkeypatch.setattr(live_checks, "map_rows", map_rows)
    shop = csv_shop(rowLevel=[{"type": "expression", "id": "small", "expression": expression, "on_fail": "warn"}])
    shop.file("data/orders.csv", "id,name\n1,ann\n2,Bob\n3,\n")
    assert shop.apply()["orders"]["error"] is None
    assert checked(shop)["small"] == (False, "1 of 3 row(s) break it")
    assert ways == [past_the_jvm]


def test_the_whole_source_is_compared_with_the_whole_target(csv_shop: Declare) -> None:
    validators = {"row_count_matches_source": {"checksum": True}}
    shop = csv_shop(dataset_level=validators, incremental="id", load={"mode": "append"}, backfill={"window": 10})
    shop.file("data/orders/1.csv", "id,name\n1,ann\n22,bob\n")
    shop.file("data/orders/2.csv", "id,name\n3,\n")
    assert shop.apply()["orders"]["error"] is None
    assert checked(shop)["row_count_matches_source"] == (True, "3 row(s) here, 3 at the source; the same values")
    shop.execute("UPDATE raw.orders SET name = 'eve' WHERE id = 3")
    passed, told = checked(shop)["row_count_matches_source"]
    assert not passed
    assert "other values: checksum" in told


def test_a_target_that_is_not_there_yet_does_not_pass(csv_shop: Declare) -> None:
    shop = csv_shop(dataset_level={"row_count": {"min": 2}}, rowLevel=RULES)
    shop.file("data/orders.csv", "id,name\n1,ann\n")
    assert checked(shop) == {
        "no_rows_set_aside": (True, "0"),
        **dict.fromkeys(
            ["row_count", "not_null_name", "range_id", "unique_within_load_name", "short"],
            (False, "the target does not exist yet"),
        ),
    }
    assert evaluation(shop, "not_null_name").severity is dg.AssetCheckSeverity.ERROR
    assert evaluation(shop, "short").severity is dg.AssetCheckSeverity.WARN


def test_keys_are_unique_within_each_load_and_not_across_loads(csv_shop: Declare) -> None:
    shop = csv_shop(rowLevel=[{"type": "unique_within_load", "field": "id"}], load={"mode": "append"})
    shop.file("data/orders/1.csv", "id,name\n1,ann\n2,bob\n")
    shop.file("data/orders/2.csv", "id,name\n1,ann\n2,eve\n")
    assert shop.apply()["orders"]["error"] is None
    assert checked(shop)["unique_within_load_id"] == (True, "0 of 4 row(s) break it")
    shop.execute("UPDATE raw.orders SET _hakiri_load_id = 1")
    assert checked(shop)["unique_within_load_id"] == (False, "4 of 4 row(s) break it")


def test_of_a_target_that_does_not_tell_loads_apart_all_rows_are_asked_together(csv_shop: Declare) -> None:
    shop = csv_shop(rowLevel=[{"type": "unique_within_load", "field": "id"}])
    shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint, name text)")
    shop.execute("INSERT INTO raw.orders VALUES (1, 'ann'), (1, 'bob'), (2, 'cid')")
    told = "2 of 3 row(s) break it, of the whole table, for it has no _hakiri_load_id to tell loads apart by"
    assert checked(shop)["unique_within_load_id"] == (False, told)


def test_a_rule_that_the_target_s_types_have_made_void_is_told(csv_shop: Declare) -> None:
    rule = {"type": "regex", "field": "id", "pattern": "^[0-9]+$"}
    shop = csv_shop(rowLevel=[rule], columns={"id": "text"})
    shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint, name text)")
    passed, told = checked(shop)["regex_id"]
    assert not passed
    assert told == "it cannot be asked of the target: rule regex_id: id is bigint, and a pattern is for text"
