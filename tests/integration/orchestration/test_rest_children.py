"""Lists within an API's records as tables of their own, from its pages to PostgreSQL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.test_rest import CURSOR, NOW, Tracker, ago, tracked

LABELS: dict[str, Any] = {"name": "issue_labels", "parent": "issues", "explode": "labels"}


def names(*labels: str) -> list[dict[str, str]]:
    return [{"name": label} for label in labels]


def labels_of(shop: ShopProject) -> list[tuple[Any, ...]]:
    return shop.rows("SELECT issues_id, position, name FROM raw.issue_labels ORDER BY 1, 2")


def test_a_list_is_a_table_that_follows_it(shop: ShopProject) -> None:
    tracker = Tracker()
    for number in range(1, 6):
        tracker.put(number, ago(days=number), labels=names("bug"), team=["ann"])
    tracker.put(2, ago(days=2), labels=names("bug", "later", "bug"))
    tracker.put(3, ago(days=3), labels=[])
    tracker.put(4, ago(days=4), labels=None)
    members = {"name": "team", "parent": "issues", "explode": "team", "parent_keys": {"issue": "id"}}
    with tracked(shop, tracker, children=[LABELS, members], **CURSOR):
        first = shop.apply()
        assert {name: table["error"] for name, table in first.items()} == dict.fromkeys(first)
        assert labels_of(shop) == [(1, 0, "bug"), (2, 0, "bug"), (2, 1, "later"), (2, 2, "bug"), (5, 0, "bug")]
        assert shop.rows("SELECT issue, position, value FROM raw.team ORDER BY 1") == [(1, 0, "ann"), (5, 0, "ann")]
        tracker.put(2, ago(minutes=2), labels=names("later"))
        tracker.put(1, ago(minutes=1), labels=[])
        assert shop.apply()["issue_labels"]["error"] is None
    assert labels_of(shop) == [(2, 0, "later"), (5, 0, "bug")]


def test_an_api_without_one_record_does_not_empty_a_table_of_lists_unless_that_is_allowed_for(
    shop: ShopProject,
) -> None:
    tracker = Tracker()
    tracker.put(1, ago(days=1), labels=names("bug"))
    with tracked(shop, tracker, children=[LABELS], **CURSOR):
        shop.apply()
        tracker.issues.clear()
        told = shop.apply()["issue_labels"]["error"]
        assert "the API gave no record at all" in told
        assert "fail_on_empty_source = false" in told
        assert labels_of(shop) == [(1, 0, "bug")]
        tracker.put(2, ago(minutes=1), labels=[])
        assert shop.apply()["issue_labels"]["error"] is None
        assert labels_of(shop) == [], "that no record has an element is nothing out of the ordinary"
    known = {"issues_id": "bigint", "position": "bigint", "name": "text"}
    allowed = LABELS | {"columns": known, "load": {"fail_on_empty_source": False}}
    tracker.issues.clear()
    with tracked(shop, tracker, children=[allowed], **CURSOR):
        assert shop.apply()["issue_labels"]["error"] is None
        assert labels_of(shop) == []


def test_what_should_be_a_list_and_is_none_is_set_aside(shop: ShopProject) -> None:
    tracker = Tracker()
    tracker.put(1, ago(days=1), labels=names("bug"))
    tracker.put(2, ago(days=2), labels={"name": "bug"})
    with tracked(shop, tracker, children=[LABELS], **CURSOR):
        result = shop.apply()["issue_labels"]
    assert (result["error"], result["quarantined"]) == (None, 1)
    assert labels_of(shop) == [(1, 0, "bug")]
    ((line,),) = shop.rows("SELECT \"row\" ->> 'line' FROM hakiri.quarantine_tracker_issue_labels")
    assert line == '["`labels` is no list, so it has no elements",{"issues_id":2,"labels":{"name": "bug"}}]'


def test_windows_of_a_list_are_its_parents_and_a_window_that_is_loaded_again_replaces_its_elements(
    shop: ShopProject,
) -> None:
    tracker = Tracker()
    for number in range(1, 5):
        tracker.put(number, NOW - timedelta(days=40 * number), labels=names("bug", "later"))
    windows = LABELS | {"incremental": "updated_at"}
    with tracked(shop, tracker, children=[windows], **CURSOR):
        first = shop.apply()["issue_labels"]
        assert (first["error"], first["rows"]) == (None, 8)
        assert first["chunks"]["done"] >= 4
        at = tracker.issues[3]["updated_at"]
        tracker.issues[3]["labels"] = names("new")
        shop.again("issue_labels", str(at)[:7])
        tracker.put(5, ago(minutes=1), labels=names("newest"))
        again = shop.apply()["issue_labels"]
        assert (again["error"], again["chunks"]["done"]) == (None, 1)
    found = labels_of(shop)
    assert [row for row in found if row[0] == 3] == [(3, 0, "new")]
    assert [row for row in found if row[0] == 5] == [(5, 0, "newest")]
    assert len(found) == 3 * 2 + 1 + 1
    assert shop.rows("SELECT issues_updated_at FROM raw.issue_labels WHERE issues_id = 5") == [(ago(minutes=1),)]
