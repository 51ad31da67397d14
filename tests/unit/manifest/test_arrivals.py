from __future__ import annotations

import json
from typing import Any

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


API = {"connector": "rest", "config": {"base_url": "https://api.example.com", "pagination": {"type": "link"}}}
ISSUES = {"name": "issues", "incremental": "updated_at", "cursor_params": {"lower": "since", "order": "ascending"}}
TELLS = {"cursor_params": ISSUES["cursor_params"] | {"newest": {"direction": "desc"}}}  # type: ignore[operator]
KEYED = {"primary_key": ["id"]}
APPEND = {"mode": "append"}
LATE = {"mode": "incremental_watermark", "watermark_column": "updated_at", "lag": "1h"}


def of_api(table: dict[str, Any], **more: Any) -> dict[str, str]:
    document = {"id": "api", "source": API, "tables": [table], "triggers": [{"type": "source"}], **more}
    return {"a.json": json.dumps(document)}


@pytest.mark.parametrize(
    ("table", "load_spec", "message", "hint"),
    [
        (ISSUES, APPEND, "nothing tells its newest record", "cursor_params.newest"),
        (ISSUES | TELLS | KEYED, LATE, "with a `lag`", "`schedule` instead"),
        ({"name": "feed", "segments": {"pages": 9}}, APPEND, "once and never again", "a `schedule`"),
    ],
)
def test_what_would_be_started_at_each_look_or_only_once_is_refused(
    read: Read, table: dict[str, Any], load_spec: dict[str, Any], message: str, hint: str
) -> None:
    (problem,) = read(None, of_api(table, load=load_spec)).problems
    assert message in problem.message
    assert hint in (problem.hint or "")


@pytest.mark.parametrize(
    ("table", "more"),
    [
        (ISSUES | TELLS, {}),
        ({"name": "feed", "segments": {"pages": 9}}, {"schedule": "@hourly"}),
        (ISSUES, {"triggers": []}),
        ({"name": "whole"}, {}),
    ],
)
def test_what_tells_of_changes_or_has_another_start_is_not(
    read: Read, table: dict[str, Any], more: dict[str, Any]
) -> None:
    assert read(None, of_api(table, load=APPEND, **more)).problems == ()
