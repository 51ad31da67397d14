"""Which transactions are open at a source, and when nobody can tell."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
from psycopg import Connection
from psycopg.conninfo import make_conninfo

from hakiri_dagster.connectors.contract import Known
from hakiri_dagster.connectors.postgres.catalog import describe
from hakiri_dagster.connectors.postgres.connection import source_transaction
from hakiri_dagster.connectors.postgres.cursors import cursor_of
from hakiri_dagster.connectors.postgres.table import PostgresTable
from hakiri_dagster.connectors.postgres.transactions import list_transactions
from hakiri_dagster.errors import SourceUnavailable
from hakiri_dagster.planning.chunks import WHOLE
from hakiri_dagster.planning.horizon import CursorHistory, Horizon, Lookback
from hakiri_dagster.planning.windows import to_position
from tests.acceptance.command_line import eventually

from .conftest import Source, no_spark


def judge(source: Source, cursor: str = "id", history: CursorHistory | None = None, **lookback: int) -> Horizon:
    found = source.table("t").discover(
        cursor=cursor,
        known=Known(),
        spark=no_spark,
        lookback=Lookback(history or CursorHistory(), **lookback),
    )
    assert found.horizon is not None
    return found.horizon


@contextmanager
def in_transaction(url: str, *statements: str) -> Iterator[Connection]:
    with psycopg.connect(url) as connection:
        for statement in statements or ("SELECT",):
            connection.execute(statement.encode())
        yield connection
        connection.rollback()


@pytest.fixture
def table(source: Source) -> Source:
    source.run(
        "CREATE TABLE t (id bigserial PRIMARY KEY, at timestamptz DEFAULT now())",
        "INSERT INTO t (at) VALUES ('2024-01-01'), ('2024-01-02')",
    )
    return source


def test_open_transactions_are_listed_with_who_holds_them(table: Source) -> None:
    assert judge(table).transactions.open == ()
    with in_transaction(make_conninfo(table.url, application_name="report")) as connection:
        (found,) = judge(table).transactions.open
        assert (found.pid, found.application, found.state) == (
            connection.info.backend_pid,
            "report",
            "idle in transaction",
        )
        assert found.began_at is not None
        assert judge(table).safe is None
    horizon = judge(table)
    assert (horizon.transactions.open, horizon.safe) == ((), 2)


def test_sessions_that_read_the_source_for_us_are_not_waited_for(table: Source) -> None:
    own = table.table("t")
    assert isinstance(own, PostgresTable)
    with in_transaction(own.config.conninfo):
        assert judge(table).transactions.open == ()


def test_a_session_that_only_lacks_a_name_as_ours_does_is_listed(table: Source) -> None:
    """A pooler may give all sessions of a role one name, or none."""
    own = table.table("t")
    assert isinstance(own, PostgresTable)
    unnamed = make_conninfo(own.config.conninfo, application_name="")
    renamed = replace(own, config=replace(own.config, conninfo=unnamed))
    with in_transaction(unnamed):
        found = renamed.discover(cursor="id", known=Known(), spark=no_spark, lookback=Lookback()).horizon
        assert found is not None
        assert len(found.transactions.open) == 1


def test_sessions_whose_activities_are_not_tracked_are_named(table: Source) -> None:
    application = f"untracked_{os.getpid()}"
    table.run(f"CREATE ROLE {application} LOGIN PASSWORD 'x'", f"ALTER ROLE {application} SET track_activities = off")
    try:
        with in_transaction(make_conninfo(table.url, user=application, password="x")):
            unknown = judge(table).transactions.unknown
            assert unknown is not None
            assert f"sessions of {application} have track_activities off" in unknown.reason
    finally:
        table.run(f"DROP ROLE {application}")


def test_a_chained_transaction_began_when_the_one_before_was_asked_to_commit(table: Source) -> None:
    """Its predecessor is listed while it commits, and takes no note of it: rows have the time of the commit's begin."""
    table.run(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$",
        "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
        "EXECUTE FUNCTION slow()",
    )
    with psycopg.connect(table.url, autocommit=True) as session, ThreadPoolExecutor(1) as pool:
        session.execute("BEGIN; INSERT INTO t DEFAULT VALUES")
        chained = pool.submit(session.execute, "COMMIT AND CHAIN")
        assert eventually(lambda: table.ask("SELECT FROM pg_stat_activity WHERE query = 'COMMIT AND CHAIN'") != [])
        during = judge(table, "at")
        assert len(during.transactions.open) == 1
        chained.result()
        session.execute("INSERT INTO t DEFAULT VALUES")
        after = judge(table, "at", during.history)
        (open_now,) = after.transactions.open
        (stamped,) = session.execute("SELECT max(at) FROM t").fetchone() or (None,)
        assert after.safe is not None
        assert after.safe <= to_position(stamped), "its row is read again"
        assert (open_now.began_at or 0) < during.transactions.clock
        session.execute("ROLLBACK")


def test_another_database_of_the_server_does_not_matter(table: Source) -> None:
    with in_transaction(make_conninfo(table.url, dbname="postgres")):
        assert judge(table).transactions.open == ()


def test_what_was_seen_before_a_transaction_began_is_complete(table: Source) -> None:
    before = judge(table)
    with in_transaction(table.url):
        table.run("INSERT INTO t DEFAULT VALUES")
        assert judge(table, history=before.history).safe == 2


def test_a_new_table_waits_for_transactions_that_are_about_to_end(table: Source) -> None:
    ends_while_it_is_awaited = (
        "SELECT pg_backend_pid(); SET LOCAL idle_in_transaction_session_timeout = '300ms'; INSERT INTO t DEFAULT VALUES"
    )
    connection = psycopg.connect(table.url)
    connection.execute(ends_while_it_is_awaited.encode())
    assert judge(table, patience=30_000_000).safe == 2
    connection.close()


def test_a_role_that_sees_no_other_sessions_is_told_which_grant_it_needs(table: Source) -> None:
    reader = f"reader_{os.getpid()}"
    table.run(f"CREATE ROLE {reader} LOGIN PASSWORD 'x'", f"GRANT SELECT ON t TO {reader}")
    try:
        blind = Source(make_conninfo(table.url, user=reader, password="x"), table.spark)
        with in_transaction(table.url):
            unknown = judge(blind).transactions.unknown
            assert unknown is not None
            assert unknown.hint == f'run `GRANT pg_read_all_stats TO "{reader}"` at the source'
            assert judge(blind, "at").safe is not None, "the default lookback applies"
            table.run(f"GRANT pg_read_all_stats TO {reader}")
            seeing = judge(blind).transactions
            assert (seeing.unknown, len(seeing.open)) == (None, 1)
    finally:
        table.run(f"DROP OWNED BY {reader}", f"DROP ROLE {reader}")


CACHED = ("CREATE SEQUENCE s CACHE 50", "CREATE TABLE b (n bigint DEFAULT nextval('s'))")
PARTITIONED = ("CREATE TABLE t (id bigint) PARTITION BY RANGE (id)",)
FOREIGN = ("CREATE FOREIGN DATA WRAPPER away", "CREATE SERVER away FOREIGN DATA WRAPPER away")


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (["CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY (CACHE 20), v int)"], "CACHE 20"),
        (["CREATE SEQUENCE s INCREMENT BY 50", "CREATE TABLE t (id bigint DEFAULT nextval('s'))"], "INCREMENT BY 50"),
        (["CREATE TABLE b (id bigserial)", "CREATE MATERIALIZED VIEW t AS SELECT * FROM b"], "materialized view"),
        ([*CACHED, "CREATE VIEW w AS SELECT n AS id FROM b", "CREATE VIEW t AS SELECT * FROM w"], "CACHE 50"),
        ([*CACHED, "CREATE MATERIALIZED VIEW m AS SELECT n AS id FROM b", "CREATE VIEW t AS TABLE m"], "materialized"),
        ([*PARTITIONED, *FOREIGN, "CREATE FOREIGN TABLE p PARTITION OF t DEFAULT SERVER away"], "foreign table"),
        ([*PARTITIONED, "CREATE TABLE p PARTITION OF t DEFAULT"], None),
        (["CREATE TABLE t (id bigserial, v int)"], None),
        (["CREATE TABLE t (id bigint, v int)"], None),
        (["CREATE TABLE b (id bigserial, v int)", "CREATE VIEW t AS SELECT * FROM b"], None),
    ],
)  # fmt: skip
def test_cursors_whose_order_no_transaction_tells_are_named(
    source: Source, statements: list[str], reason: str | None
) -> None:
    source.run(*statements)
    table = source.table("t")
    assert isinstance(table, PostgresTable)
    with source_transaction(table.config, "t") as connection:
        by = cursor_of(describe(connection, "public", "t", "t"), "id", frozenset(), "t")
        unknown = list_transactions(connection, table.config, by, "public.t").unknown
    assert (unknown is not None and reason in unknown.reason) if reason else unknown is None


def test_a_server_that_knows_less_than_the_one_that_was_planned_by_is_not_read(table: Source) -> None:
    planned = table.table("t")
    schema = planned.discover(cursor=None, known=Known(), spark=no_spark).schema
    horizon = judge(table)
    assert schema is not None
    assert horizon.transactions.wal is not None
    reading = planned.read(table.spark, schema, None, [WHOLE], {}, horizon=horizon)
    assert reading.frame.count() == 2
    reading.close()
    ahead = replace(horizon, transactions=replace(horizon.transactions, wal="FFFF/0"))
    with pytest.raises(SourceUnavailable, match="replayed less of the log"):
        planned.read(table.spark, schema, None, [WHOLE], {}, horizon=ahead)
    worker = reading.direct
    assert worker is not None
    with pytest.raises(SourceUnavailable, match="replayed less of the log"):
        list(replace(worker, wal="FFFF/0").read(0))  # type: ignore[type-var]
