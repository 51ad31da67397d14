"""Transactions on the audit DB: SQLite (one machine) or PostgreSQL (several), the same to whoever uses them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry, StaticPool

from hakiri_dagster.audit.failures import translated
from hakiri_dagster.audit.schema import POSTGRES_SCHEMA
from hakiri_dagster.errors import AuditBusy, AuditError

T = TypeVar("T")

BUSY_SECONDS: Final = 30.0
_TRIES: Final = 5
_WRITES: Final = "hakiri_writes"


class Transactions:
    """`where` names the database in messages, without its password."""

    def __init__(self, engine: Engine, where: str) -> None:
        self.where = where
        self.is_postgres = engine.dialect.name == "postgresql"
        self._engine = engine
        self._writer = engine.execution_options(**{_WRITES: True})

    def read(self, work: Callable[[Connection], T]) -> T:
        with translated(self.where), self._engine.begin() as connection:
            return work(connection)

    def write(self, work: Callable[[Connection], T]) -> T:
        """All or nothing. `work` runs again when another writer was in the way, so it must do nothing else."""
        for attempt in range(1, _TRIES):
            try:
                return self._write(work)
            except AuditBusy:
                time.sleep(random.uniform(0, 0.05 * 2**attempt))
        return self._write(work)

    def _write(self, work: Callable[[Connection], T]) -> T:
        with translated(self.where), self._writer.begin() as connection:
            return work(connection)

    def now(self, connection: Connection) -> datetime:
        """The database's clock where several hosts share one, so that leases do not depend on theirs."""
        if not self.is_postgres:
            return datetime.now(UTC)
        moment: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
        return moment.astimezone(UTC)

    def close(self) -> None:
        self._engine.dispose()


def postgres_transactions(url: str) -> Transactions:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise AuditError("[audit] url is no database URL", hint="write postgresql://user@host/database") from None
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise AuditError(
            f"[audit] url names {parsed.get_backend_name()}, and the audit DB is PostgreSQL or SQLite",
            hint="write postgresql://user@host/database, or leave url out for SQLite in .hakiri/",
        )
    engine = create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        pool_size=4,
        max_overflow=12,
        pool_pre_ping=True,
        connect_args={"connect_timeout": 10},
        execution_options={"schema_translate_map": {None: POSTGRES_SCHEMA}},
        hide_parameters=True,
    )
    return Transactions(engine, parsed.set(query={}).render_as_string(hide_password=True))


def sqlite_transactions(path: Path | None) -> Transactions:
    """None: an empty audit DB in memory, for whoever only reads a project that has none yet."""
    if path is None:
        engine = create_engine("sqlite://", poolclass=StaticPool, hide_parameters=True)
    else:
        engine = create_engine(
            URL.create("sqlite", database=str(path)),
            connect_args={"timeout": BUSY_SECONDS},
            hide_parameters=True,
        )
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return Transactions(engine, str(path or "memory"))


def _set_up_sqlite(connection: Any, _entry: ConnectionPoolEntry) -> None:
    """The driver's own idea of when a transaction begins is switched off; ours is in `_begin_sqlite`."""
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes the lock at once: two that read first and then write would deadlock."""
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
