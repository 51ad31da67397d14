"""What can go wrong with the audit DB, in our own errors. The one place that knows the drivers' codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from hakiri_dagster.errors import AuditBusy, AuditError, AuditFull, AuditUnavailable

_SQLITE_HINTS: dict[str, tuple[type[AuditError], str, str]] = {
    "SQLITE_BUSY": (AuditBusy, "is locked by another process", "wait for the other run to end, then try again"),
    "SQLITE_LOCKED": (AuditBusy, "is locked by another process", "wait for the other run to end, then try again"),
    "SQLITE_FULL": (AuditFull, "cannot grow: the disk is full", "make room, then run again; nothing was lost"),
    "SQLITE_READONLY": (AuditError, "is read-only", "give this user the right to write the file and its folder"),
    "SQLITE_CANTOPEN": (AuditError, "cannot be opened", "check that the folder exists and may be written"),
    "SQLITE_NOTADB": (AuditError, "is no SQLite database", "move the file away; it is rebuilt from the ledgers"),
    "SQLITE_CORRUPT": (AuditError, "is damaged", "move the file away; it is rebuilt from the ledgers"),
    "SQLITE_IOERR": (AuditUnavailable, "cannot be read or written", "check the disk, then run again"),
}
_POSTGRES_HINTS: tuple[tuple[str, type[AuditError], str, str], ...] = (
    ("40001", AuditBusy, "had two writers at the same rows", "run again"),
    ("40P01", AuditBusy, "had two writers at the same rows", "run again"),
    ("55P03", AuditBusy, "is locked by another session", "wait for the other run to end, then try again"),
    ("57014", AuditBusy, "did not answer in time", "run again when there is less work for it"),
    ("25P03", AuditUnavailable, "ended a session of which it heard nothing for too long", "run again"),
    ("53100", AuditFull, "cannot grow: the disk is full", "make room, then run again; nothing was lost"),
    ("53", AuditUnavailable, "has no connections or memory left", "raise its limits, or run again later"),
    ("57P", AuditUnavailable, "is shutting down or starting", "run again when it is up"),
    ("08", AuditUnavailable, "broke off the connection", "check that it is running, then run again"),
    ("28", AuditError, "refused the user or password", "check the user and password in [audit] url"),
    ("3D000", AuditError, "does not exist", "create the database, or correct [audit] url"),
    ("42501", AuditError, "refused for want of a permission", "grant CREATE on the database, or USAGE on `hakiri`"),
    ("25006", AuditError, "is read-only", "point [audit] url at the primary"),
)


@contextmanager
def translated(where: str) -> Iterator[None]:
    try:
        yield
    except exc.TimeoutError as error:
        hint = "run fewer loads at once, or again when the others have ended"
        raise AuditBusy(
            "the audit DB is waited for by too many threads of this process", where=where, hint=hint
        ) from error
    except exc.DBAPIError as error:
        raise _translate(error, where) from error


def _translate(error: exc.DBAPIError, where: str) -> AuditError:
    name = getattr(error.orig, "sqlite_errorname", None)
    if name is not None:
        return _of_sqlite(error, name, where)
    state = getattr(error.orig, "sqlstate", None)
    for prefix, kind, what, hint in _POSTGRES_HINTS:
        if state is not None and state.startswith(prefix):
            return kind(f"the audit DB {what}", where=where, hint=hint)
    if state is None and isinstance(error, exc.OperationalError):
        return _of_connecting(error, where)
    return AuditError(f"the audit DB refused: {error.orig}", where=where)


def _of_sqlite(error: exc.DBAPIError, name: str, where: str) -> AuditError:
    for prefix, (kind, what, hint) in _SQLITE_HINTS.items():
        if name.startswith(prefix):
            return kind(f"the audit DB {what}", where=where, hint=hint)
    return AuditError(f"the audit DB refused: {error.orig}", where=where)


def _of_connecting(error: exc.DBAPIError, where: str) -> AuditError:
    """libpq's own failures to connect carry no code; a wrong password is told in words only."""
    text = str(error.orig)
    if "authentication failed" in text or "no password supplied" in text:
        return AuditError(
            "the audit DB refused the user or password",
            where=where,
            hint="check the user and password in [audit] url",
        )
    if 'database "' in text and "does not exist" in text:
        return AuditError(
            "the audit DB does not exist", where=where, hint="create the database, or correct [audit] url"
        )
    return AuditUnavailable(
        "the audit DB does not answer", where=where, hint="check that it is running and [audit] url is right"
    )
