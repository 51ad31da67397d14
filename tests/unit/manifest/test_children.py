"""Tables whose rows are the elements of a list within another table's records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hakiri_dagster.manifest.tables import Table
from tests.unit.manifest.conftest import Load, Read
from tests.unit.manifest.test_presets import KEY, github, stripe

ISSUES: dict[str, Any] = {
    "name": "issues",
    "path": "/repo/issues",
    "params": {"state": "all"},
    "flatten": ["user"],
    "primary_key": ["id"],
    "columns": {"id": "bigint", "updated_at": "timestamptz"},
    "incremental": "updated_at",
    "cursor_params": {"lower": "since", "order": "ascending"},
    "backfill": {"window": "1w"},
}


def tracker(child: dict[str, Any], parent: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    config = {"base_url": "https://api.example.com", "pagination": {"type": "link"}}
    tables = [ISSUES | (parent or {}), {"name": "issue_labels"} | child]
    pipeline = {"id": "tracker", "source": {"connector": "rest", "config": config}, "tables": tables} | more
    return {"tracker.json": json.dumps(pipeline)}


LABELS = {"parent": "issues", "explode": "labels"}


def child_of(load: Load, files: dict[str, str], env: dict[str, str] | None = None) -> Table:
    return load(None, files, env).tables[-1]


def test_a_child_asks_for_its_parents_records_and_bears_their_key(load: Load) -> None:
    child = child_of(load, tracker(LABELS))
    assert (child.path, child.endpoint["params"]) == ("/repo/issues", {"state": "all"})
    assert child.primary_key == ("issues_id", "position")
    assert child.columns == {"issues_id": "bigint"}
    assert child.endpoint["flatten"] == ["user"]
    explosion = child.endpoint["explosion"]
    assert (explosion["path"], explosion["kept"], explosion["flatten"]) == ("labels", {"issues_id": "id"}, False)


def test_without_a_cursor_of_its_own_it_is_loaded_whole(load: Load) -> None:
    child = child_of(load, tracker(LABELS, incremental="updated_at"))
    assert (child.cursor, child.mode, child.whole_table) == (None, "delete_missing", True)
    assert not child.load.fail_on_empty_source, "no list may have an element"


@pytest.mark.parametrize(
    ("said", "guarded"),
    [
        ({}, True),
        ({"load": {"mode": "blue_green"}}, True),
        ({"load": {"fail_on_empty_source": False}}, False),
        ({"load": {"mode": "append"}}, False),
        ({"incremental": "updated_at"}, False),
    ],
)
def test_a_whole_table_of_lists_is_not_emptied_by_an_api_without_records_unless_that_is_allowed_for(
    load: Load, said: dict[str, Any], guarded: bool
) -> None:
    child = child_of(load, tracker(LABELS | said))
    assert child.endpoint["explosion"]["needs_parents"] == guarded
    assert not child.load.fail_on_empty_source, "lists without elements are no reason"


def test_what_a_pipeline_allows_for_holds_for_its_lists(load: Load) -> None:
    child = child_of(load, tracker(LABELS, {"load": {"mode": "append"}}, load={"fail_on_empty_source": False}))
    assert child.endpoint["explosion"]["needs_parents"] is False


def test_its_windows_are_those_of_its_parent(load: Load) -> None:
    child = child_of(load, tracker(LABELS | {"incremental": "updated_at"}))
    assert (child.cursor, child.mode, child.backfill.window) == ("issues_updated_at", "append", "1w")
    assert child.columns["issues_updated_at"] == "timestamptz"
    assert child.endpoint["explosion"]["cursor"] == "issues_updated_at"


def test_the_columns_of_its_parents_keys_can_be_named(load: Load) -> None:
    child = child_of(load, tracker(LABELS | {"parent_keys": {"issue": "id"}, "position": "n"}))
    assert child.primary_key == ("issue", "n")
    several = child_of(load, tracker(LABELS | {"parent_keys": ["id", "user_login"]}))
    assert several.primary_key == ("issues_id", "issues_user_login", "position")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (["number"], ("repo", "issues_number", "position")),
        (["repo", "number"], ("issues_repo", "issues_number", "position")),
    ],
)
def test_elements_of_different_parts_are_told_apart(read: Read, key: list[str], expected: tuple[str, ...]) -> None:
    parts = {"path": "/{repo}/issues", "partition_keys": {"repo": ["a", "b"]}, "primary_key": key}
    reading = read(None, tracker(LABELS, parts | {"load": {"mode": "append"}}))
    assert reading.project is not None
    assert reading.project.tables[-1].primary_key == expected
    assert not [warning for warning in reading.warnings if "partition key" in warning.message]


def test_elements_have_no_part_where_the_sources_keys_are_not_named(load: Load) -> None:
    config = {"base_url": "https://api.example.com", "pagination": {"type": "link"}, "partition_keys": {"repo": ["a"]}}
    source = {"connector": "rest", "config": config}
    assert child_of(load, tracker(LABELS, source=source)).primary_key == ("issues_id", "position")
    of_repo = child_of(load, tracker(LABELS, {"path": "/{repo}/issues"}, source=source))
    assert of_repo.primary_key == ("repo", "issues_id", "position")


@pytest.mark.parametrize("mode", ["truncate", "blue_green", "append"])
def test_modes_that_replace_lists_are_taken(load: Load, mode: str) -> None:
    assert child_of(load, tracker(LABELS | {"load": {"mode": mode}})).mode == mode


def test_children_that_are_known_by_name_need_no_parent_in_the_pipeline(load: Load) -> None:
    labels = child_of(load, github("issue_labels"))
    assert (labels.path, labels.primary_key) == ("/repos/owner/name/issues", ("issues_id", "position"))
    windows = child_of(load, github({"name": "issue_labels", "incremental": "updated_at"}))
    assert windows.cursor == "issues_updated_at"
    lines = child_of(load, stripe("invoices", "invoice_lines"), KEY)
    assert (lines.path, lines.endpoint["records"]) == ("/invoices", "data")
    assert lines.endpoint["explosion"]["continued"] == {
        "more": "lines.has_more", "url": "lines.url", "params": {"limit": 100},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (tracker({"parent": "issues"}), "`parent` and `explode` belong together"),
        (tracker({"explode": "labels", "path": "/x"}), "`parent` and `explode` belong together"),
        (tracker({"parent": "pulls", "explode": "labels"}), "there is no table `pulls` to be its parent"),
        (tracker({"parent": "issue_labels", "explode": "labels"}), "its parent `issue_labels` has a parent itself"),
        (tracker(LABELS, {"primary_key": None}), "nothing tells the records of `issues` apart"),
        (tracker(LABELS | {"incremental": "created_at"}), "its windows can only be those of its parent"),
        (tracker(LABELS | {"incremental": "updated_at"}, {"incremental": False}), "can only be those of its parent"),
        (tracker(LABELS | {"load": {"mode": "upsert"}}), "load mode `upsert` would leave elements there"),
        (
            tracker(LABELS | {"incremental": "updated_at", "load": {"mode": "upsert"}}),
            "load mode `upsert` would leave elements there",
        ),
    ],
    ids=[
        "no-list",
        "no-parent",
        "no-such-table",
        "grandchild",
        "no-key",
        "cursor",
        "whole-parent",
        "upsert",
        "windows-upsert",
    ],
)
def test_what_is_wrong_is_told(read: Read, files: dict[str, str], told: str) -> None:
    (problem,) = read(None, files).problems
    assert "table `issue_labels`: " in problem.message
    assert told in problem.message


@pytest.mark.parametrize("key", ["parent", "explode"])
def test_lists_are_for_apis(read: Read, key: str) -> None:
    files = {"connector": "files", "config": {"path": "data"}}
    text = json.dumps({"id": "a", "source": files, "tables": [{"name": "x", key: "y"}]})
    problems = read(None, {"a.json": text}).problems
    assert f"table `x`: `{key}` is for sources" in problems[0].message
