"""What a load mode asks of other keys is told with the manifest's other mistakes, in JSON as in TOML."""

from __future__ import annotations

import pytest

from tests.unit.manifest.conftest import Load, Read

HEAD = 'id = "shop"\nsource = { connector = "postgres", config = { url = "postgresql://h/d" } }\n'


@pytest.mark.parametrize(
    ("line", "column", "message", "hint"),
    [
        (
            'tables = [{ name = "a", load = { mode = "incremental_watermark" } }]',
            41,
            "table `a`: load mode `incremental_watermark` needs a `watermark_column`",
            "set `load.watermark_column`",
        ),
        (
            'loadMode = "incremental_watermark"\ntables = ["a"]',
            11,
            "table `a`: load mode `incremental_watermark` needs a `watermark_column`",
            "set `load.watermark_column`",
        ),
        (
            'tables = [{ name = "a", incremental = "x", loadMode = "incremental_watermark", watermarkColumn = "y" }]',
            39,
            "table `a`: `incremental` is `x`, and `watermark_column` is `y`",
            "name the same one, or leave `incremental` out",
        ),
        (
            'incremental = "x"\ntables = [{ name = "a", loadMode = "incremental_watermark", watermarkColumn = "y" }]',
            15,
            "table `a`: `incremental` is `x`, and `watermark_column` is `y`",
            "set `incremental` to `y` for the table",
        ),
        (
            'tables = [{ name = "a", load = { mode = "cdc_mirror" } }]',
            41,
            "table `a`: load mode `cdc_mirror` needs a `cdc_source`",
            "the stream of changes",
        ),
    ],
)
def test_what_a_mode_needs(read: Read, line: str, column: int, message: str, hint: str) -> None:
    (problem,) = read(None, {"shop.toml": HEAD + line + "\n"}).problems
    assert problem.message == message
    assert problem.column == column
    assert hint in (problem.hint or "")


@pytest.mark.parametrize(
    ("line", "column"),
    [
        (
            'tables = [{ name = "a", load = { mode = "blue_green", post_hook = '
            '{ type = "sql", statement = "CLUSTER {table} USING a_pkey" } } }]',
            95,
        ),
        (
            'tables = ["a"]\nload = { mode = "blue_green", post_hook = '
            '[{ type = "sql", statement = "ANALYZE" }, { type = "sql", statement = " cluster(verbose) {table}" }] }',
            113,
        ),
    ],
)
def test_a_table_that_is_exchanged_is_not_clustered_before(read: Read, line: str, column: int) -> None:
    (problem,) = read(None, {"shop.toml": HEAD + line + "\n"}).problems
    assert problem.message.startswith("table `a`: load mode `blue_green` cannot CLUSTER {table}")
    assert problem.column == column
    assert "name the target" in (problem.hint or "")


@pytest.mark.parametrize(
    ("mode", "key", "statement"),
    [
        ("blue_green", "post_hook", "CLUSTER raw.a USING a_pkey"),
        ("blue_green", "pre_hook", "CLUSTER {table} USING a_pkey"),
        ("append", "post_hook", "CLUSTER {table} USING a_pkey"),
    ],
)
def test_any_other_table_may_be_clustered(read: Read, mode: str, key: str, statement: str) -> None:
    hook = f'{{ type = "sql", statement = "{statement}" }}'
    line = f'tables = ["a"]\nload = {{ mode = "{mode}", {key} = {hook} }}\n'
    assert read(None, {"shop.toml": HEAD + line}).problems == ()


def test_json_cannot_bypass_it(read: Read) -> None:
    text = """\
{
  "id": "shop", "source": { "connector": "postgres", "config": { "url": "postgresql://h/d" } },
  "tables": [
    { "name": "a", "loadMode": "incremental_watermark" },
    { "name": "b", "loadMode": "cdc_mirror" },
    { "name": "c", "loadMode": "upsert" }
  ]
}
"""
    assert [(p.line, p.column, p.message) for p in read(None, {"shop.json": text}).problems] == [
        (4, 32, "table `a`: load mode `incremental_watermark` needs a `watermark_column`"),
        (5, 32, "table `b`: load mode `cdc_mirror` needs a `cdc_source`"),
        (6, 32, "table `c`: load mode `upsert` needs a key"),
    ]


def test_the_watermark_column_is_the_tables_cursor(load: Load) -> None:
    text = HEAD + (
        'tables = [{ name = "a", loadMode = "incremental_watermark", watermarkColumn = "seen_at" },'
        ' { name = "b", incremental = false, loadMode = "incremental_watermark", watermarkColumn = "id" }, "c"]\n'
    )
    tables = load(None, {"shop.toml": text}).tables
    assert [(t.cursor, t.in_order) for t in tables] == [("seen_at", True), ("id", True), (None, False)]


def test_a_watermark_column_of_the_pipeline_concerns_only_tables_of_that_mode(load: Load) -> None:
    text = HEAD + (
        'incremental = "x"\nload = { watermark_column = "x" }\n'
        'tables = ["a", { name = "b", load = { mode = "incremental_watermark" } }]\n'
    )
    assert [(t.mode, t.cursor) for t in load(None, {"shop.toml": text}).tables] == [
        ("append", "x"),
        ("incremental_watermark", "x"),
    ]


def test_a_lag_without_a_cursor_is_warned_of(read: Read) -> None:
    text = HEAD + 'tables = [{ name = "a", load = { lag = "1h", on_max_lag = "wait", mode = "append" } }]\n'
    reading = read(None, {"shop.toml": text})
    assert reading.problems == ()
    assert [warning.message for warning in reading.warnings if "cursor" in warning.message] == [
        "table `a`: `lag` has no effect, as it has no cursor",
        "table `a`: `on_max_lag` has no effect, as it has no cursor",
    ]


def test_a_lag_of_a_mode_that_loads_the_whole_table_is_warned_of(read: Read) -> None:
    text = HEAD + 'tables = [{ name = "a", load = { lag = "1h", mode = "truncate" } }]\n'
    reading = read(None, {"shop.toml": text})
    assert reading.problems == ()
    (warning,) = [w for w in reading.warnings if "lag" in w.message]
    assert (warning.message, warning.column) == (
        "table `a`: `lag` has no effect, as `truncate` loads the whole table",
        34,
    )


def test_a_mirror_with_its_stream_is_accepted(load: Load) -> None:
    text = HEAD + 'tables = [{ name = "a", loadMode = "cdc_mirror", cdcSource = "shop.orders" }]\n'
    (table,) = load(None, {"shop.toml": text}).tables
    assert table.streams


def test_truncate_of_the_only_table_is_softly_advised_against(read: Read) -> None:
    reading = read(None, {"shop.toml": HEAD + 'loadMode = "truncate"\ntables = ["a"]\n'})
    assert reading.problems == ()
    (warning,) = [w for w in reading.warnings if "blue_green" in w.message]
    assert (warning.line, warning.column) == (3, 12)
    own = read(None, {"shop.toml": HEAD + 'tables = [{ name = "a", load = { mode = "truncate" } }]\n'})
    assert [w.column for w in own.warnings if "blue_green" in w.message] == [41]


def test_truncate_of_one_table_among_others_is_not(read: Read) -> None:
    text = HEAD + 'tables = [{ name = "a", load = { mode = "truncate" } }, "b"]\n'
    assert not [w for w in read(None, {"shop.toml": text}).warnings if "blue_green" in w.message]
