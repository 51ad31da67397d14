"""What a driver's error means for the load: worth another try or not. The one place where driver errors are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pyarrow as pa
from adbc_driver_manager import Error as AdbcError

from hakiri_dagster.connectors.postgres.config import SourceConfig
from hakiri_dagster.errors import SourceError, SourceUnavailable

DRIVER_ERRORS = (psycopg.Error, AdbcError, pa.ArrowException, OSError)
"""The last two come from the middle of a stream, without a state."""

_TRANSIENT_STATES = re.compile(r"08...|40...|53...|55P03|57P0[1-5]|58...|25P0[34]|72000")
_CONNECTION_LOST = re.compile(
    r"failed to (connect|resolve)|connection (failed|refused|reset|timed? ?out)|timeout expired|"
    r"server closed the connection|could not (connect|receive|send|translate)|terminating connection|"
    r"connection .*(lost|closed|bad)|SSL SYSCALL|no connection to the server|conflict with recovery|deadlock detected",
    re.IGNORECASE,
)
_REFUSED = (
    (
        re.compile(r"authentication failed|no password supplied|no pg_hba\.conf entry"),
        "check user and password in the URL",
    ),
    (re.compile(r'database ".*" does not exist'), "check the database in the URL"),
    (re.compile(r'role ".*" does not exist'), "check the user in the URL"),
    (re.compile(r"invalid (integer|sslmode|connection option)"), "check the URL"),
)
_HINTS = {
    "42501": "grant the source's user SELECT on the table and USAGE on its schema",
    "42P01": "the table is gone; check its name and `schema`",
    "42703": "the table's columns have changed; the next plan reads them anew",
    "57014": "raise the role's statement_timeout on the source, or load smaller chunks",
}
_ROW_SECURITY = re.compile("would be affected by row-level security policy")
_HINT_OF_ROW_SECURITY = (
    "row_security is off, so rows that a policy hides are no rows to leave out: read as a role with BYPASSRLS, "
    'or set row_security = "on" in the source\'s config'
)
_CANCELED = "57014"
_TOO_SLOW_FOR_A_TICK = "a tick waits no longer for what the source holds; an index on the cursor makes that quick"
_ADBC_NOISE = re.compile(r"^.*?(?=(?:ERROR|FATAL):)|^\[libpq\] |\s*Query was:.*|\.? ?SQLSTATE: \w+\s*$", re.DOTALL)


def failure(error: Exception, config: SourceConfig, where: str | None = None) -> SourceError:
    state = getattr(error, "sqlstate", None)
    text = config.without_secrets(_text(error))
    what = f"PostgreSQL at {config.place}: {text}"
    for pattern, hint in _REFUSED if state is None else ():
        if pattern.search(text):
            return SourceError(what, where=where, hint=hint)
    if state is None and _CONNECTION_LOST.search(str(error)):
        return SourceUnavailable(what, where=where, hint="is the server up, and reachable from here?")
    if state == _CANCELED and config.limits:
        return SourceUnavailable(what, where=where, hint=_TOO_SLOW_FOR_A_TICK)
    if state is not None and _TRANSIENT_STATES.fullmatch(state):
        return SourceUnavailable(what, where=where)
    if _ROW_SECURITY.search(text):
        return SourceError(what, where=where, hint=_HINT_OF_ROW_SECURITY)
    return SourceError(what, where=where, hint=_HINTS.get(state or ""))


def _text(error: Exception) -> str:
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return str(error.diag.message_primary)
    lines = _ADBC_NOISE.sub("", str(error)).strip().splitlines()
    return re.sub(r"^(ERROR|FATAL):\s*", "", lines[0].strip()) if lines else type(error).__name__


@contextmanager
def source_errors(config: SourceConfig, where: str) -> Iterator[None]:
    try:
        yield
    except DRIVER_ERRORS as error:
        raise failure(error, config, where) from None  # the original may quote the statement with its values
