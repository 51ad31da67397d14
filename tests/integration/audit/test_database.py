from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import psycopg
import pytest
from sqlalchemy import Connection, QueuePool, text

from hakiri_dagster.audit.address import AuditAddress
from hakiri_dagster.audit.database import SQLITE_FILE, AuditDb, open_audit, open_audit_view
from hakiri_dagster.audit.engine import Transactions, sqlite_transactions
from hakiri_dagster.audit.migrations import STEPS, migrate
from hakiri_dagster.errors import AuditBusy, AuditError, AuditTooNew, AuditUnavailable
from hakiri_dagster.planning.chunks import WholeTable
from hakiri_dagster.planning.states import ChunkState


def test_many_may_open_it_for_the_first_time_at_once(audit_url: str | None, tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as threads:
        opened = list(threads.map(lambda _: open_audit(audit_url, tmp_path), range(6)))
    for audit in opened:
        assert audit.chunks.states("a", "b") == ()
        audit.close()


def test_a_view_of_a_project_without_an_audit_db_is_empty_and_makes_none(tmp_path: Path) -> None:
    with open_audit_view(None, tmp_path / "none") as view:
        assert view.status("shop")["phase"] == "planning"
        assert view.chunks.states("shop", "orders") == ()
    assert not (tmp_path / "none").exists()


def test_a_view_sees_what_was_written(audit: AuditDb, audit_url: str | None, tmp_path: Path) -> None:
    audit.cursors.put("shop", "orders", {"id": 7})
    with open_audit_view(audit_url, tmp_path) as view:
        assert view.cursors.get("shop", "orders") == {"id": 7}


def test_steps_that_are_missing_are_taken_in_one_transaction(tmp_path: Path) -> None:
    def add(connection: Connection) -> None:
        connection.execute(text("ALTER TABLE table_state ADD COLUMN note TEXT"))

    def stumble(connection: Connection) -> None:
        raise ValueError("half way")

    transactions = sqlite_transactions(tmp_path / "a.sqlite")
    migrate(transactions)
    with pytest.raises(ValueError, match="half way"):
        migrate(transactions, (*STEPS, add, stumble))
    migrate(transactions, (*STEPS, add))
    transactions.read(lambda c: c.execute(text("SELECT note FROM table_state")))
    with pytest.raises(
        AuditTooNew, match=f"version {len(STEPS) + 1}, and this hakiri knows versions up to {len(STEPS)}"
    ):
        migrate(transactions)
    transactions.close()


def test_an_audit_db_of_the_first_version_learns_who_runs_a_run(
    audit: AuditDb, audit_url: str | None, tmp_path: Path
) -> None:
    back = [
        "DROP INDEX {}pipeline_run_open",
        "ALTER TABLE {}pipeline_run DROP COLUMN holder_node",
        "UPDATE {}audit_version SET version = 1",
    ]
    with (
        psycopg.connect(audit_url, autocommit=True)
        if audit_url
        else sqlite3.connect(tmp_path / SQLITE_FILE, isolation_level=None)
    ) as old:
        for statement in back:
            old.execute(statement.format("hakiri." if audit_url else ""))  # type: ignore[arg-type]  # of two drivers
    with open_audit(audit_url, tmp_path) as again:
        again.runs.start("r", "shop", "orders", holder="me", holder_is_dead=lambda _: None)
        assert again.runs.recent("shop")[0].status == "running"


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / SQLITE_FILE).write_text("hello, I am a text that is long enough to be taken for a header" * 20)
    with pytest.raises(AuditError, match="no SQLite database"):
        open_audit(None, tmp_path)


def test_a_state_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AuditError, match="cannot be made"):
        open_audit(None, tmp_path / "file" / "state")


def test_a_lock_that_somebody_keeps_is_told_as_transient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hakiri_dagster.audit.engine.BUSY_SECONDS", 0.01)
    with open_audit(None, tmp_path) as audit:
        other = sqlite3.connect(tmp_path / SQLITE_FILE, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(AuditBusy, match="locked by another process") as busy:
            audit.cursors.put("shop", "orders", {})
        assert busy.value.kind == "transient"
        assert audit.cursors.get("shop", "orders") is None, "readers go on"
        other.execute("ROLLBACK")
        other.close()
        audit.cursors.put("shop", "orders", {})


def test_a_lock_that_somebody_keeps_in_postgresql_is_told_as_well(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hakiri_dagster.audit.engine.BUSY_SECONDS", 0.05)
    with open_audit(database_url, tmp_path) as audit, psycopg.connect(database_url) as other:
        other.execute("LOCK TABLE hakiri.pipeline_cursor")
        with pytest.raises(AuditBusy, match="locked by another session") as busy:
            audit.cursors.put("shop", "orders", {})
        assert busy.value.kind == "transient"
        other.rollback()
        audit.cursors.put("shop", "orders", {})


def test_a_client_that_is_lost_in_a_transaction_does_not_hold_up_the_others(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_audit(database_url, tmp_path) as audit:
        audit.cursors.put("shop", "orders", {"id": 1})
        monkeypatch.setattr("hakiri_dagster.audit.engine.IDLE_SECONDS", 0.5)
        with open_audit(database_url, tmp_path) as lost:
            monkeypatch.undo()

            def dies_here(connection: Connection) -> None:
                connection.execute(text("UPDATE hakiri.pipeline_cursor SET cursor_json = '{}'"))
                audit.cursors.put("shop", "orders", {"id": 2})  # which the server lets through when it ends the other
                connection.execute(text("SELECT 1"))

            with pytest.raises(AuditUnavailable, match="ended a session of which it heard nothing"):
                lost._transactions.write(dies_here)
        assert audit.cursors.get("shop", "orders") == {"id": 2}


def test_whoever_gives_permits_holds_locks_for_ten_seconds_at_most_and_others_for_thirty(
    database_url: str, tmp_path: Path
) -> None:
    def limits(transactions: Transactions) -> list[object]:
        shown = ("SHOW lock_timeout", "SHOW idle_in_transaction_session_timeout")
        return [transactions.read(lambda c, query=query: c.execute(text(query)).scalar_one()) for query in shown]

    with open_audit(database_url, tmp_path) as audit:
        assert limits(audit._transactions) == ["30s", "30s"]
    permits = AuditAddress(database_url, None).open()
    assert limits(permits) == ["10s", "10s"]
    permits.close()


def test_settings_of_its_own_in_the_url_are_kept(database_url: str, tmp_path: Path) -> None:
    url = f"{database_url}?options=-c%20work_mem%3D7MB&keepalives_idle=7"
    with open_audit(url, tmp_path) as audit:
        shown = audit._transactions.read(lambda c: c.execute(text("SHOW work_mem")).scalar_one())
    assert shown == "7MB"


def test_more_threads_than_connections_are_told_that_they_wait_for_each_other(audit: AuditDb) -> None:
    transactions = audit._transactions
    pool = transactions._engine.pool
    assert isinstance(pool, QueuePool)
    pool._timeout = 0.01
    most = pool.size() + pool._max_overflow
    began, done = Barrier(most + 1), Event()

    def hold_one() -> None:
        def work(_: Connection) -> None:
            began.wait()
            done.wait()

        transactions.read(work)

    with ThreadPoolExecutor(most) as threads:
        held = [threads.submit(hold_one) for _ in range(most)]
        began.wait()
        try:
            with pytest.raises(AuditBusy, match="too many threads of this process"):
                audit.cursors.get("shop", "orders")
        finally:
            done.set()
        assert [one.result() for one in held] == [None] * most


def test_a_full_disk_is_told_and_nothing_is_half_written(tmp_path: Path) -> None:
    with open_audit(None, tmp_path) as audit:
        states = [ChunkState(f"c{n}", WholeTable()) for n in range(20_000)]
        audit._transactions.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count = 60"))
        with pytest.raises(AuditError, match="the disk is full"):
            audit.chunks.save("shop", "orders", states)
        assert audit.chunks.states("shop", "orders") == ()


@pytest.mark.parametrize(
    ("change", "kind", "fault"),
    [
        (lambda url: url.rpartition("/")[0] + "/nowhere", AuditError, "does not exist"),
        (lambda url: url.replace("@127.0.0.1", "x@127.0.0.1"), AuditError, "refused the user or password"),
        (lambda url: "postgresql://me:s3cret@127.0.0.1:1/none", AuditUnavailable, "does not answer"),
        (lambda url: "mysql://me:s3cret@127.0.0.1/none", AuditError, "PostgreSQL or SQLite"),
        (lambda url: "nonsense s3cret", AuditError, "no database URL"),
    ],
)
def test_a_postgres_that_cannot_be_used_is_told_without_its_password(
    database_url: str, tmp_path: Path, change: object, kind: type[AuditError], fault: str
) -> None:
    with pytest.raises(kind, match=fault) as refused:
        open_audit(change(database_url), tmp_path)  # type: ignore[operator]  # a lambda of the table above
    assert "s3cret" not in str(refused.value)


def test_a_connection_that_was_cut_is_made_anew(database_url: str, tmp_path: Path) -> None:
    import psycopg

    with open_audit(database_url, tmp_path) as audit:
        audit.cursors.put("shop", "orders", {"id": 1})
        with psycopg.connect(database_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert audit.cursors.get("shop", "orders") == {"id": 1}


def test_the_seeds_columns_are_there(audit: AuditDb) -> None:
    for table, columns in {
        "pipeline_cursor": "pipeline_id, table_name, cursor_json, updated_at",
        "pipeline_run": "run_id, pipeline_id, started_at, ended_at, status, row_count, bytes, error_kind, error_msg,"
        " trace_id",
        "pipeline_chunks": "pipeline_id, chunk_id, predicate, status, attempts, started_at, completed_at,"
        " cursor_committed, holder_node, leased_until, winning_attempt",
    }.items():
        schema = "hakiri." if audit._transactions.is_postgres else ""
        audit._transactions.read(lambda c, q=f"SELECT {columns} FROM {schema}{table}": c.execute(text(q)))
