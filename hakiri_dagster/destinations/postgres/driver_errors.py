"""The driver's errors as ours: what happened, where, what to do, and whether trying again may help."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from hakiri_dagster.errors import DestinationError, DestinationUnavailable

_TRANSIENT_CLASSES = frozenset({"08", "40", "57"})
_TRANSIENT_STATES = frozenset(
    {
        "25P03",  # idle in transaction too long
        "25P04",  # transaction too long
        "53000",
        "53200",  # out of memory
        "53300",  # too many connections
        "55006",  # object in use
        "55P03",  # lock not available
        "55P04",
    }
)
_PERMANENT_STATES = frozenset({"57P04"})  # the database was dropped
_NOT_TRANSIENT_TEXTS = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "failed to resolve host",
    "could not translate host name",
    "certificate",
)

_HINTS: dict[str, str] = {
    "28P01": "check the user and password in the destination's url",
    "28000": "check the user in the destination's url and the server's pg_hba.conf",
    "55P03": "another session holds the table locked: end it, or apply again later",
    "3D000": "create the database, or correct its name in the destination's url",
    "25006": "the database, the session or the server (a replica?) is read-only: point the url at the primary",
    "53100": "the destination's disk is full: free space there, then apply again; nothing was changed",
    "54000": "the row or table exceeds a limit of PostgreSQL",
    "42501": "grant the destination's user the missing privilege",
    "42P01": "correct the name, or make it; a target that was dropped or renamed is created anew by the next apply",
    "3F000": "correct the name, or make it; a target's schema that was dropped is created anew by the next apply",
    "42703": "correct the name; a column that the target lost is added anew by the next apply",
    "23502": "give the target's column a default, make it nullable, or let the source provide it",
    "23503": "load the referenced table first, or drop the constraint",
    "23505": "the row exists already: load with mode upsert, or remove the duplicate",
    "23514": "correct the row at the source, or relax the constraint",
    "2200H": "give the column and its sequence a wider type or other bounds, or let the source provide the values",
    "22021": "the destination's encoding lacks a character: use a UTF8 database",
    "22P05": "the destination's encoding lacks a character: use a UTF8 database",
}


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Raises DestinationUnavailable for what may pass by itself, DestinationError for what will not."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, where) from error


def translated(error: psycopg.Error, where: str) -> DestinationError:
    """Keeps the server's words, which name constraint, column and row; never the connection's settings."""
    kind = DestinationUnavailable if is_transient(error) else DestinationError
    return kind(_what(error), where=where, hint=_hint(error))


def is_transient(error: psycopg.Error) -> bool:
    state = error.sqlstate
    if state is None:
        text = str(error)
        if any(part in text for part in _NOT_TRANSIENT_TEXTS) or _fatal_at_connect(error):
            return False
        return isinstance(error, psycopg.OperationalError)
    if state in _PERMANENT_STATES:
        return False
    return state in _TRANSIENT_STATES or state[:2] in _TRANSIENT_CLASSES


def _fatal_at_connect(error: psycopg.Error) -> bool:
    """libpq gives no SQLSTATE for a refused login; its text is all there is."""
    text = str(error)
    return "FATAL" in text and any(
        part in text for part in ("does not exist", "is not permitted to log in", "permission denied for database")
    )


def _what(error: psycopg.Error) -> str:
    diag = error.diag
    message = diag.message_primary or _first_line(error)
    parts = [message]
    if diag.message_detail:
        parts.append(diag.message_detail)
    if diag.constraint_name and diag.constraint_name not in message:
        parts.append(f"constraint {diag.constraint_name}")
    if diag.context and diag.context.startswith("COPY"):
        parts.append(_first_line_of(diag.context))
    return " · ".join(parts)


def _hint(error: psycopg.Error) -> str | None:
    if error.sqlstate == "23514" and error.diag.constraint_name is None:
        return "make a partition for the value, or a DEFAULT partition, or correct the row at the source"
    if error.sqlstate == "42501" and "must be owner" in str(error):
        return "make the destination's user a member of the role that owns it: GRANT owner TO user"
    if error.sqlstate in _HINTS:
        return _HINTS[error.sqlstate]
    text = str(error)
    if "password authentication failed" in text or "no password supplied" in text:
        return _HINTS["28P01"]
    if "database" in text and "does not exist" in text:
        return _HINTS["3D000"]
    if "No space left" in text:
        return _HINTS["53100"]
    if error.sqlstate is None and isinstance(error, psycopg.OperationalError):
        return "is the destination running, and does its url name the right host and port?"
    return error.diag.message_hint


def _first_line(error: psycopg.Error) -> str:
    return _first_line_of(str(error)) or type(error).__name__


def _first_line_of(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""
