"""What a manifest may say of what an API keeps apart."""

from __future__ import annotations

from typing import Any

import pytest

from hakiri_dagster.manifest.project import ProjectReading
from tests.unit.manifest.conftest import Load, Read
from tests.unit.manifest.test_presets import github
from tests.unit.manifest.test_rest import ENV, only_problem, pipeline, problems

ISSUES: dict[str, Any] = {"name": "issues", "path": "repos/{repo}/issues"}


def test_keys_of_the_source_are_for_the_tables_that_name_them(load: Load) -> None:
    config = {"partition_keys": {"repo": ["a/x", "b/y"]}}
    issues, user = load(None, pipeline(ISSUES, {"name": "user"}, config=config), ENV).tables
    assert (issues.path, user.path) == ("repos/{repo}/issues", None)


def test_a_table_has_keys_of_its_own(load: Load) -> None:
    said = {"name": "events", "params": {"account": "{account}"}, "partition_keys": {"account": ["1", "2"]}}
    (table,) = load(None, pipeline(said), ENV).tables
    assert table.endpoint["partition_keys"] == {"account": ["1", "2"]} or table.endpoint["partition_keys"] == {
        "account": ("1", "2")
    }


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"repo": ["a"], "state": ["open"]}, "2 partition keys are more than one"),
        ({"repo": []}, "`repo` has no list of values"),
        ({"repo": "a/x"}, "`repo` has no list of values"),
        ({"repo": ["a/x", "a/x"]}, "the value `a/x` of `repo` is there twice"),
        ({"repo": ["../admin"]}, "the value `../admin` of `repo` leads to another path"),
        ({"repo": [7]}, "a value of `repo` is not text that can be printed"),
        ({"repo": ["a\nb"]}, "a value of `repo` is not text that can be printed"),
        ({"repo": ["é" * 40]}, "is too long to be part of a chunk's key"),
        ({"my repo": ["a"]}, "`my repo` cannot be a partition key"),
        ({"_hakiri_load_id": ["a"]}, "`_hakiri_load_id` cannot be a partition key"),
        (["a"], "must name a key and its values"),
    ],
)
def test_what_is_no_partition_key_is_told(read: Read, keys: Any, told: str) -> None:
    message, _ = only_problem(read, pipeline(ISSUES | {"partition_keys": keys}))
    assert told in message


def test_a_key_that_no_request_names_is_refused(read: Read) -> None:
    message, hint = only_problem(read, pipeline({"name": "things", "partition_keys": {"repo": ["a"]}}))
    assert "neither its path nor its parameters name the partition key `repo`" in message
    assert "`{repo}`" in (hint or "")


def test_braces_in_a_path_that_no_key_fills_are_told(read: Read) -> None:
    message, _ = only_problem(read, pipeline({"name": "issues", "path": "repos/{rpo}/issues"}))
    assert "its path holds `{rpo}`, which no partition key is called" in message


def test_a_partition_key_is_a_column_of_text(read: Read) -> None:
    said = ISSUES | {"partition_keys": {"repo": ["1"]}, "columns": {"repo": "bigint"}}
    assert problems(read(None, pipeline(said), ENV)) == [
        ("table `issues`: the partition key `repo` is a column of text", "take it out of `columns`")
    ]


def test_a_key_of_the_source_is_no_column_of_tables_that_do_not_name_it(load: Load) -> None:
    said = {"name": "users", "columns": {"repo": "bigint"}}
    (table,) = load(None, pipeline(said, config={"partition_keys": {"repo": ["1"]}}), ENV).tables
    assert table.columns == {"repo": "bigint"}


@pytest.mark.parametrize("of", ["source", "table"])
def test_parts_cannot_be_walked_in_segments_whoever_declares_their_key(read: Read, of: str) -> None:
    keys = {"partition_keys": {"repo": ["a", "b"]}}
    table = ISSUES | {"segments": {"pages": 3}} | (keys if of == "table" else {})
    message, hint = only_problem(read, pipeline(table, config=keys if of == "source" else {}))
    assert "it has partition keys and `segments`" in message
    assert "a table for each of their values" in (hint or "")


def test_segments_may_stand_beside_tables_in_parts(load: Load) -> None:
    journal = {"name": "journal", "segments": {"pages": 3}}
    load(None, pipeline(ISSUES, journal, config={"partition_keys": {"repo": ["a", "b"]}}), ENV)


UPSERTED = ISSUES | {"partition_keys": {"repo": ["a", "b"]}, "load": {"mode": "upsert"}}


def warnings(reading: ProjectReading) -> list[str]:
    return [warning.message for warning in reading.warnings if "partition key" in warning.message]


def test_a_key_that_merges_records_of_different_parts_is_warned_of(read: Read) -> None:
    """Issue 7 of one repository would become issue 7 of the other."""
    reading = read(None, pipeline(UPSERTED | {"primary_key": ["number"]}), ENV)
    assert warnings(reading) == [
        "table `issues`: its key (number) lacks the partition key `repo`: "
        "records of different parts with the same key take each other's place"
    ]
    assert not reading.problems


@pytest.mark.parametrize(
    "said",
    [
        {"primary_key": ["repo", "number"]},
        {"primary_key": ["number"], "load": {"mode": "upsert", "upsert_key": ["number", "repo"]}},
        {"primary_key": ["number"], "load": {"mode": "append"}},
        {"primary_key": ["number"], "path": "issues", "partition_keys": None},
    ],
    ids=["in the key", "in the upsert key", "nothing is merged", "no parts"],
)
def test_keys_that_merge_nothing_across_parts_are_not_warned_of(read: Read, said: dict[str, Any]) -> None:
    reading = read(None, pipeline(UPSERTED | said), ENV)
    assert (warnings(reading), reading.problems) == ([], ())


def test_the_ids_of_github_are_those_of_all_repositories(read: Read) -> None:
    repos = {"repo": None, "repos": ["torvalds/linux", "python/cpython"]}
    own = {"name": "milestones", "path": "/repos/{repo}/milestones", "primary_key": ["number"], "incremental": False}
    reading = read(None, github("issues", "issue_labels", own | {"load": {"mode": "delete_missing"}}, config=repos))
    (warning,) = warnings(reading)
    assert "table `milestones`: its key (number) lacks the partition key `repo`" in warning
    assert not reading.problems
