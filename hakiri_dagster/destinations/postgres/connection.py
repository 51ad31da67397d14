"""Connections to the destination, and the one place where the driver's errors become ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from hakiri_dagster.destinations.postgres.driver_errors import translate_errors
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.settings import DEFAULT_TENANT

Connection = psycopg.Connection[TupleRow]

APPLICATION_NAME_PREFIX = "hakiri"
_IDLE_CONNECTIONS = 4
_DEFAULTS = {
    "connect_timeout": "15",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
_DEFAULT_OPTIONS = "-c lock_timeout=60s -c statement_timeout=0 -c idle_in_transaction_session_timeout=0"
_FIXED_OPTIONS = (
    "-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres -c bytea_output=hex -c extra_float_digits=1"
)


def connection_settings(conninfo: str) -> str:
    """What the url says wins over our defaults, except for what the way rows are written depends on."""
    said = {key: str(value) for key, value in conninfo_to_dict(conninfo).items() if value is not None}
    options = f"{_DEFAULT_OPTIONS} {said.get('options', '')} {_FIXED_OPTIONS}"  # of two, the last one counts
    fixed = {"options": options, "client_encoding": "UTF8", "application_name": APPLICATION_NAME_PREFIX}
    return make_conninfo("", **{**_DEFAULTS, **said, **fixed})


def display_url(conninfo: str) -> str:
    """Where the destination is, without its password."""
    try:
        parts = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        return "postgresql://(unreadable url)"
    user = f"{quote(str(parts['user']))}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host', 'localhost')}{port}/{parts.get('dbname', '')}"


class Connections:
    """Opens connections to one destination and keeps a few for the next use. Safe to share between threads.

    `tenant` is whose marks are kept there (`marks`)."""

    def __init__(self, conninfo: str, *, label: str, tenant: str = DEFAULT_TENANT) -> None:
        self.tenant = tenant
        self.where = f"{label} ({display_url(conninfo)})"
        self._conninfo = conninfo
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._check_url()

    def _check_url(self) -> None:
        try:
            conninfo_to_dict(self._conninfo)
        except psycopg.ProgrammingError:
            # the driver's message quotes the URL, password included
            raise DestinationError(
                "the destination's url cannot be read",
                where=self.where,
                hint="write it as postgresql://user:password@host:port/database, with special characters %-encoded",
            ) from None

    def open(self) -> Connection:
        with translate_errors(self.where):
            # plans of prepared statements would break when another process alters the target
            return psycopg.connect(connection_settings(self._conninfo), prepare_threshold=None)

    def take(self) -> Connection:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed and not _has_ended(connection):
                    return connection
        return self.open()

    def give_back(self, connection: Connection) -> None:
        """Whatever is still open in it is rolled back."""
        if not connection.closed:
            try:
                connection.rollback()
            except psycopg.Error:
                connection.close()
        with self._lock:
            if not connection.closed and len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    @contextmanager
    def transaction(self, where: str | None = None) -> Iterator[Connection]:
        """Commits at the end of the block, rolls back when it raises."""
        connection = self.take()
        try:
            with translate_errors(where or self.where):
                yield connection
                connection.commit()
        finally:
            self.give_back(connection)

    @contextmanager
    def look(self, where: str | None = None) -> Iterator[Connection]:
        """A transaction that sees one state of the catalog, whatever others alter between its queries."""
        with self.transaction(where) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    def close(self) -> None:
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()


def _has_ended(connection: Connection) -> bool:
    """An idle connection the server closed (a restart) is found out before it is used."""
    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except psycopg.Error:
        connection.close()
        return True
    return False


def relation(schema: str, name: str) -> sql.Identifier:
    return sql.Identifier(schema, name)


def names(columns: tuple[str, ...] | list[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))
