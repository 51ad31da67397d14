"""Validators of a manifest: one or a list of a kind, and mistakes in them at their places."""

from __future__ import annotations

import pytest

from hakiri_dagster.manifest.validator_spec import id_of
from tests.unit.manifest.conftest import Load, Read
from tests.unit.manifest.samples import files_pipeline, postgres_pipeline


def pipeline(validators: str) -> str:
    return files_pipeline(more=f"\n[validate.dataset_level]\n{validators}\n")


def test_one_of_a_kind_is_a_list_of_one(load: Load) -> None:
    text = pipeline(
        'row_count = { min = 1 }\nduplicateKey = [{ columns = ["a"] }, { columns = ["b"], scope = "table" }]'
    )
    validation = load(None, {"shop.toml": text}).tables[0].validation
    ids = ["row_count", "duplicate_key_a", "table_duplicate_key_b"]
    assert [id_of(validator) for validator in validation.dataset_level.validators] == ids


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("row_count = { min = 3, max = 2 }", "min is 3 and max 2, so nothing would pass"),
        ("row_count = [{ min = 1 }, { min = 3, max = 2 }]", "min is 3 and max 2"),
        ('freshness = { column = "a" }', "`within_hours` is missing"),
        ('cardinality = { column = "a", min_distinct = "5" }', "must be a whole number"),
        (
            'sql = { statement = "DELETE FROM {table}" }',
            "DELETE is not a SELECT, which is all that a validator may ask",
        ),
        ('sql = { statement = "SELECT pg_sleep(9)" }', "the function pg_sleep is not among those known to be harmless"),
        ('row_count = { min = 1, id = "Total" }', "`Total` is not the id of a check"),
        ('row_count = { min = 1, id = "no_rows_set_aside" }', "is the name of a check of our own"),
        ("rowcount = { min = 1 }", "unknown key `rowcount`"),
        ("row_count = { minimum = 1 }", "unknown key `minimum`"),
    ],
)
def test_a_mistake_is_told_at_its_place(read: Read, written: str, message: str) -> None:
    text = pipeline(written)
    problems = read(None, {"shop.toml": text}).problems
    assert message in problems[0].message
    assert text.split("\n")[problems[0].line - 1] == written


def test_two_checks_of_one_name_are_told(read: Read) -> None:
    text = pipeline("row_count = [{ min = 1 }, { max = 2 }]")
    (problem,) = read(None, {"shop.toml": text}).problems
    assert "has two checks with the id `row_count`" in problem.message


def test_all_checks_of_one_name_are_told_at_their_places(read: Read) -> None:
    rules = [
        f'{{ type = "not_null", field = "{field}", on_fail = "{fail}" }},'
        for field in "ab"
        for fail in ("warn", "skip")
    ]
    tables = ['{ name = "own", row_level = [', *rules[:2], "] },", '{ name = "one" },', '{ name = "other" },']
    text = "\n".join([
        'id = "shop"',
        'source = { connector = "files", config = { path = "data", format = "csv" } }',
        'destination = { connector = "postgres", config = { url = "postgresql://localhost/p" } }',
        "tables = [", *tables, "]",
        "[validate]", "row_level = [", *rules, "]",
    ])  # fmt: skip
    problems = read(None, {"shop.toml": text}).problems
    told = [(problem.message, text.splitlines()[problem.line - 1]) for problem in problems]
    assert told == [
        ("shop/own has two checks with the id `not_null_a`", rules[1]),
        ("shop/one has two checks with the id `not_null_a`", rules[1]),
        ("shop/one has two checks with the id `not_null_b`", rules[3]),
    ]
    assert problems[0].line < problems[1].line


def test_a_rule_and_a_validator_do_not_share_a_name(read: Read) -> None:
    text = pipeline('row_count = { min = 1, id = "counted" }') + (
        '[[validate.row_level]]\ntype = "not_null"\nfield = "a"\nid = "counted"\n'
    )
    (problem,) = read(None, {"shop.toml": text}).problems
    assert "has two checks with the id `counted`" in problem.message


def test_a_table_says_more_of_a_kind_than_its_pipeline(load: Load) -> None:
    text = postgres_pipeline(
        tables='[{ name = "a", validate = { dataset_level = { row_count = { min = 7 } } } }, "b"]',
        more='[validate.dataset_level]\nrow_count = { min = 1 }\nnull_ratio = { column = "c" }\n',
    )
    tables = load(None, {"shop.toml": text}).tables
    fewest = [table.validation.dataset_level.row_count[0].min for table in tables]
    assert fewest == [7, 1]
    assert all(table.validation.dataset_level.null_ratio for table in tables)
