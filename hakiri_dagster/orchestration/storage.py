"""Dagster's own database: what it raises when that fails, and how what was written there lasts."""

from __future__ import annotations

from dagster_postgres.utils import DagsterPostgresException
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from hakiri_dagster.errors import EngineError

STORAGE_ERRORS = (DagsterPostgresException, SQLAlchemyError)
"""Dagster tries for some seconds to connect before it raises them."""


def storage_lost(error: Exception, where: str) -> EngineError:
    reason = str(error.__cause__ or error).partition("\n")[0]
    return EngineError(
        f"Dagster's storage failed: {reason}",
        where=where,
        hint="see that its PostgreSQL is up, then apply again; what was published stays",
    )


def write_out(storage_url: str) -> None:
    """Dagster's tables may be a moment old, and where commits do not wait for the disk a killed server would lose
    them. One commit that waits takes all earlier ones along."""
    with create_engine(storage_url, poolclass=NullPool).begin() as connection:
        connection.execute(text("SET LOCAL synchronous_commit = on"))
        connection.execute(text("SELECT pg_logical_emit_message(true, 'hakiri', 'written out')"))
