"""What Dagster raises when its own storage fails. It tries for some seconds to connect before it does."""

from __future__ import annotations

from dagster_postgres.utils import DagsterPostgresException
from sqlalchemy.exc import SQLAlchemyError

from hakiri_dagster.errors import EngineError

STORAGE_ERRORS = (DagsterPostgresException, SQLAlchemyError)


def storage_lost(error: Exception, where: str) -> EngineError:
    reason = str(error.__cause__ or error).partition("\n")[0]
    return EngineError(
        f"Dagster's storage failed: {reason}",
        where=where,
        hint="see that its PostgreSQL is up, then apply again; what was published stays",
    )
