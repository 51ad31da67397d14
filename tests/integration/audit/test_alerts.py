from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from hakiri_dagster.audit.alerts import REMINDED_AFTER, Alert, AlertRecord
from hakiri_dagster.audit.database import SQLITE_FILE, AuditDb, open_audit, open_audit_view
from hakiri_dagster.security import secrets
from tests.integration.audit.conftest import OpenAudit

OF = ("shop", "orders")
EMPTY = Alert("empty_source", "the source came up empty", details={"mode": "truncate"})


def test_what_was_raised_is_there_for_everybody(audit: AuditDb, audit_url: str | None, tmp_path: Path) -> None:
    raised = audit.alerts.raise_(*OF, EMPTY, "run-1")
    with open_audit_view(audit_url, tmp_path) as view:
        (found,) = view.alerts.newest()
    assert found == raised
    assert (found.pipeline_id, found.table, found.kind, found.severity) == (*OF, "empty_source", "warning")
    assert (found.message, found.details, found.run_id) == (EMPTY.message, {"mode": "truncate"}, "run-1")
    assert (found.times, found.acknowledged_at, found.passed_on_at) == (1, None, None)


def test_a_condition_that_is_met_again_and_again_is_one_alert(audit: AuditDb) -> None:
    first = audit.alerts.raise_(*OF, EMPTY, "run-1")
    audit.alerts.raise_(*OF, Alert("empty_source", "empty still", details={"n": 2}), "run-2")
    (found,) = audit.alerts.newest()
    assert (found.id, found.times, found.message, found.details, found.run_id) == (
        first.id, 2, "empty still", {"n": 2}, "run-2",
    )  # fmt: skip
    assert found.raised_at == first.raised_at < found.last_seen


@pytest.mark.parametrize(
    ("of", "alert"),
    [
        (("shop", "customers"), EMPTY),
        (("other", "orders"), EMPTY),
        (OF, Alert("row_count_anomaly", "few")),
        (OF, Alert("empty_source", "another", subject="a")),
    ],
)
def test_another_pipeline_table_kind_or_subject_is_another_alert(
    audit: AuditDb, of: tuple[str, str], alert: Alert
) -> None:
    audit.alerts.raise_(*OF, EMPTY, None)
    audit.alerts.raise_(*of, alert, None)
    assert [found.times for found in audit.alerts.newest()] == [1, 1]


def test_many_that_meet_it_at_once_make_one_alert(open_again: OpenAudit) -> None:
    opened = [open_again() for _ in range(4)]

    def meet(audit: AuditDb) -> None:
        for _ in range(5):
            audit.alerts.raise_(*OF, EMPTY, None)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(meet, opened))
    assert [found.times for found in opened[0].alerts.newest()] == [20]


def test_an_acknowledged_alert_is_closed_and_the_next_time_begins_another(audit: AuditDb) -> None:
    first = audit.alerts.raise_(*OF, EMPTY, None)
    assert audit.alerts.acknowledge([first.id, 999]) == (first.id,)
    assert audit.alerts.newest() == ()
    again = audit.alerts.raise_(*OF, EMPTY, None)
    assert (again.times, again.id > first.id) == (1, True)
    newest, oldest = audit.alerts.newest(acknowledged=True)
    assert (newest.id, newest.acknowledged_at, oldest.id) == (again.id, None, first.id)
    assert oldest.acknowledged_at is not None
    audit.alerts.acknowledge([first.id])
    assert audit.alerts.newest(acknowledged=True)[1] == oldest, "the first word on it stays"


def test_the_newest_comes_first_and_one_pipeline_may_be_asked_for(audit: AuditDb) -> None:
    for table in ("a", "b"):
        audit.alerts.raise_("shop", table, EMPTY, None)
    audit.alerts.raise_("other", "c", EMPTY, None)
    audit.alerts.raise_("shop", "a", EMPTY, None)
    assert [found.table for found in audit.alerts.newest()] == ["a", "c", "b"]
    assert [found.table for found in audit.alerts.newest(["shop"])] == ["a", "b"]


def left(audit: AuditDb) -> list[str]:
    return [alert.table for alert in audit.alerts.to_pass_on(10)]


def test_what_was_passed_on_is_not_left_to_be_passed_on(audit: AuditDb) -> None:
    first = audit.alerts.raise_("shop", "a", EMPTY, None)
    audit.alerts.raise_("shop", "b", EMPTY, None)
    assert left(audit) == ["a", "b"]
    assert len(audit.alerts.to_pass_on(1)) == 1
    audit.alerts.passed_on(first)
    assert left(audit) == ["b"]
    audit.alerts.raise_("shop", "a", EMPTY, None)
    assert left(audit) == ["b"], "the same once more floods nobody"
    audit.alerts.acknowledge([alert.id for alert in audit.alerts.newest()])
    assert left(audit) == []


def test_what_could_not_be_passed_on_comes_after_what_was_never_tried(audit: AuditDb) -> None:
    first = audit.alerts.raise_("shop", "a", EMPTY, None)
    audit.alerts.raise_("shop", "b", EMPTY, None)
    audit.alerts.not_passed_on(first)
    assert left(audit) == ["b", "a"]


def test_what_gets_worse_is_passed_on_again(audit: AuditDb) -> None:
    audit.alerts.passed_on(audit.alerts.raise_(*OF, EMPTY, None))
    audit.alerts.raise_(*OF, Alert("empty_source", "worse", "error"), None)
    (worse,) = audit.alerts.to_pass_on(10)
    assert (worse.severity, worse.tries) == ("error", 0)


def test_what_gets_worse_while_it_is_passed_on_is_passed_on_again(audit: AuditDb) -> None:
    on_its_way = audit.alerts.raise_(*OF, EMPTY, None)
    audit.alerts.raise_(*OF, Alert("empty_source", "worse", "error"), None)
    audit.alerts.passed_on(on_its_way)
    assert left(audit) == ["orders"]


def test_what_goes_on_is_passed_on_once_a_day(audit: AuditDb, audit_url: str | None, tmp_path: Path) -> None:
    audit.alerts.passed_on(audit.alerts.raise_(*OF, EMPTY, None))
    (alert,) = audit.alerts.newest()
    passed_on_long_ago(alert, audit_url, tmp_path)
    assert left(audit) == [], "only what is met again"
    audit.alerts.raise_(*OF, EMPTY, None)
    assert left(audit) == ["orders"]


def passed_on_long_ago(alert: AlertRecord, audit_url: str | None, tmp_path: Path) -> None:
    assert alert.passed_on_at is not None
    then = alert.passed_on_at - REMINDED_AFTER - timedelta(seconds=1)
    if audit_url:
        with psycopg.connect(audit_url) as connection:
            connection.execute("UPDATE hakiri.alert SET passed_on_at = %s", (then,))
    else:
        with sqlite3.connect(tmp_path / SQLITE_FILE) as lite:
            lite.execute("UPDATE alert SET passed_on_at = ?", (then.isoformat(timespec="microseconds"),))
        lite.close()


def test_no_secret_is_kept(audit: AuditDb) -> None:
    secrets.register(['hunter2"x'])
    audit.alerts.raise_(*OF, Alert("empty_source", 'with hunter2"x', details={"url": ['a hunter2"x']}), None)
    (found,) = audit.alerts.newest()
    assert (found.message, found.details) == ("with ***", {"url": ["a ***"]})


def test_an_audit_db_of_the_second_version_gets_the_table(
    audit: AuditDb, audit_url: str | None, tmp_path: Path
) -> None:
    back = ["DROP TABLE {}alert", "UPDATE {}audit_version SET version = 2"]
    with (
        psycopg.connect(audit_url, autocommit=True)
        if audit_url
        else sqlite3.connect(tmp_path / SQLITE_FILE, isolation_level=None)
    ) as old:
        for statement in back:
            old.execute(statement.format("hakiri." if audit_url else ""))  # type: ignore[arg-type]  # of two drivers
    with open_audit(audit_url, tmp_path) as again:
        for _ in range(2):
            again.alerts.raise_(*OF, EMPTY, None)
        assert [found.times for found in again.alerts.newest()] == [2]
