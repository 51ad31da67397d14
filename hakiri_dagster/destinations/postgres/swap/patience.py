"""The exchange, as soon as readers leave a gap for it."""

from __future__ import annotations

from collections.abc import Callable

from hakiri_dagster.destinations.postgres.between_readers import Turn, between_readers
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.completion import Successors
from hakiri_dagster.destinations.postgres.swap.exchange import ChildKey, exchange, lock, lock_against_changes
from hakiri_dagster.destinations.postgres.swap.portrait import Portrait, names_in_full

_TRIES_SECONDS = 180


def exchanged(
    connection: Connection,
    label: str,
    successors: Successors,
    at_first: Portrait,
    *,
    reshape: Callable[[], None] = lambda: None,
) -> list[ChildKey]:
    """In the open transaction, to be committed at once: from here on all others wait.

    `reshape` gives the old relations, once they are locked, the shape that the new ones are to be compared with."""
    names_in_full(connection)
    lock_against_changes(connection, successors.pairs)

    def work(turn: Turn) -> list[ChildKey]:
        lock(turn, successors.pairs)
        reshape()
        turn.hurry()
        return exchange(connection, successors, at_first)

    return between_readers(connection, work, where=label, seconds=_TRIES_SECONDS)
