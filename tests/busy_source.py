"""A PostgreSQL source under load: writers whose transactions take their time, in every way that transactions end.

Each writer inserts into tables with an id and a time cursor, updates rows, rolls back, uses savepoints and prepares
transactions that another session commits or rolls back later. Rows become visible in the order of their commits, which
is neither that of their ids nor that of their times.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count

import psycopg
from psycopg import Connection

SCHEMA = """
CREATE TABLE {name} (
    id bigserial PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(), local_at timestamp NOT NULL DEFAULT now(), body text NOT NULL);
CREATE INDEX ON {name} (created_at);
CREATE INDEX ON {name} (local_at);
CREATE INDEX ON {name} (updated_at);
"""
ADDED_TO = ("notes", "events", "ticks", "logs")
CHANGED = ("accounts", "prices")


@dataclass
class BusySource:
    url: str
    seed: int
    writers: int = 8
    longest: float = 10.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    errors: list[BaseException] = field(default_factory=list)

    def create(self) -> None:
        with psycopg.connect(self.url) as connection:
            database = psycopg.sql.Identifier(connection.info.dbname)
            connection.execute(psycopg.sql.SQL("ALTER DATABASE {} SET timezone = 'America/New_York'").format(database))
            for name in (*ADDED_TO, *CHANGED):
                connection.execute(SCHEMA.format(name=name).encode())
            for name in CHANGED:
                connection.execute(
                    f"INSERT INTO {name} (body) SELECT 'first ' || n FROM generate_series(1, 30) n".encode()
                )

    @contextmanager
    def under_load(self) -> Iterator[None]:
        threads = [
            threading.Thread(target=self._write, args=(random.Random(f"{self.seed}/{number}"),), daemon=True)
            for number in range(self.writers)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
            self._end_prepared()
        assert not self.errors, self.errors

    def _write(self, chance: random.Random) -> None:
        try:
            with psycopg.connect(self.url) as connection:
                while not self._stop.is_set():
                    with suppress(psycopg.errors.DeadlockDetected):
                        self._transaction(connection, chance)
                    connection.rollback()
        except BaseException as error:
            self.errors.append(error)
            raise

    def _transaction(self, connection: Connection, chance: random.Random) -> None:
        how = chance.choices(("commit", "rollback", "prepare"), (8, 1, 1))[0]
        if how == "prepare":
            connection.tpc_begin(connection.xid(1, f"busy-{self.seed}-{next(self._numbers)}", "test"))
        for _ in range(chance.randint(1, 4)):
            self._statement(connection, chance)
            self._pause(chance, 4)
        if how == "prepare":
            connection.tpc_prepare()
            self._pause(chance, 2)
            if chance.random() < 0.7:
                connection.tpc_commit()
            else:
                connection.tpc_rollback()
        elif how == "commit":
            connection.commit()
        else:
            connection.rollback()

    def _statement(self, connection: Connection, chance: random.Random) -> None:
        if chance.random() < 0.2:
            connection.execute("SAVEPOINT here")
            self._change(connection, chance)
            connection.execute("ROLLBACK TO here" if chance.random() < 0.5 else "RELEASE here")
        self._change(connection, chance)

    def _change(self, connection: Connection, chance: random.Random) -> None:
        body = f"{chance.random():.12f}"
        if chance.random() < 0.6:
            for name in ADDED_TO:
                connection.execute(f"INSERT INTO {name} (body) VALUES (%s)".encode(), (body,))
        name = chance.choice(CHANGED)
        if chance.random() < 0.3:
            connection.execute(f"INSERT INTO {name} (body) VALUES (%s)".encode(), (body,))
        else:
            stamp = "clock_timestamp()" if chance.random() < 0.3 else "now()"
            statement = f"UPDATE {name} SET body = %s, updated_at = {stamp} WHERE id = %s"
            connection.execute("SET LOCAL lock_timeout = '500ms'; SAVEPOINT attempt")
            try:
                connection.execute(statement.encode(), (body, chance.randint(1, 30)))
            except psycopg.errors.LockNotAvailable:
                connection.execute("ROLLBACK TO attempt")

    def _pause(self, chance: random.Random, parts: int) -> None:
        """Most transactions are short, and a few as long as it goes."""
        longest = self.longest if chance.random() < 0.15 else self.longest / 20
        self._stop.wait(chance.random() * longest / parts)

    def _end_prepared(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for (gid,) in connection.execute(
                "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
            ).fetchall():
                connection.execute(psycopg.sql.SQL("COMMIT PREPARED {}").format(psycopg.sql.Literal(gid)))
