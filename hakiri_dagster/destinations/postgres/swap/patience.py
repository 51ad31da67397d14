"""Getting in between readers: a lock that is waited for makes all who come after wait too, so we wait briefly, let them
pass, and try again with a little more patience."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from psycopg import errors

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.completion import Successors
from hakiri_dagster.destinations.postgres.swap.exchange import ChildKey, exchange, lock, lock_against_changes
from hakiri_dagster.destinations.postgres.swap.portrait import names_in_full
from hakiri_dagster.errors import DestinationUnavailable

_FIRST_WAIT_MS = 100
_LONGEST_WAIT_MS = 5_000
"""Nobody waits longer for us than that."""
_TRIES_SECONDS = 180
_PAUSE_SECONDS = 0.5


def exchanged(
    connection: Connection, label: str, successors: Successors, *, reshape: Callable[[], None] = lambda: None
) -> list[ChildKey]:
    """In the open transaction, to be committed at once: from here on all others wait.

    `reshape` gives the old relations, once they are locked, the shape that the new ones are to be compared with."""
    names_in_full(connection)
    lock_against_changes(connection, successors.pairs)
    deadline = time.monotonic() + _TRIES_SECONDS
    wait = _FIRST_WAIT_MS
    while True:
        try:
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = {wait}".encode())
                lock(connection, successors.pairs)
                reshape()
                return exchange(connection, successors)
        except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
            if time.monotonic() > deadline:
                raise DestinationUnavailable(
                    f"the target was in use for {_TRIES_SECONDS} s without a pause, so nothing was exchanged",
                    where=label,
                    hint="see which long transactions hold it in pg_locks; the load is tried again",
                ) from error
            time.sleep(random.uniform(0.5, 1.0) * _PAUSE_SECONDS)
            wait = min(wait * 2, _LONGEST_WAIT_MS)
