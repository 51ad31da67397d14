"""DDL on a table that others read: while it waits for a lock, all who come after wait too. So it waits a little, lets
them pass, and tries again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from psycopg import errors

from hakiri_dagster.destinations.postgres.connection import Connection

_FIRST_WAIT_MS = 100
_LONGEST_WAIT_MS = 5_000
"""Nobody waits longer for us than that."""
_TRIES_SECONDS = 60.0
_PAUSE_SECONDS = 0.5


def between_readers(connection: Connection, work: Callable[[], None]) -> None:
    """In the open transaction, to be committed soon. `work` is undone and done again until it gets its locks."""
    deadline = time.monotonic() + _TRIES_SECONDS
    wait = _FIRST_WAIT_MS
    while True:
        try:
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = {wait}".encode())
                work()
                connection.execute("SET LOCAL lock_timeout TO DEFAULT")
            return
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            if time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.5, 1.0) * _PAUSE_SECONDS)
            wait = min(wait * 2, _LONGEST_WAIT_MS)
