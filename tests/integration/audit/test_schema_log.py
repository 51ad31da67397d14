from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import text

from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.audit.schema_log import Decided
from hakiri_dagster.planning.schema_diff import Change, KnownColumn, KnownSchema
from tests.integration.audit.conftest import OpenAudit

OF = ("shop", "orders")
FIRST = KnownSchema((KnownColumn("id", "bigint", 1), KnownColumn('ü"', "numeric(10,2)", 1, dropped=True)), ("id",), 1)
ADDED = Change("added", "w", None, "text")


def test_a_schema_is_known_with_what_became_of_its_changes(audit: AuditDb) -> None:
    assert audit.schemas.known(*OF) is None
    audit.schemas.settle(*OF, FIRST, [Decided(ADDED, "applied")], "run-1")
    assert audit.schemas.known(*OF) == FIRST
    (event,) = audit.schemas.events("shop", "orders")
    assert (event.kind, event.column, event.after, event.decision, event.run_id) == (
        "added", "w", "text", "applied", "run-1",
    )  # fmt: skip
    assert audit.schemas.events("other") == ()


def test_an_event_is_written_once_and_in_order(audit: AuditDb) -> None:
    dropped = Change("dropped", "v", "text", None, 1)
    for run in ("run-1", "run-2"):
        audit.schemas.note(*OF, [Decided(dropped, "refused"), Decided(ADDED, "refused")], run_id=run)
    audit.schemas.note(*OF, [Decided(dropped, "accepted")], actor="ann", reason="why not")
    found = [(event.kind, event.decision, event.run_id, event.actor) for event in audit.schemas.events()]
    assert found == [
        ("dropped", "refused", "run-1", None),
        ("added", "refused", "run-1", None),
        ("dropped", "accepted", None, "ann"),
    ]
    assert audit.schemas.accepted(*OF) == {dropped.identity}
    assert audit.schemas.accepted("shop", "other") == frozenset()


def test_a_schema_that_was_followed_earlier_does_not_come_back(audit: AuditDb) -> None:
    later = KnownSchema((KnownColumn("id", "numeric", 3),), (), 3)
    audit.schemas.settle(*OF, later, [])
    audit.schemas.settle(*OF, FIRST, [])
    assert audit.schemas.known(*OF) == later


def test_two_that_settle_at_once_write_one_event(open_again: OpenAudit) -> None:
    audits = [open_again() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda audit: audit.schemas.settle(*OF, FIRST, [Decided(ADDED, "applied")]), audits))
    assert len(audits[0].schemas.events()) == 1


def test_an_audit_db_of_an_earlier_version_gets_its_log(
    audit: AuditDb, open_again: OpenAudit, audit_url: str | None
) -> None:
    place = "hakiri." if audit_url else ""

    def back(connection: object) -> None:
        for statement in (
            f"DROP TABLE {place}schema_log",
            f"DROP TABLE {place}accepted_schema",
            f"UPDATE {place}audit_version SET version = 3",
        ):
            connection.execute(text(statement))  # type: ignore[attr-defined]  # SQLAlchemy's

    audit._transactions.write(back)
    again = open_again()
    again.schemas.settle(*OF, FIRST, [])
    assert again.schemas.known(*OF) == FIRST
