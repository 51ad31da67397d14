"""Transactions on the audit DB: SQLite (one machine) or PostgreSQL (several), the same to whoever uses them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

from sqlalchemy import ColumnElement, Connection, Engine, create_engine, event, func, literal, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry, StaticPool

from hakiri_dagster.audit.failures import translated
from hakiri_dagster.audit.schema import POSTGRES_SCHEMA, UtcTime
from hakiri_dagster.errors import AuditBusy, AuditError

T = TypeVar("T")

BUSY_SECONDS: Final = 30.0
IDLE_SECONDS: Final = 30.0
"""So long a transaction may do nothing while it holds locks."""
_TRIES: Final = 5
_WRITES: Final = "hakiri_writes"

_KEEPALIVES: Final = {
    "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000,
}  # fmt: skip

Keeping = Literal["usual", "surely", "perhaps"]
"""Whether a commit outlives a loss of power. SQLite's usual one may not; PostgreSQL's does. `perhaps`: where losing it
does no harm, it need not wait for the disk."""
IN_SCHEMA: Final = {"schema_translate_map": {None: POSTGRES_SCHEMA}}


def since_boot() -> float:
    """Seconds. Nobody sets this clock, and it goes on while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the first is Linux's own
    return time.clock_gettime(clock)


class Transactions:
    """`where` names the database in messages, without its password."""

    def __init__(self, engine: Engine, where: str) -> None:
        self.where = where
        self.is_postgres = engine.dialect.name == "postgresql"
        self._engine = engine
        self._writers = {kept: engine.execution_options(**{_WRITES: kept}) for kept in get_args(Keeping)}

    def read(self, work: Callable[[Connection], T]) -> T:
        with translated(self.where), self._engine.begin() as connection:
            return work(connection)

    def write(self, work: Callable[[Connection], T], *, kept: Keeping = "usual") -> T:
        """All or nothing. `work` runs again when another writer was in the way, so it must do nothing else."""
        for attempt in range(1, _TRIES):
            try:
                return self._write(work, kept)
            except AuditBusy:
                time.sleep(random.uniform(0, 0.05 * 2**attempt))
        return self._write(work, kept)

    def _write(self, work: Callable[[Connection], T], kept: Keeping) -> T:
        with translated(self.where), self._writers[kept].begin() as connection:
            if kept == "perhaps" and self.is_postgres:
                connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
            return work(connection)

    def now(self, connection: Connection) -> datetime:
        """The database's clock where several hosts share one, so that leases do not depend on theirs."""
        if not self.is_postgres:
            return datetime.now(UTC)
        moment: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
        return moment.astimezone(UTC)

    def moment(self) -> ColumnElement[datetime]:
        """`now`, to be selected along with something else."""
        return func.clock_timestamp(type_=UtcTime()) if self.is_postgres else literal(datetime.now(UTC), UtcTime())

    def seconds(self) -> ColumnElement[Any]:
        """By a clock that all who share the database read alike, to be selected. A machine that is alone with its file
        has one that nobody sets: since the machine was started. Other than `now` it is no time of day."""
        return func.extract("epoch", func.clock_timestamp()) if self.is_postgres else literal(since_boot())

    def close(self) -> None:
        self._engine.dispose()


def postgres_transactions(url: str, patience: float | None = None) -> Transactions:
    """`patience`: how many seconds a lock is waited for, and twice that an answer; None: as long as for SQLite's."""
    parsed = parsed_url(url)
    engine = create_engine(
        parsed,
        pool_size=4,
        max_overflow=12,
        pool_pre_ping=True,
        connect_args=ending_with_its_client(parsed, lock_seconds=BUSY_SECONDS, idle_seconds=IDLE_SECONDS),
        execution_options=IN_SCHEMA,
        hide_parameters=True,
    )
    if patience is not None:
        event.listen(engine, "begin", lambda connection: _limit_waiting(connection, patience))
    return Transactions(engine, without_password(parsed))


def ending_with_its_client(url: URL, *, lock_seconds: float, idle_seconds: float) -> dict[str, Any]:
    """How to connect. A client whose host is gone would hold its locks until somebody ends its session, and all others
    would wait for them without a word; one whose server's host is gone would wait for its answer."""
    own = url.query.get("options", "")
    options = own if isinstance(own, str) else " ".join(own)
    limits = (
        f"-c lock_timeout={lock_seconds * 1000:.0f} -c idle_in_transaction_session_timeout={idle_seconds * 1000:.0f}"
    )
    said = {name: value for name, value in _KEEPALIVES.items() if name not in url.query}
    return {"connect_timeout": 10, **said, "options": f"{options} {limits}".strip()}


def _limit_waiting(connection: Connection, patience: float) -> None:
    milliseconds = round(patience * 1000)
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds}")
    connection.exec_driver_sql(f"SET LOCAL statement_timeout = {2 * milliseconds}")


def parsed_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise AuditError("[audit] url is no database URL", hint="write postgresql://user@host/database") from None
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise AuditError(
            f"[audit] url names {parsed.get_backend_name()}, and the audit DB is PostgreSQL or SQLite",
            hint="write postgresql://user@host/database, or leave url out for SQLite in .hakiri/",
        )
    return parsed.set(drivername="postgresql+psycopg")


def without_password(url: URL) -> str:
    return url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)


def sqlite_transactions(path: Path | None, patience: float | None = None) -> Transactions:
    """None: an empty audit DB in memory, for whoever only reads a project that has none yet."""
    if path is None:
        engine = create_engine("sqlite://", poolclass=StaticPool, hide_parameters=True)
    else:
        engine = create_engine(
            URL.create("sqlite", database=str(path)),
            connect_args={"timeout": BUSY_SECONDS if patience is None else patience},
            hide_parameters=True,
        )
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", begin_sqlite)
    return Transactions(engine, str(path or "memory"))


def _set_up_sqlite(connection: Any, _entry: ConnectionPoolEntry) -> None:
    """The driver's own idea of when a transaction begins is switched off; ours is in `begin_sqlite`."""
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")


def begin_sqlite(connection: Connection) -> None:
    """A writer takes the lock at once: two that read first and then write would deadlock."""
    kept = connection.get_execution_options().get(_WRITES)
    if kept is not None:
        connection.exec_driver_sql(f"PRAGMA synchronous = {'FULL' if kept == 'surely' else 'NORMAL'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if kept else "BEGIN")
