"""A SELECT of the manifest's, asked of rows: judged, planned without anybody else's code, and unable to change
anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors, sql

from hakiri_dagster.destinations.hooks_contract import Relation
from hakiri_dagster.destinations.postgres.asked_rows import AskedRows
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.driver_errors import is_transient
from hakiri_dagster.destinations.postgres.plannable import only_what_plans_without_foreign_code
from hakiri_dagster.errors import UnsafeSql
from hakiri_dagster.quality.measures import FEW, SHOWN_CHARACTERS, Answer, Probe, Unanswered, Violations
from hakiri_dagster.security.sql_guard import ProbeSql, judge_probe, with_table

OF_ONE_LOAD: Relation = ("pg_temp", "hakiri_rows_of_load")


def probed(connection: Connection, rows: AskedRows, probe: Probe) -> Answer:
    """A SELECT that cannot be asked has no answer; what may pass by itself is tried again, like any load."""
    try:
        with _within(connection, probe.seconds), _in_one_relation(connection, rows) as place:
            asked = judge_probe(with_table(probe.statement, relation(*place).as_string(connection)))
            own = {rows.own, place} - {OF_ONE_LOAD}
            with only_what_plans_without_foreign_code(connection, asked.reads - {place} | own, where=""):
                return _answer(connection, asked)
    except UnsafeSql as error:
        return Unanswered(f"it is not asked: {error.what}")
    except (errors.QueryCanceled, errors.LockNotAvailable):
        return Unanswered(f"it took longer than {probe.seconds:g} seconds")
    except psycopg.Error as error:
        if is_transient(error):
            raise
        return Unanswered(f"PostgreSQL refuses it: {error.diag.message_primary}")


@contextmanager
def _in_one_relation(connection: Connection, rows: AskedRows) -> Iterator[Relation]:
    """The SELECT names one relation; those of a load among others get a view, for as long as it takes."""
    if rows.load_id is None:
        yield rows.place
        return
    with connection.transaction(force_rollback=True):
        connection.execute(
            sql.SQL("CREATE TEMPORARY VIEW {} AS SELECT * FROM {}{}").format(
                sql.Identifier(OF_ONE_LOAD[1]), rows.relation, rows.where()
            )
        )
        yield OF_ONE_LOAD


@contextmanager
def _within(connection: Connection, seconds: float) -> Iterator[None]:
    """Waiting for locks included. Nothing of it stays."""
    with connection.transaction(force_rollback=True):
        for setting in ("statement_timeout", "lock_timeout"):
            connection.execute("SELECT set_config(%s, %s, true)", (setting, f"{max(seconds * 1000, 1):.0f}ms"))
        yield


def _answer(connection: Connection, asked: ProbeSql) -> Answer:
    """Rows stay with the server, but for a few."""
    with connection.cursor("hakiri_probe") as cursor:
        cursor.execute(asked.text.encode())
        found = cursor.fetchmany(FEW)
        if not found or (len(found) == 1 and _is_true(found[0])):
            return Violations(0)
        few = tuple(", ".join(map(_shown, row)) for row in found)
        rest = connection.execute("MOVE FORWARD ALL IN hakiri_probe").rowcount if len(found) == FEW else 0
        return Violations(len(found) + rest, few)


def _is_true(row: tuple[Any, ...]) -> bool:
    return len(row) == 1 and row[0] is True


def _shown(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
