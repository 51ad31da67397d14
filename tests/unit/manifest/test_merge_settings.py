"""The keys of `load` that only modes which merge by key know."""

from __future__ import annotations

import pytest

from tests.unit.manifest.conftest import Load, Read

HEAD = 'id = "shop"\nincremental = "at"\nsource = { connector = "files", config = { path = "data" } }\n'


def told(read: Read, load: str, *, key: str = 'primary_key = ["id"], ') -> list[tuple[int, str]]:
    text = f'{HEAD}tables = [{{ name = "a", {key}load = {{ {load} }} }}]\n'
    return [(p.column, p.message) for p in read(None, {"shop.toml": text}).problems]


@pytest.mark.parametrize(
    "load",
    [
        'on_duplicate_key = "reject"',
        'mode = "upsert", hard_delete = "gone", on_duplicate_key = "last"',
        'mode = "upsert", hard_delete = "gone", soft_delete = "deleted_at"',
        'mode = "upsert", hard_delete = "deleted_at", soft_delete = "deleted_at"',
        'mode = "delete_missing", soft_delete = "deleted_at"',
        'mode = "scd2", hard_delete = "gone", close_missing = true, on_duplicate_key = "reject"',
    ],
)
def test_what_fits_its_mode_is_taken(read: Read, load: str) -> None:
    assert told(read, load) == []


@pytest.mark.parametrize("name", ["on_duplicate_key", "hard_delete", "soft_delete"])
def test_a_key_that_the_mode_does_not_know_is_told_at_its_place(read: Read, name: str) -> None:
    value = '"last"' if name == "on_duplicate_key" else '"gone"'
    [(column, message)] = told(read, f'mode = "truncate", {name} = {value}')
    assert column == 75
    assert message.startswith(f"table `a`: `{name}` is for load mode `upsert`")
    assert message.endswith("this one is `truncate`")


def test_nothing_follows_from_a_mode_that_there_is_not(read: Read) -> None:
    [(_, message)] = told(read, 'mode = "upsrt", on_duplicate_key = "last"')
    assert "`upsrt` is not one of" in message
    text = HEAD + 'tables = ["a"]\n[load]\nmode = "upsrt"\nhard_delete = "gone"\n'
    assert [w.message for w in read(None, {"shop.toml": text}).warnings if "hard_delete" in w.message] == []


def test_a_key_in_camel_case_is_told_as_well(read: Read) -> None:
    [(_, message)] = told(read, 'mode = "append", hardDelete = "gone"')
    assert "`hard_delete` is for load mode" in message


def test_what_the_pipeline_says_for_all_is_a_warning_if_none_takes_it(read: Read) -> None:
    text = HEAD + 'tables = ["a"]\n[load]\nhard_delete = "gone"\n'
    (warning,) = [w for w in read(None, {"shop.toml": text}).warnings if "hard_delete" in w.message]
    assert (warning.line, warning.message) == (
        6,
        "`hard_delete` has no effect: no table's load mode is `upsert`, `delete_missing` or `scd2`",
    )


def test_what_the_pipeline_says_holds_for_the_tables_that_take_it(load: Load) -> None:
    text = HEAD + 'tables = ["a", { name = "b", primary_key = ["id"] }]\n[load]\nhard_delete = "gone"\n'
    project = load(None, {"shop.toml": text})
    assert [(table.mode, table.load.hard_delete) for table in project.tables] == [
        ("append", "gone"),
        ("upsert", "gone"),
    ]


def test_scd2_takes_no_soft_delete_and_other_modes_close_nothing(read: Read) -> None:
    [(_, soft)] = told(read, 'mode = "scd2", soft_delete = "deleted_at"')
    assert soft == "table `a`: `soft_delete` is for load mode `upsert` or `delete_missing`, and this one is `scd2`"
    [(_, close)] = told(read, 'mode = "delete_missing", close_missing = true')
    assert close == "table `a`: `close_missing` is for load mode `scd2`, and this one is `delete_missing`"


def test_scd2_needs_a_key_and_one_without_the_cursor(read: Read) -> None:
    assert [m for _, m in told(read, 'mode = "scd2"', key="")] == ["table `a`: load mode `scd2` needs a key"]
    assert [m for _, m in told(read, 'mode = "scd2", upsert_key = ["id", "at"]')] == [
        "table `a`: load mode `scd2` needs a key without the cursor"
    ]


@pytest.mark.parametrize(
    ("table", "whole"),
    [
        ('{ name = "a", primary_key = ["id"], load = { mode = "scd2" } }', False),
        ('{ name = "a", primary_key = ["id"], load = { mode = "scd2", close_missing = true } }', True),
        ('{ name = "a", primary_key = ["id"], incremental = false, load = { mode = "scd2" } }', True),
        (
            '{ name = "a", primary_key = ["id"], incremental = false, load = { mode = "scd2", closeMissing = false } }',
            False,
        ),
        ('{ name = "a", load = { mode = "truncate" } }', True),
    ],
)
def test_a_history_is_loaded_whole_where_it_closes_what_is_missing(load: Load, table: str, whole: bool) -> None:
    [resolved] = load(None, {"shop.toml": f"{HEAD}tables = [{table}]\n"}).tables
    assert resolved.whole_table is whole


@pytest.mark.parametrize("name", ["hard_delete", "soft_delete"])
def test_a_column_of_the_key_or_the_cursor_cannot_say_what_is_deleted(read: Read, name: str) -> None:
    assert [m for _, m in told(read, f'mode = "delete_missing", {name} = "id"')] == [
        f"table `a`: `{name}` is a column of the key"
    ]
    assert [m for _, m in told(read, f'mode = "delete_missing", {name} = "at"')] == [
        f"table `a`: `{name}` is the table's cursor"
    ]


def test_soft_delete_of_an_upsert_needs_something_that_says_what_is_deleted(read: Read) -> None:
    assert [m for _, m in told(read, 'mode = "upsert", soft_delete = "deleted_at"')] == [
        "table `a`: nothing says which rows are deleted"
    ]
