from __future__ import annotations

import pytest

from tests.unit.manifest.conftest import Load, Read

FILES = 'id = "shop"\nsource = { connector = "files", config = { path = "data" } }\ntables = ["a"]\n'
POSTGRES = 'id = "shop"\nsource = { connector = "postgres", config = { url = "postgresql://h/d" } }\ntables = ["a"]\n'


def test_a_pipeline_may_be_started_by_what_arrives(load: Load) -> None:
    text = FILES + 'triggers = [{ type = "files" }, { type = "source", every = "30s" }]'
    (pipeline,) = load(None, {"a.toml": text}).pipelines
    assert pipeline.files_trigger is not None
    assert pipeline.source_trigger is not None
    assert (pipeline.files_trigger.settle, pipeline.source_trigger.every) == ("10s", "30s")


def test_without_triggers_nothing_but_its_schedule_starts_it(load: Load) -> None:
    (pipeline,) = load(None, {"a.toml": FILES}).pipelines
    assert (pipeline.triggers, pipeline.files_trigger, pipeline.source_trigger) == ((), None, None)


def test_only_files_can_arrive_as_files(read: Read) -> None:
    (problem,) = read(None, {"a.toml": POSTGRES + 'triggers = [{ type = "files" }]'}).problems
    assert problem.message == "a trigger of the type `files` needs a source of files"
    assert problem.hint == 'use `type = "source"`, or a schedule'
    assert problem.line == 4


def test_the_same_trigger_twice_is_refused(read: Read) -> None:
    (problem,) = read(None, {"a.toml": FILES + 'triggers = [{ type = "source" }, { type = "source" }]'}).problems
    assert problem.message == "there is a trigger of the type `source` already"


@pytest.mark.parametrize("settle", ['"ten"', '"0s"', '"10 s"', '"1mo"', "10", "true"])
def test_what_is_no_duration_is_told_with_examples(read: Read, settle: str) -> None:
    (problem,) = read(None, {"a.toml": FILES + f'triggers = [{{ type = "files", settle = {settle} }}]'}).problems
    assert "is not a duration" in problem.message
    assert problem.hint == "write it like `10s`, `15m`, `2h`, `3d` or `1w`"


def test_an_unknown_trigger_is_named(read: Read) -> None:
    (problem,) = read(None, {"a.toml": FILES + 'triggers = [{ type = "file" }]'}).problems
    assert "file" in problem.message
