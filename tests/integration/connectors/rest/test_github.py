"""What the preset `github` asks of GitHub, and what it finds there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hakiri_dagster.connectors.rest.ranges import as_position
from hakiri_dagster.connectors.rest.table import RestTable
from tests.integration.connectors.rest import preset_tables
from tests.integration.connectors.rest.api_server import ApiServer, Asked, Said, said, serving
from tests.integration.connectors.rest.github_api import REPO, Github, written
from tests.integration.connectors.rest.preset_tables import preset_table

START = datetime(2024, 1, 1, tzinfo=UTC)


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def table_of(root: Path, api: ApiServer, name: str, **config: Any) -> RestTable:
    env = {"GITHUB_TOKEN": "gh-s3cret"}
    return preset_table(root, "github", {"repo": REPO, "base_url": api.url} | config, name, env)


discovered, read = (
    partial(preset_tables.discovered, cursor="updated_at"),
    partial(preset_tables.read, cursor="updated_at"),
)


def numbers(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    return [row["number"] for row in rows]


def test_a_repository_is_asked_as_github_documents_it(tmp_path: Path) -> None:
    github = Github(token="gh-s3cret")
    github.issue(1, day(1))
    with serving(github.answer) as api:
        discovered(table_of(tmp_path, api, "issues", token="${GITHUB_TOKEN}"))
    first, newest = api.asked
    assert first.path == f"/repos/{REPO}/issues"
    assert first.params == {"sort": "updated", "per_page": "100", "direction": "asc", "state": "all"}
    assert newest.params == first.params | {"direction": "desc"}
    assert first.headers["X-GitHub-Api-Version"] == "2022-11-28"
    assert first.headers["Accept"] == "application/vnd.github+json"


@pytest.mark.parametrize("name", ["issues", "pull_requests", "comments"])
def test_history_is_from_the_oldest_change_to_the_newest(tmp_path: Path, name: str) -> None:
    github = Github(per_page=2)
    for number in range(1, 7):
        github.pull(number, day(number))
        github.comment(number, day(number))
    with serving(github.answer) as api:
        extent = discovered(table_of(tmp_path, api, name)).extent
        assert len(api.asked) == 2
    assert extent is not None
    assert (extent.lower, extent.upper) == (as_position(day(1)), as_position(day(6)))


@pytest.mark.parametrize("name", ["issues", "pull_requests", "comments", "review_comments"])
def test_a_repository_in_which_nothing_ever_happened_has_its_columns(tmp_path: Path, name: str) -> None:
    with serving(Github().answer) as api:
        found = discovered(table_of(tmp_path, api, name))
    assert found.schema is not None
    types = {column.name: column.native_type for column in found.schema.columns}
    assert (types["id"], types["updated_at"], types["user_login"]) == ("bigint", "timestamptz", "text")


def test_a_window_is_read_from_its_beginning_and_no_further_than_its_end(tmp_path: Path) -> None:
    github = Github(per_page=2)
    for number in range(1, 12):
        github.issue(number, day(number), state="closed" if number % 2 else "open")
    with serving(github.answer) as api:
        rows = read(table_of(tmp_path, api, "issues"), day(4), day(7))
    assert numbers(rows) == [4, 5, 6, 7]
    assert rows[0]["user_login"] == "u4"
    assert [param for param in api.params("since") if param] == [
        written(day(4) - timedelta(seconds=1)),
        written(day(5) - timedelta(seconds=1)),
        written(day(6) - timedelta(seconds=1)),
    ]


def test_issues_that_change_while_they_are_read_take_none_out_of_sight(tmp_path: Path) -> None:
    """GitHub's pages have numbers: what moves to the end draws up what lies behind it."""
    github = Github(per_page=3)
    for number in range(1, 11):
        github.issue(number, day(number))

    def meanwhile(_asked: Asked, n: int) -> Said | None:
        if n == 2:
            for number in (1, 2):
                github.issue(number, day(100 + number))
        return None

    github.trouble = meanwhile
    with serving(github.answer) as api:
        found = numbers(read(table_of(tmp_path, api, "issues")))
    assert sorted(set(found)) == list(range(1, 11))


def test_pull_requests_are_read_down_to_the_mark(tmp_path: Path) -> None:
    """GitHub knows no `since` for them."""
    github = Github(per_page=2)
    for number in range(1, 12):
        github.pull(number, day(number))
    with serving(github.answer) as api:
        assert numbers(read(table_of(tmp_path, api, "pull_requests"), day(9))) == [11, 10, 9, 8]
        assert len(api.asked) == 2


def test_pull_requests_that_change_while_they_are_read_are_found_from_the_mark_on(tmp_path: Path) -> None:
    github = Github(per_page=3)
    for number in range(1, 11):
        github.pull(number, day(number))

    def meanwhile(_asked: Asked, n: int) -> Said | None:
        if n == 2:
            github.pull(1, day(100))
        return None

    github.trouble = meanwhile
    with serving(github.answer) as api:
        table = table_of(tmp_path, api, "pull_requests")
        found = numbers(read(table))
        mark = day(max(found))
        assert 1 not in found
        assert {*found, *numbers(read(table, mark))} == set(range(1, 11))


def test_a_repository_that_is_not_there_is_told(tmp_path: Path) -> None:
    with serving(lambda _: said({"message": "Not Found"}, 404)) as api, pytest.raises(Exception, match="Not Found"):
        discovered(table_of(tmp_path, api, "issues"))
