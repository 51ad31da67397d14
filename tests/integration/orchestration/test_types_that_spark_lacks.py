"""Columns of PostgreSQL that travel as texts: rules and validators take them for what they are, in a load and in
`hakiri check` alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hakiri_dagster.cli.suggest_command import suggested
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.test_check_command import checked
from tests.integration.orchestration.test_validators import evaluation

FORTY = "1" + "0" * 39


def declare(shop: ShopProject, table: str, rows: str, *rules: dict[str, Any], **validators: Any) -> None:
    shop.execute(f"CREATE SCHEMA src; CREATE TABLE src.orders ({table})")
    shop.execute(f"INSERT INTO src.orders VALUES {rows}")
    source = {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}}
    orders = {
        "name": "orders",
        "row_level": [rule | {"on_fail": "warn"} for rule in rules],
        "dataset_level": validators,
    }
    shop.manifest({"id": "shop", "source": source, "tables": [orders]})


def kept(shop: ShopProject) -> dict[str, list[int]]:
    """By rule the rows of the load that break it."""
    statement = (
        'SELECT "ruleId", array_agg(("row"->>\'id\')::int ORDER BY ("row"->>\'id\')::int) '
        "FROM hakiri.quarantine_shop_orders GROUP BY 1"
    )
    return {str(rule): ids for rule, ids in shop.rows(statement)}


def test_numeric_is_compared_as_a_number(shop: ShopProject) -> None:
    declare(
        shop,
        "id int, a numeric, b numeric, c numeric(9,2), d double precision",
        f"(1, 9, 10, 10, 10), (2, 10, 9, 9, 9), (3, 1.0, 1.00, 1, 1), (4, 'NaN', 'NaN', NULL, 'NaN'), "
        f"(5, {FORTY}1, {FORTY}2, NULL, NULL), (6, {FORTY}2, {FORTY}1, 0, 1e39), (7, 'NaN', 1, 1, 1), "
        "(8, NULL, 1, 1, 1)",
        {"type": "compare", "id": "ordered", "field": "a", "op": "<=", "other": "b"},
        {"type": "compare", "id": "equal", "field": "a", "op": "=", "other": "b"},
        {"type": "compare", "id": "beside_decimal", "field": "a", "op": "<=", "other": "c"},
        {"type": "compare", "id": "beside_float", "field": "a", "op": "<=", "other": "d"},
        {"type": "expression", "id": "cast", "expression": "CAST(a AS DECIMAL(38, 9)) <= c OR a IS NULL"},
    )
    assert shop.apply()["orders"]["error"] is None
    expected = {
        "ordered": [2, 6, 7],
        "equal": [1, 2, 5, 6, 7],
        "beside_decimal": [2, 6, 7],
        "beside_float": [2, 6, 7],
        "cast": [2, 4, 5, 6, 7],
    }
    assert kept(shop) == expected
    seen = checked(shop)
    assert {name: seen[name][1] for name in expected} == {
        name: f"{len(rows)} of 8 row(s) break it" for name, rows in expected.items()
    }
    told = shop.rows(
        "SELECT array_agg(id ORDER BY id) FILTER (WHERE NOT a <= b), array_agg(id ORDER BY id) FILTER (WHERE a <> b), "
        "array_agg(id ORDER BY id) FILTER (WHERE NOT a <= c), array_agg(id ORDER BY id) FILTER (WHERE NOT a <= d) "
        "FROM raw.orders"
    )
    assert told == [tuple(rows for name, rows in expected.items() if name != "cast")]


def test_numeric_has_ranges_and_lists_of_values(shop: ShopProject) -> None:
    declare(
        shop,
        "id int, v numeric",
        f"(1, 0.1), (2, 0.10000000000000000000001), (3, 1.50), (4, {FORTY}), (5, NULL), (6, 1.5)",
        {"type": "range", "id": "tenth", "field": "v", "max": 0.1},
        {"type": "range", "id": "positive", "field": "v", "min": 0},
        {"type": "one_of", "id": "listed", "field": "v", "values": [0.1, 1.5]},
        {"type": "field_type", "id": "whole", "field": "v", "expected": "integer"},
        range={"column": "v", "max": 0.1, "on_fail": "warn"},
        accepted_values={"column": "v", "values": [0.1, 1.5, 1e39], "on_fail": "warn"},
        cardinality={"column": "v", "max_distinct": 5},
    )
    assert shop.apply()["orders"]["error"] is None
    assert kept(shop) == {"tenth": [2, 3, 4, 6], "listed": [2, 4], "whole": [1, 2, 3, 6]}
    names = ("values_range_v", "accepted_values_v", "cardinality_v")
    loaded = {
        name: (evaluation(shop, name).passed, evaluation(shop, name).metadata["observed"].value) for name in names
    }
    assert loaded == {name: checked(shop)[name] for name in names}
    assert loaded["values_range_v"] == (False, f"min 0.1, max {FORTY} of v")


def test_equal_numbers_are_one_key_however_they_are_written(shop: ShopProject) -> None:
    declare(
        shop,
        "id int, v numeric",
        f"(1, 1.0), (2, 1.00), (3, {FORTY}), (4, {FORTY}.0), (5, {FORTY}.1), (6, 'NaN'), (7, 'NaN'), (8, NULL)",
        {"type": "unique_within_load", "id": "once", "field": "v"},
    )
    assert shop.apply()["orders"]["error"] is None
    assert kept(shop) == {"once": [1, 2, 3, 4, 6, 7]}
    assert checked(shop)["once"] == (False, "6 of 8 row(s) break it")


def test_a_tenth_of_32_bits_is_a_tenth_wherever_it_is_asked(shop: ShopProject) -> None:
    declare(
        shop,
        "id int, v real",
        "(1, 0.1), (2, 0.05)",
        {"type": "range", "id": "tenth", "field": "v", "min": 0.05, "max": 0.1},
        {"type": "range", "id": "more", "field": "v", "min": 0.06},
        range={"column": "v", "max": 0.0999999999, "on_fail": "warn"},
    )
    assert shop.apply()["orders"]["error"] is None
    found = evaluation(shop, "values_range_v")
    assert (found.passed, found.metadata["observed"].value) == (True, "min 0.05, max 0.1 of v")
    assert kept(shop) == {"more": [2]}
    seen = checked(shop)
    assert seen["values_range_v"] == (True, "min 0.05, max 0.1 of v")
    assert seen["tenth"][0]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            {"type": "compare", "field": "a", "op": "<", "other": "b"},
            "rule compare_a: a is interval and b interval, which do not compare by < here; "
            "ask it with a validator of type sql, or let a view of the source convert them",
        ),
        (
            {"type": "compare", "field": "a", "op": "=", "other": "b"},
            "a is interval and b interval, which do not compare",
        ),
        ({"type": "compare", "field": "j", "op": "=", "other": "j"}, "j is json and j json, which do not compare"),
        ({"type": "compare", "field": "n", "op": "=", "other": "t"}, "n is numeric and t text, which do not compare"),
        ({"type": "range", "field": "a", "min": 1}, "a is interval, and the bounds are numbers"),
        ({"type": "one_of", "field": "a", "values": ["1 day"]}, "a is interval, which not all of the values are"),
        (
            {"type": "expression", "id": "e", "expression": "n <= 5"},
            "rule e: n is numeric, a type that Spark lacks; write CAST(n AS DECIMAL(38, 9)), "
            "or CAST(n AS STRING) to ask about its text",
        ),
        (
            {"type": "expression", "id": "e", "expression": "length(`my ip`) > 1"},
            "rule e: my ip is inet, a type that Spark lacks; write CAST(`my ip` AS STRING) to ask about its text",
        ),
    ],
)
def test_what_such_a_column_cannot_be_asked_is_told_before_anything_moves(
    shop: ShopProject, rule: dict[str, Any], told: str
) -> None:
    declare(shop, 'id int, a interval, b interval, n numeric, t text, j json, "my ip" inet', "(1)", rule)
    assert told in shop.apply()["orders"]["error"]
    assert shop.rows("SELECT to_regclass('raw.orders')") == [(None,)]


def test_what_has_one_text_for_each_value_is_asked_by_its_text(shop: ShopProject) -> None:
    shop.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    declare(
        shop,
        "id int, was mood, is_ mood, key uuid, ip inet, lasts interval",
        "(1, 'sad', 'sad', gen_random_uuid(), '10.0.0.1', '2 days'), (2, 'sad', 'happy', NULL, '::1', '10 days')",
        {"type": "compare", "id": "same", "field": "was", "op": "=", "other": "is_"},
        {"type": "one_of", "id": "sad", "field": "is_", "values": ["sad"]},
        {"type": "regex", "id": "v4", "field": "ip", "pattern": r"\."},
        {"type": "max_length", "id": "short", "field": "lasts", "max": 6},
        {"type": "field_type", "id": "uuid", "field": "key", "expected": "uuid"},
        {"type": "expression", "id": "cast", "expression": "CAST(was AS STRING) = 'sad' AND key IS NOT NULL"},
    )
    assert shop.apply()["orders"]["error"] is None
    expected = {"same": [2], "sad": [2], "v4": [2], "short": [2], "cast": [2]}
    assert kept(shop) == expected
    assert {name for name, (passed, _) in checked(shop).items() if not passed} == set(expected)


def test_only_what_can_be_asked_of_the_source_is_suggested(shop: ShopProject) -> None:
    rows = ", ".join(f"({i}, {i}.5, '{1 + i % 2} days')" for i in range(60))
    declare(shop, "id int, amount numeric, lasts interval", rows)
    shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.orders (id int, amount numeric, lasts text)")
    assert shop.apply()["orders"]["error"] is None
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        text = suggested(runtime, table)
    proposed = {(rule["type"], rule["field"]) for rule in json.loads(f"{{{text}}}")["validate"]["row_level"]}
    assert {("range", "amount"), ("not_null", "lasts")} <= proposed
    assert ("one_of", "lasts") not in proposed
