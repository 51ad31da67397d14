from __future__ import annotations

import pytest

from tests.unit.manifest.conftest import Load, Read

HEAD = 'id = "shop"\nsource = { connector = "postgres", config = { url = "postgresql://h/d" } }\n'
FILES = 'id = "shop"\nsource = { connector = "files", config = { path = "data" } }\n'


def test_a_table_says_it_key_by_key_over_its_pipeline(load: Load) -> None:
    text = (
        'verify = { windows = 7 }\ntables = ["a", { name = "b", verify = { digest = true, every = "6h" } },'
        ' { name = "c", verify = false }]'
    )
    a, b, c = load(None, {"a.toml": HEAD + text}).pipelines[0].tables
    assert a.verify is not None
    assert (a.verify.every, a.verify.windows, a.verify.digest, a.verify.repair) == ("every 1d", 7, False, False)
    assert b.verify is not None
    assert (b.verify.every, b.verify.windows, b.verify.digest) == ("every 6h", 7, True)
    assert c.verify is None
    (alone,) = load(None, {"a.toml": HEAD + 'tables = [{ name = "a", verify = {} }]'}).pipelines[0].tables
    assert alone.verify is not None
    (never,) = load(None, {"a.toml": HEAD + 'tables = ["a"]'}).pipelines[0].tables
    assert never.verify is None


@pytest.mark.parametrize(
    ("text", "every"), [("1d", "every 1d"), ("every 30m", "every 30m"), ("0 3 * * *", "0 3 * * *")]
)
def test_a_cadence_is_a_duration_or_cron(load: Load, text: str, every: str) -> None:
    (table,) = load(None, {"a.toml": HEAD + f'tables = ["a"]\nverify.every = "{text}"'}).pipelines[0].tables
    assert table.verify is not None
    assert table.verify.every == every


def test_a_cadence_that_no_schedule_has_is_refused(read: Read) -> None:
    (problem,) = read(None, {"a.toml": HEAD + 'tables = ["a"]\nverify.every = "7h"'}).problems
    assert problem.message == "`verify.every`: ticks 7h apart do not fit evenly into an hour, a day or a week"


def test_a_source_that_cannot_be_counted_is_refused_by_name(read: Read) -> None:
    (problem,) = read(None, {"a.toml": FILES + 'tables = [{ name = "a", verify = {} }]'}).problems
    assert problem.message == "the connector `files` cannot count its rows without sending all of them"
    assert (problem.line, "row_count_matches_source" in str(problem.hint)) == (3, True)
    assert read(None, {"a.toml": FILES + 'tables = [{ name = "a", verify = false }]'}).problems == ()


def test_the_name_of_the_check_is_taken(read: Read) -> None:
    rule = '{ type = "not_null", field = "a", id = "matches_source" }'
    (problem,) = read(None, {"a.toml": HEAD + f'tables = ["a"]\nvalidate.row_level = [{rule}]'}).problems
    assert "is the name of a check of our own" in problem.message
