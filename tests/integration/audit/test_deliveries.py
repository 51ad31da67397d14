from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import Connection, event, update

from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.audit.deliveries import KEPT_FOR, Arrival, OpenWork
from hakiri_dagster.audit.schema import DELIVERIES
from tests.integration.audit.conftest import OpenAudit


def arrival(delivery_id: str = "1", pipeline_id: str = "shop", proof: str | None = None) -> Arrival:
    return Arrival(pipeline_id, "webhook", delivery_id, "0" * 64, 12, proof)


def test_a_delivery_is_stored_once(audit: AuditDb) -> None:
    assert audit.deliveries.store([arrival("1"), arrival("2"), arrival("1")]) == (True, True, False)
    assert audit.deliveries.store([arrival("1"), arrival("1", "other")]) == (False, True)
    assert audit.deliveries.numbers("shop")["pending"] == 2


def test_another_id_with_the_same_proof_is_no_other_delivery(audit: AuditDb) -> None:
    first, again, without, without_too = arrival("1", proof="p"), arrival("2", proof="p"), arrival("3"), arrival("4")
    assert audit.deliveries.store([first, again, without, without_too]) == (True, False, True, True)


def test_of_many_that_store_the_same_at_once_one_is_the_first(open_again: OpenAudit) -> None:
    opened = [open_again() for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        stored = list(threads.map(lambda audit: audit.deliveries.store([arrival()]), opened))
    assert sorted(stored) == [(False,)] * 3 + [(True,)]


def test_what_waits_for_a_pipeline_is_taken_together_and_what_comes_later_is_not(audit: AuditDb) -> None:
    audit.deliveries.store([arrival("1"), arrival("2"), arrival("1", "other")])
    assert {work.pipeline_id for work in audit.deliveries.open_work(["shop", "other"])} == {"shop", "other"}
    assert audit.deliveries.take("shop", "batch") == 2
    audit.deliveries.store([arrival("3")])
    assert audit.deliveries.open_work(["shop"]) == (OpenWork("shop", "batch", 0),)
    audit.deliveries.note_runs("batch", ["run-1"])
    audit.deliveries.close("batch", "done")
    assert audit.deliveries.open_work(["shop"]) == (OpenWork("shop", None, 0),)
    found = {one.delivery_id: one for one in audit.deliveries.newest(["shop"], 10)}
    assert [(found[key].state, found[key].run_ids) for key in "123"] == [
        ("done", ("run-1",)),
        ("done", ("run-1",)),
        ("pending", ()),
    ]
    assert found["1"].ended_at is not None


def test_what_was_put_off_is_not_looked_at_before_its_time_and_what_comes_meanwhile_neither(audit: AuditDb) -> None:
    audit.deliveries.store([arrival("1")])
    audit.deliveries.take("shop", "batch")
    audit.deliveries.put_off(OpenWork("shop", "batch", 0), timedelta(minutes=1), 1)
    audit.deliveries.store([arrival("2")])
    assert audit.deliveries.open_work(["shop"]) == ()
    audit.deliveries.put_off(OpenWork("shop", "batch", 1), timedelta(seconds=-1), 2)
    assert audit.deliveries.open_work(["shop"]) == (OpenWork("shop", "batch", 2),)
    audit.deliveries.close("batch", "done")
    assert audit.deliveries.open_work(["shop"]) == (OpenWork("shop", None, 0),), "another batch begins anew"
    audit.deliveries.take("shop", "next")
    assert audit.deliveries.open_work(["shop"]) == (OpenWork("shop", "next", 0),)


def test_the_pipeline_that_was_looked_at_longest_ago_comes_first(audit: AuditDb) -> None:
    for pipeline in "abc":
        audit.deliveries.store([arrival("1", pipeline)])
    audit.deliveries.take("a", "batch")
    audit.deliveries.end_look("batch", 0)
    assert [work.pipeline_id for work in audit.deliveries.open_work(list("abc"))] == ["b", "c", "a"]


def test_a_look_that_has_begun_is_put_off_with_its_batch_until_its_end_is_told(audit: AuditDb) -> None:
    audit.deliveries.store([arrival("1")])
    audit.deliveries.take("shop", "batch")
    audit.deliveries.begin_look("batch", timedelta(minutes=1), 3)
    audit.deliveries.store([arrival("2")])
    assert audit.deliveries.open_work(["shop"]) == ()
    audit.deliveries.end_look("batch", 2)
    assert audit.deliveries.open_work(["shop"]) == (OpenWork("shop", "batch", 2),)
    audit.deliveries.begin_look("batch", timedelta(minutes=1), 3)
    audit.deliveries.close("batch", "done")
    assert audit.deliveries.open_work(["shop"]) == (OpenWork("shop", None, 0),), "what came later does not wait for it"


def test_others_pipelines_are_left_alone(audit: AuditDb) -> None:
    audit.deliveries.store([arrival("1", "another projects")])
    assert audit.deliveries.open_work(["shop"]) == ()
    assert audit.deliveries.open_work([]) == ()


@pytest.mark.parametrize(("age", "stored"), [(KEPT_FOR - timedelta(days=1), False), (KEPT_FOR * 2, True)])
def test_what_is_over_is_remembered_for_long(audit: AuditDb, age: timedelta, stored: bool) -> None:
    audit.deliveries.store([arrival("1")])
    audit.deliveries.take("shop", "old")
    audit.deliveries.close("old", "done")

    def put_back(connection: Connection) -> None:
        connection.execute(update(DELIVERIES).values(ended_at=audit._transactions.now(connection) - age))

    audit._transactions.write(put_back)
    audit.deliveries.store([arrival("2")])
    audit.deliveries.take("shop", "new")
    audit.deliveries.close("new", "done")
    assert audit.deliveries.store([arrival("1")]) == (stored,)


def test_with_nothing_to_do_one_query_by_an_index_says_so(audit: AuditDb) -> None:
    asked: list[str] = []
    audit.deliveries.store([arrival(str(number)) for number in range(50)])
    audit.deliveries.take("shop", "batch")
    audit.deliveries.close("batch", "done")
    engine = audit._transactions._engine
    event.listen(engine, "before_cursor_execute", lambda _c, _cursor, text, *_rest: asked.append(text))
    assert audit.deliveries.open_work(["shop"]) == ()
    (query,) = [text for text in asked if text.lstrip().upper().startswith("SELECT")]
    if not audit._transactions.is_postgres:
        plan = audit._transactions.read(
            lambda c: c.exec_driver_sql("EXPLAIN QUERY PLAN " + query, (1, 0)[: query.count("?")]).all()
        )
        assert "deliveries_open" in str(plan)


def back_to(version: int, audit: AuditDb, undo: str, audit_url: str | None) -> str:
    """Where the audit DB's tables are."""
    place = "hakiri." if audit_url else ""
    for statement in (undo.format(place=place), f"UPDATE {place}audit_version SET version = {version}"):
        audit._transactions.write(lambda c, text=statement: c.exec_driver_sql(text))
    return place


def test_an_audit_db_from_before_triggers_learns_of_deliveries(
    open_again: OpenAudit, audit_url: str | None, audit: AuditDb
) -> None:
    back_to(8, audit, "DROP TABLE {place}deliveries", audit_url)
    assert open_again().deliveries.store([arrival()]) == (True,)


def test_a_batch_is_closed_without_reading_all_deliveries_that_are_over(
    open_again: OpenAudit, audit_url: str | None, audit: AuditDb
) -> None:
    """Also in an audit DB of before; the write lock is held meanwhile."""
    place = back_to(12, audit, "DROP INDEX {place}deliveries_ended", audit_url)
    transactions = open_again()._transactions
    forgotten = f"DELETE FROM {place}deliveries WHERE ended_at < '2020-01-01'"
    if transactions.is_postgres:  # which chooses by how many there are
        names = "SELECT indexname FROM pg_indexes WHERE schemaname = 'hakiri' AND tablename = 'deliveries'"
        assert ("deliveries_ended",) in transactions.read(lambda c: c.exec_driver_sql(names).all())
    else:
        plan = transactions.read(lambda c: c.exec_driver_sql(f"EXPLAIN QUERY PLAN {forgotten}").all())
        assert "USING INDEX deliveries_ended" in str(plan)


def test_what_a_sender_forgets_is_stored_so_that_it_outlives_a_loss_of_power(audit: AuditDb) -> None:
    """As the database's own session says it while the rows are written."""
    asked = "SHOW synchronous_commit" if audit._transactions.is_postgres else "PRAGMA synchronous"
    written: list[tuple[str, object]] = []

    def ask(connection: Connection, _cursor: object, text: str, *_more: object) -> None:
        if "deliveries" in text and not text.startswith("SELECT"):
            (row,) = connection.connection.cursor().execute(asked).fetchall()
            written.append((text.split()[0], row[0]))

    event.listen(audit._transactions._engine, "after_cursor_execute", ask)
    audit.deliveries.store([arrival("1")])
    audit.deliveries.take("shop", "batch")
    assert written == [(verb, "on" if audit._transactions.is_postgres else 2) for verb in ("INSERT", "UPDATE")]
