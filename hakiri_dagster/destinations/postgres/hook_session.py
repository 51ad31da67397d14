"""Where the SQL of hooks runs: a connection of its own, each statement in a transaction of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import errors, sql

from hakiri_dagster.destinations.hooks_contract import Attempt, Relation
from hakiri_dagster.destinations.postgres.catalog import target_of
from hakiri_dagster.destinations.postgres.connection import APPLICATION_NAME_PREFIX, Connection, Connections
from hakiri_dagster.destinations.postgres.driver_errors import translate_errors
from hakiri_dagster.destinations.postgres.fence import attempt_name, fitting
from hakiri_dagster.destinations.postgres.plannable import only_what_plans_without_foreign_code
from hakiri_dagster.errors import DestinationError, HooksBusy
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.security.sql_guard import HookSql, judge, with_table

_STATEMENT_TIMEOUT = "1h"
"""A hook that needs longer sets its own before."""
_PATIENCE = "5min"

_LOCK = """
SELECT pg_advisory_lock(pg_catalog.hashtextextended(
    pg_catalog.concat_ws('/', 'hakiri hooks', %s::text, %s::text, %s::text), 0::bigint))
"""


@contextmanager
def hook_session(connections: Connections, table: Table, attempt: Attempt | None) -> Iterator[PostgresHookSession]:
    """Without an attempt these are post-hooks, which one run at a time may settle."""
    connection = connections.open()  # not given back: what hooks have set stays in it
    try:
        connection.autocommit = True
        with translate_errors(table.label):
            _set(connection, application_name=_name(table, attempt), statement_timeout=_STATEMENT_TIMEOUT)
            if attempt is None:
                _be_alone(connection, table)
        yield PostgresHookSession(connection, table)
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class PostgresHookSession:
    connection: Connection
    table: Table

    def execute(self, statement: str, relation: Relation) -> Sequence[str]:
        quoted = sql.Identifier(*relation).as_string(self.connection)
        hook = judge(with_table(statement, quoted))
        with translate_errors(self.table.label), _told_of_timeouts(self.table):
            if hook.explains is None:
                return self._lines(hook)
            with only_what_plans_without_foreign_code(self.connection, hook.explains, self.table.label):
                return self._lines(hook)

    def _lines(self, hook: HookSql) -> Sequence[str]:
        # binary, for that is the protocol which takes one statement and not several
        done = self.connection.execute(hook.text.encode(), binary=True)
        return [str(row[0]) for row in done.fetchall()] if done.description else []


def _name(table: Table, attempt: Attempt | None) -> str:
    if attempt is None:
        return fitting(f"{APPLICATION_NAME_PREFIX}:hooks::{table.label}")
    return attempt_name(table, attempt.chunk_key, attempt.token)


def _set(connection: Connection, **settings: str) -> None:
    for name, value in settings.items():
        connection.execute("SELECT set_config(%s, %s, false)", (name, value))


def _be_alone(connection: Connection, table: Table) -> None:
    """Until the connection ends."""
    _set(connection, lock_timeout=_PATIENCE)
    try:
        connection.execute(_LOCK, (table.pipeline_id, table.name, target_of(table)))
    except errors.LockNotAvailable:
        raise HooksBusy(
            "another run has been at work on the hooks of this table for minutes",
            where=table.label,
            hint="what this run owes is run by the next apply",
        ) from None
    connection.execute("RESET lock_timeout")


@contextmanager
def _told_of_timeouts(table: Table) -> Iterator[None]:
    """To try again what took too long would take as long again."""
    try:
        yield
    except errors.QueryCanceled as error:
        raise DestinationError(
            error.diag.message_primary or "the statement was cancelled",
            where=table.label,
            hint=f"statements of hooks may take {_STATEMENT_TIMEOUT}; `SET statement_timeout = …` in a hook before"
            " allows more",
        ) from error
