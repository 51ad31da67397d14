from __future__ import annotations

import psycopg
import pytest

from hakiri_dagster.connectors.postgres.config import SourceConfig
from hakiri_dagster.connectors.postgres.failures import failure
from hakiri_dagster.errors import SourceUnavailable

CONFIG = SourceConfig.of({"url": "postgresql://reader:s3cr3t@db:5432/shop"})


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.TooManyConnections("sorry"),
        psycopg.errors.AdminShutdown("bye"),
        psycopg.errors.DeadlockDetected("deadlock"),
        psycopg.errors.SerializationFailure("conflict with recovery"),
        psycopg.errors.LockNotAvailable("locked"),
        psycopg.OperationalError("connection timeout expired"),
        psycopg.OperationalError("failed to resolve host 'db': Temporary failure"),
        OSError("[libpq] PQgetCopyData() failed: server closed the connection unexpectedly"),
        OSError("ERROR:  canceling statement due to conflict with recovery"),
    ],
)
def test_what_may_be_better_on_the_next_try_is_transient(error: Exception) -> None:
    assert isinstance(failure(error, CONFIG), SourceUnavailable)


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.InsufficientPrivilege("permission denied"),
        psycopg.errors.UndefinedTable("gone"),
        psycopg.errors.QueryCanceled("statement timeout"),
        psycopg.OperationalError('connection failed: FATAL:  password authentication failed for user "reader"'),
        psycopg.OperationalError('connection failed: FATAL:  database "shop" does not exist'),
        OSError("ERROR:  division by zero"),
    ],
)
def test_what_will_be_the_same_on_the_next_try_is_permanent(error: Exception) -> None:
    assert failure(error, CONFIG).kind == "permanent"


def test_a_drivers_text_is_shown_without_statement_state_and_password() -> None:
    error = OSError(
        'NOT_FOUND: Failed to prepare query: ERROR:  relation "s3cr3t" does not exist\n'
        "LINE 1: select\n\nQuery was: select 'a value'. SQLSTATE: 42P01"
    )
    assert str(failure(error, CONFIG, "p/t")) == 'p/t: PostgreSQL at db:5432/shop: relation "***" does not exist'
