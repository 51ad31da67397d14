"""Getting in between readers: while we wait for a lock that keeps them out, all who come after wait too. So we wait
briefly, let them pass, and try again."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from psycopg import errors, sql

from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.errors import DestinationUnavailable

_T = TypeVar("_T")

_FIRST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 5.0
"""Nobody waits longer for us than that."""
_PAUSE_SECONDS = 0.5
_OF_DEADLOCK_TIMEOUT = 0.8

# 0 stands for no limit.
_LIMITS = """
SELECT name, setting::bigint / 1000.0 FROM pg_settings WHERE name IN ('deadlock_timeout', 'lock_timeout')
"""

_MEMBERS = """
WITH RECURSIVE member (relation, level) AS (
    SELECT %s::oid, 0 UNION SELECT inhrelid, level + 1 FROM member JOIN pg_inherits ON inhparent = relation)
SELECT nspname, relname FROM member JOIN pg_class c ON c.oid = relation JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'p') ORDER BY level, relation
"""


@dataclass(slots=True)
class Turn:
    """One try, in a savepoint, to get several locks.

    Whoever holds what we wait for may come to wait for what we hold. PostgreSQL ends one of the two after
    deadlock_timeout, and not always us. So as soon as we hold something, all that we wait for comes in less (`rest`).
    While we hold nothing nobody can wait for us in a circle, except by the queue, which PostgreSQL then reorders."""

    connection: Connection
    first: float
    rest: float
    _until: float | None = field(default=None, init=False)

    def lock(self, statement: sql.Composed | bytes) -> None:
        self.hurry()
        self.connection.execute(statement)
        if self._until is None:
            self._until = time.monotonic() + self.rest

    def lock_table(self, oid: int) -> None:
        """With its partitions."""
        for place in self.connection.execute(_MEMBERS, (oid,)).fetchall():
            self.lock(sql.SQL("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE").format(relation(*place)))

    def hurry(self) -> None:
        """What comes next may wait for what is left of the turn."""
        left = self.first if self._until is None else self._until - time.monotonic()
        self.connection.execute(f"SET LOCAL lock_timeout = {max(1, math.floor(left * 1000))}".encode())


def between_readers(
    connection: Connection, work: Callable[[Turn], _T], *, where: str, seconds: float | None = None
) -> _T:
    """In the open transaction, to be committed soon. `work` is undone and done again until it gets its locks: for
    `seconds`, or else for as long as the session's lock_timeout says."""
    limits = {name: float(limit) or math.inf for name, limit in connection.execute(_LIMITS)}
    longest = min(_LONGEST_WAIT_SECONDS, limits["lock_timeout"])
    patience = limits["lock_timeout"] if seconds is None else seconds
    deadline = time.monotonic() + patience
    wait = min(_FIRST_WAIT_SECONDS, longest)
    while True:
        try:
            with connection.transaction():
                turn = Turn(connection, wait, min(wait, _OF_DEADLOCK_TIMEOUT * limits["deadlock_timeout"]))
                turn.hurry()
                done = work(turn)
                connection.execute("SET LOCAL lock_timeout TO DEFAULT")
            return done
        except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
            if time.monotonic() > deadline:
                raise DestinationUnavailable(
                    f"the target was in use for {patience:g} s without a pause, so nothing was changed",
                    where=where,
                    hint="see which long transactions hold it in pg_locks; the load is tried again",
                ) from error
            time.sleep(random.uniform(0.5, 1.0) * _PAUSE_SECONDS)
            wait = min(wait * 2, longest)
