"""Where the audit DB is, told to processes of whatever host. They find its tables made."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sqlalchemy import QueuePool, create_engine, event
from sqlalchemy.pool import ConnectionPoolEntry

from hakiri_dagster.audit.engine import (
    IN_SCHEMA,
    Transactions,
    begin_sqlite,
    ending_with_its_client,
    parsed_url,
    without_password,
)

_LOCK_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class AuditAddress:
    """Pickled into Spark's plans, where it cannot be read. Either a URL, or a file of this machine."""

    url: str | None = field(repr=False)
    file: str | None

    def open(self) -> Transactions:
        """Connects when it is first used. Not for many connections: one process works through it, step by step."""
        return _of_url(self.url) if self.url is not None else _of_file(Path(self.file or ""))


def _of_url(url: str) -> Transactions:
    parsed = parsed_url(url)
    engine = create_engine(
        parsed,
        pool_size=1,
        max_overflow=-1,
        connect_args=ending_with_its_client(parsed, lock_seconds=_LOCK_SECONDS, idle_seconds=_LOCK_SECONDS),
        execution_options=IN_SCHEMA,
        hide_parameters=True,
    )
    return Transactions(engine, without_password(parsed))


def _of_file(path: Path) -> Transactions:
    """Never makes the file: a second one, somewhere else, would give everything out once more."""

    def connect() -> sqlite3.Connection:
        uri = f"{path.absolute().as_uri()}?mode=rw"
        return sqlite3.connect(uri, uri=True, timeout=_LOCK_SECONDS, check_same_thread=False)

    engine = create_engine(
        "sqlite://", creator=connect, poolclass=QueuePool, pool_size=1, max_overflow=-1, hide_parameters=True
    )
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", begin_sqlite)
    return Transactions(engine, str(path))


def _set_up(connection: Any, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # when a transaction begins, `begin_sqlite` says
