"""Which of the server's errors are about a row: without it, the load would go on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from hakiri_dagster.destinations.postgres.driver_errors import is_transient, translated
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.security.secrets import redact

_OF_ROWS = frozenset(
    {
        "22",  # a value that its type, or an expression over it, cannot take
        "23",  # a constraint
        "44",  # a view's WITH CHECK OPTION
        "P0",  # RAISE in a trigger, and what PL/pgSQL asserts
    }
)
_USED_UP = "2200H"  # a sequence: no row is to blame, and none that comes later could be stored
_TOO_LARGE = "54000"  # for a page, or for an index's
_RAISED = "exec_stmt_raise"  # by RAISE in a trigger
_NOT_OF_ROWS = re.compile("[0-4A-H]|5[34578]|72|XX")  # SQL's own states, and those of the server's own troubles


class RowsNotTaken(DestinationError):
    """The server refused a statement for a row that it brought; which one is to be found out."""

    def __init__(self, error: psycopg.Error, where: str) -> None:
        told = translated(error, where)
        super().__init__(told.what, where=told.where, hint=told.hint)
        self.error = error


@contextmanager
def rows_at_stake(where: str) -> Iterator[None]:
    """Around a statement that brings rows."""
    try:
        yield
    except psycopg.Error as error:
        if is_about_a_row(error):
            raise RowsNotTaken(error, where) from error
        raise


def is_about_a_row(error: psycopg.Error) -> bool:
    state = error.sqlstate
    if state is None or state == _USED_UP or is_transient(error):
        return False
    if state[:2] in _OF_ROWS or state == _TOO_LARGE:
        return True
    return error.diag.source_function == _RAISED and _NOT_OF_ROWS.match(state) is None


def why_refused(error: psycopg.Error) -> str:
    """Beside the row, which needs no second copy of its values."""
    diag = error.diag
    message = diag.message_primary or type(error).__name__
    parts = [message]
    if diag.message_detail and not _shows_the_row(error):
        parts.append(diag.message_detail)
    if diag.constraint_name and diag.constraint_name not in message:
        parts.append(f"constraint {diag.constraint_name}")
    return redact(" · ".join(parts))


def _shows_the_row(error: psycopg.Error) -> bool:
    """NOT NULL and CHECK constraints do; that no partition takes a row is told with its key."""
    return error.sqlstate == "23502" or (error.sqlstate == "23514" and error.diag.constraint_name is not None)
