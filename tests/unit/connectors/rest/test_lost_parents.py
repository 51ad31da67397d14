"""Tables of lists, of an API that has no record whose lists they could be."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from hakiri_dagster.connectors.contract import Discovery, Known
from hakiri_dagster.connectors.rest.connector import REST
from tests.unit.connectors.rest.played_api import PlayedApi

NOTHING: dict[str, Any] = {"rows": [], "next": None}
SOMETHING: dict[str, Any] = {"rows": [{"id": 1, "labels": []}], "next": None}


def no_spark() -> NoReturn:
    raise AssertionError("Spark was asked for")


def found(monkeypatch: pytest.MonkeyPatch, answers: dict[str | None, Any], *, needs_parents: bool = True) -> Discovery:
    """`answers`: by the part that is asked for, or for None where the table has none."""
    api = PlayedApi(lambda asked: answers[asked.get("repo")])
    monkeypatch.setattr("hakiri_dagster.connectors.rest.table.Client", lambda _api, _network: api)
    parts = [repo for repo in answers if repo is not None]
    endpoint = {
        "records": "rows",
        "explosion": {"path": "labels", "kept": {"issues_id": "id"}, "position": "n", "needs_parents": needs_parents},
        **({"params": {"repo": "{repo}"}, "partition_keys": {"repo": parts}} if parts else {}),
    }
    table = REST.table(
        config={"base_url": "https://api.example.com", "pagination": {"type": "next_url", "next": "next"}},
        name="labels",
        path="/issues",
        columns={"issues_id": "bigint", "name": "text"},
        label="tracker/labels",
        endpoint=endpoint,
    )
    return table.discover(cursor=None, known=Known(), spark=no_spark)


def test_an_api_without_one_record_is_taken_for_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    (error,) = found(monkeypatch, {None: NOTHING}).broken.values()
    assert "the API gave no record at all, so none whose `labels` could be loaded" in str(error)
    assert "tracker/labels" in str(error)


@pytest.mark.parametrize(
    "answers",
    [{None: SOMETHING}, {None: NOTHING | {"next": "/issues?page=2"}}, {"a": NOTHING, "b": SOMETHING}],
    ids=["no element", "more pages", "another part has some"],
)
def test_what_may_hold_records_is_walked(monkeypatch: pytest.MonkeyPatch, answers: dict[str | None, Any]) -> None:
    assert not found(monkeypatch, answers).broken


def test_all_parts_without_records_are_an_api_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, {"a": NOTHING, "b": NOTHING}).broken


def test_a_table_may_be_emptied_where_that_is_allowed_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not found(monkeypatch, {None: NOTHING}, needs_parents=False).broken
