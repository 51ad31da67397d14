"""Getting in between readers: while we wait for a lock that keeps them out, all who come after wait too. So we wait
briefly, let them pass, and try again."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from psycopg import errors, sql

from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.errors import DestinationUnavailable

_T = TypeVar("_T")

_FIRST_WAIT_SECONDS = 0.1
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


@dataclass(frozen=True, slots=True)
class Turn:
    """One try, in a savepoint. Its waits share one limit, for who waits for its first lock waits until its last."""

    connection: Connection
    until: float

    def lock(self, statement: sql.Composed | bytes) -> None:
        self.hurry()
        self.connection.execute(statement)

    def lock_table(self, oid: int) -> None:
        """With its partitions."""
        for place in self.connection.execute(_MEMBERS, (oid,)).fetchall():
            self.lock(sql.SQL("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE").format(relation(*place)))

    def hurry(self) -> None:
        """What comes next may wait for what is left of the turn."""
        left = max(1, math.floor((self.until - time.monotonic()) * 1000))
        self.connection.execute(f"SET LOCAL lock_timeout = {left}".encode())


def between_readers(
    connection: Connection, work: Callable[[Turn], _T], *, where: str, seconds: float | None = None
) -> _T:
    """In the open transaction, to be committed soon. `work` is undone and done again until it gets its locks: for
    `seconds`, or else for as long as the session's lock_timeout says.

    Whoever holds what we wait for may come to wait for what we hold. PostgreSQL ends one of the two after
    deadlock_timeout, and not always us; so no turn lasts that long."""
    longest, patience = _limits(connection, seconds)
    deadline = time.monotonic() + patience
    wait = min(_FIRST_WAIT_SECONDS, longest)
    while True:
        try:
            with connection.transaction():
                turn = Turn(connection, time.monotonic() + wait)
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


def _limits(connection: Connection, seconds: float | None) -> tuple[float, float]:
    """How long a turn may last, and how long all of them."""
    said = {name: float(limit) or math.inf for name, limit in connection.execute(_LIMITS)}
    longest = min(_OF_DEADLOCK_TIMEOUT * said["deadlock_timeout"], said["lock_timeout"])
    return longest, said["lock_timeout"] if seconds is None else seconds
