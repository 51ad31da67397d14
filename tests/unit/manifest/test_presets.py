"""APIs that are known by name: what their pipelines come to."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from hakiri_dagster.connectors.registry import source_table
from hakiri_dagster.manifest.tables import Pipeline, Table
from hakiri_dagster.pipeline.look_interval import look_interval
from tests.unit.manifest.conftest import Load, Read
from tests.unit.manifest.samples import SEED_BACKFILL, SEED_JSON

TOKEN = {"GITHUB_TOKEN": "gh-s3cret-token"}


def github(*tables: Any, config: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    source = {"connector": "github", "config": {"repo": "owner/name"} | (config or {})}
    return {"gh.json": json.dumps({"id": "gh", "source": source, "tables": list(tables)} | more)}


def pipeline(load: Load, files: dict[str, str], env: dict[str, str] | None = None) -> Pipeline:
    (found,) = load(None, files, env).pipelines
    return found


def table(load: Load, files: dict[str, str], env: dict[str, str] | None = None) -> Table:
    (found,) = pipeline(load, files, env).tables
    return found


def test_the_seeds_example_comes_to_tables_that_can_be_loaded(load: Load) -> None:
    seed = pipeline(load, {"github-issues.json": SEED_JSON})
    assert [(t.name, t.path, t.cursor, t.mode, t.primary_key) for t in seed.tables] == [
        ("issues", "/repos/OpenHackersClub/gctrl/issues", "updated_at", "upsert", ("id",)),
        ("pull_requests", "/repos/OpenHackersClub/gctrl/pulls", "updated_at", "upsert", ("id",)),
        ("comments", "/repos/OpenHackersClub/gctrl/issues/comments", "updated_at", "upsert", ("id",)),
    ]
    assert {t.source.config["base_url"] for t in seed.tables} == {"https://api.github.com"}
    assert str(seed.rate_budget) == "60/h"


def test_without_a_token_looks_leave_most_of_githubs_budget_to_loads(load: Load) -> None:
    looks = look_interval(pipeline(load, github("issues", "pull_requests", "comments")))
    assert (looks.wished, looks.requests) == (timedelta(minutes=5), 6)
    assert looks.every == timedelta(minutes=24)
    with_token = github("issues", "pull_requests", "comments", config={"token": "${GITHUB_TOKEN}"})
    usual = look_interval(pipeline(load, with_token | {}, TOKEN))
    assert usual.every == usual.wished == timedelta(minutes=5)


def test_each_repository_that_is_looked_at_counts(load: Load) -> None:
    repos = [f"owner/name{number}" for number in range(209)]
    source = {"connector": "github", "config": {"repos": repos, "token": "${GITHUB_TOKEN}"}}
    said = {"id": "gh", "source": source, "tables": ["issues"], "secrets": ["GITHUB_TOKEN"]}
    triggers = [{"type": "source", "every": "10m"}]
    for document in (said, said | {"triggers": triggers}):
        looks = look_interval(pipeline(load, {"gh.json": json.dumps(document)}, TOKEN))
        assert looks.requests == 2 * 209
        assert looks.every == timedelta(seconds=1204), "whatever the trigger wishes"


def test_the_seeds_backfill_is_over_what_is_known_of_github(load: Load) -> None:
    (historical,) = load(SEED_BACKFILL).pipelines
    assert str(historical.rate_budget) == "60/min"
    assert historical.tables[0].backfill.window == "30d"
    assert historical.tables[0].backfill.parallelism == 4


def test_a_token_is_sent_and_gives_the_budget_that_github_documents(load: Load) -> None:
    found = pipeline(load, github("issues", config={"token": "${GITHUB_TOKEN}"}), TOKEN)
    assert found.tables[0].source.config["auth"] == {"type": "bearer", "token": TOKEN["GITHUB_TOKEN"]}
    assert str(found.rate_budget) == "5000/h"
    assert found.tables[0].backfill.window == "1mo"
    assert TOKEN["GITHUB_TOKEN"] not in repr(found)


def test_the_end_of_an_hour_is_waited_for_unless_the_manifest_says_otherwise(load: Load) -> None:
    def longest(**retry: float) -> tuple[int, float]:
        said = table(load, github("issues", config={"retry": retry})).source.config["retry"]
        return said["retries"], said["longest_retry_after"]

    assert longest() == (5, 3900)
    assert longest(retries=2) == (2, 3900)
    assert longest(longest_retry_after=60) == (5, 60)


def test_windows_are_long_where_requests_are_few(load: Load) -> None:
    assert table(load, github("issues")).backfill.window == "1y"


@pytest.mark.parametrize("section", ["pipeline", "table"])
def test_what_the_manifest_says_goes_before_what_is_known(load: Load, section: str) -> None:
    said: dict[str, Any] = {"backfill": {"window": "1w"}, "load": {"mode": "append"}}
    files = github("issues", **said) if section == "pipeline" else github({"name": "issues"} | said)
    found = table(load, files)
    assert (found.backfill.window, found.mode) == ("1w", "append")


def test_parameters_and_columns_are_added_to_those_that_are_known(load: Load) -> None:
    more = {"name": "issues", "params": {"labels": "bug", "per_page": 10}, "columns": {"body": "varchar(100)"}}
    found = table(load, github(more))
    assert found.endpoint["params"] == {
        "sort": "updated", "per_page": 10, "direction": "asc", "state": "all", "labels": "bug",
    }  # fmt: skip
    assert found.columns["body"] == "varchar(100)"
    assert found.columns["updated_at"] == "timestamptz"


def test_a_table_without_a_cursor_is_loaded_whole(load: Load) -> None:
    assert table(load, github({"name": "issues", "incremental": False})).cursor is None
    assert table(load, github("issues", incremental=False)).cursor is None


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (github("stars"), "`github` has no table `stars`"),
        (
            github("issues", incremental="created_at"),
            "the API cannot be asked for ranges of its cursor",
        ),
        (
            github({"name": "issues", "load": {"mode": "incremental_watermark", "watermark_column": "created_at"}}),
            "the API cannot be asked for ranges of its cursor",
        ),
        (github("issues", config={"repo": "linux"}), "`linux` is not a repository"),
        (github("issues", config={"repo": "a/.."}), "`a/..` is not a repository"),
        (github("issues", config={"repo": "a/b/c"}), "`a/b/c` is not a repository"),
        (github("issues", config={"repos": ["a/b"]}), "`repo` and `repos` are both there"),
        (github("issues", config={"repo": None}), "neither `repo` nor `repos` is there"),
        (github("issues", config={"token": "gh-plain"}), "a secret is not written into a manifest"),
        (github("issues", config={"base_url": "http://10.0.0.1"}), "the API is refused"),
    ],
    ids=[
        "no-table",
        "cursor",
        "watermark",
        "no-owner",
        "dots",
        "too-long",
        "both",
        "neither",
        "secret",
        "private-network",
    ],
)
def test_what_is_wrong_is_told_at_its_place(read: Read, files: dict[str, str], told: str) -> None:
    (problem,) = read(None, files).problems
    assert told in problem.message
    assert "gh-plain" not in str(problem)


def test_several_repositories_are_parts_of_the_same_tables(load: Load) -> None:
    repos = {"repo": None, "repos": ["torvalds/linux", "python/cpython"]}
    found = table(load, github("issues", config=repos))
    assert found.path == "/repos/{repo}/issues"
    hint = source_table(found).hint
    assert (hint.kind, [part.value for part in hint.parts]) == ("partitioned-monotonic", repos["repos"])
    assert source_table(table(load, github("issues"))).hint.kind == "monotonic"


def stripe(*tables: Any, **more: Any) -> dict[str, str]:
    source = {"connector": "stripe", "config": {"api_key": "${STRIPE_KEY}"}}
    return {"pay.json": json.dumps({"id": "pay", "source": source, "tables": list(tables)} | more)}


KEY = {"STRIPE_KEY": "rk-s3cret"}


def test_stripes_objects_are_known_by_name(load: Load) -> None:
    found = pipeline(load, stripe("charges", "customers", "invoices"), KEY)
    assert [(t.path, t.cursor, t.mode, t.endpoint["records"]) for t in found.tables] == [
        ("/charges", "created", "upsert", "data"),
        ("/customers", "created", "upsert", "data"),
        ("/invoices", "created", "upsert", "data"),
    ]
    assert str(found.rate_budget) == "25/s"
    assert found.tables[0].backfill.start_from == "2011-01-01"
    assert KEY["STRIPE_KEY"] not in repr(found)


@pytest.mark.parametrize("mode", ["delete_missing", "scd2"])
def test_the_key_that_is_known_is_enough_for_modes_that_need_one(load: Load, mode: str) -> None:
    whole = {"name": "charges", "incremental": False, "load": {"mode": mode}}
    assert table(load, stripe(whole), KEY).upsert_key == ("id",)


def test_times_that_a_table_adds_do_not_take_the_cursor_away(load: Load) -> None:
    found = table(load, stripe({"name": "charges", "epochs": ["captured_at"]}), KEY)
    assert found.endpoint["epochs"] == ["created", "captured_at"]


def test_a_key_is_not_written_into_a_manifest(read: Read) -> None:
    files = {"pay.json": stripe("charges")["pay.json"].replace("${STRIPE_KEY}", "rk-plain")}
    (problem,) = read(None, files).problems
    assert problem.message == "a secret is not written into a manifest"


def test_another_endpoint_is_a_table_as_with_rest(load: Load) -> None:
    found = table(load, github({"name": "labels", "path": "/repos/owner/name/labels"}))
    assert (found.path, found.cursor) == ("/repos/owner/name/labels", None)
