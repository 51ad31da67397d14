"""One view of the source that many connections share while it is read."""

from __future__ import annotations

import logging

import psycopg
from psycopg import Connection, sql
from psycopg.rows import TupleRow

from hakiri_dagster.connectors.postgres.config import SourceConfig
from hakiri_dagster.connectors.postgres.connection import connect
from hakiri_dagster.errors import SourceError

_log = logging.getLogger(__name__)

_NO_IDLE_TIMEOUT = "SET LOCAL idle_in_transaction_session_timeout = 0"


def export(holder: Connection[TupleRow], config: SourceConfig, where: str) -> str | None:
    """Valid until the holder is closed. None, with a warning, where other connections cannot import it (a pooler
    that spreads them over servers, a server that is short of connections)."""
    try:
        holder.execute(_NO_IDLE_TIMEOUT)
        row = holder.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None, "a function call answers one row"
        _import(config, row[0], where)
    except (psycopg.Error, SourceError) as error:
        reason = config.without_secrets(str(error)).splitlines()[0]
        _log.warning("%s: no snapshot can be shared, so one connection reads everything: %s", where, reason)
        return None
    return str(row[0])


def _import(config: SourceConfig, name: str, where: str) -> None:
    connection = connect(config, where)
    try:
        connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(name)))
    finally:
        connection.close()
