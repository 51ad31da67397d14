from __future__ import annotations

import pytest

from hakiri_dagster.manifest.rates import Rate, RateError
from tests.unit.manifest.conftest import Load, Read

HEAD = 'id = "shop"\nsource = { connector = "postgres", config = { url = "postgresql://h/d" } }\n'


@pytest.mark.parametrize(
    ("text", "count", "seconds"), [("60/min", 60, 60), ("1/s", 1, 1), ("5000/h", 5000, 3600), ("7/d", 7, 86400)]
)
def test_a_rate_is_a_number_in_a_time(text: str, count: int, seconds: int) -> None:
    rate = Rate.parse(text)
    assert rate == Rate(count, seconds)
    assert str(rate) == text


@pytest.mark.parametrize("text", ["", "60", "0/s", "-1/s", "1.5/s", "60/m", "60 / min", "60/min\n", "1" * 30 + "/s"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(RateError, match="not a rate"):
        Rate.parse(text)


def test_a_rate_that_holds_nobody_back_is_refused(read: Read) -> None:
    (problem,) = read(None, {"a.toml": HEAD + 'tables = ["a"]\nbackfill.rate_budget = "201/s"'}).problems
    assert problem.message == ("`backfill.rate_budget`: `201/s` is more than 200 requests a second, which is no budget")
    assert problem.hint == "take it out: without it, requests are not held back"
    Rate.parse("200/s")


@pytest.mark.parametrize("key", ["rate_budget", "destination_writes_per_sec"])
def test_a_budget_is_for_a_whole_pipeline(read: Read, key: str) -> None:
    value = '"60/min"' if key == "rate_budget" else "5"
    reading = read(None, {"a.toml": HEAD + f'tables = [{{ name = "a", backfill = {{ {key} = {value} }} }}]'})
    (problem,) = reading.problems
    assert problem.message == f"`{key}` is for a whole pipeline, whose tables share it"
    assert (problem.line, problem.column) == (3, 38)


def test_reads_that_are_no_requests_have_no_budget(read: Read, load: Load) -> None:
    text = HEAD + 'tables = ["a"]\nbackfill.rate_budget = "60/min"'
    (warning,) = read(None, {"a.toml": text}).warnings
    assert warning.message == (
        "`rate_budget` has no effect: the connector `postgres` sends no requests that could be counted"
    )
    assert load(None, {"a.toml": text}).pipelines[0].rate_budget is None


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "201", '"5"'])
def test_writes_a_second_are_a_whole_number_that_can_be_meant(read: Read, value: str) -> None:
    text = HEAD + f'tables = ["a"]\nbackfill.destination_writes_per_sec = {value}'
    assert len(read(None, {"a.toml": text}).problems) == 1


@pytest.mark.parametrize("value", ["0", "-1", "1025", "true"])
def test_passes_at_once_are_a_whole_number_that_can_be_meant(read: Read, value: str) -> None:
    assert len(read(f"[project]\nmax_parallel_chunks = {value}").problems) == 1


def test_what_is_said_of_a_project_and_a_pipeline_is_kept(load: Load) -> None:
    text = HEAD + 'tables = ["a", "b"]\nbackfill = { destinationWritesPerSec = 5, parallelism = 3 }'
    project = load("[project]\nmaxParallelChunks = 2", {"a.toml": text})
    (pipeline,) = project.pipelines
    assert project.max_parallel_chunks == 2
    assert pipeline.write_budget == Rate(5, 1)
    assert pipeline.backfill.parallelism == 3
    assert [table.position for table in pipeline.tables] == [0, 1]
