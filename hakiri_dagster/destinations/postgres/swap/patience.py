"""The exchange, as soon as readers leave a gap for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hakiri_dagster.destinations.postgres.between_readers import Turn, between_readers
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.completion import Successors
from hakiri_dagster.destinations.postgres.swap.exchange import (
    ChildKey,
    exchange,
    lock,
    lock_against_changes,
    lock_parents,
)
from hakiri_dagster.destinations.postgres.swap.portrait import Portrait, names_in_full
from hakiri_dagster.destinations.postgres.swap.relations import Pair

_TRIES_SECONDS = 180


@dataclass(slots=True)
class _Order:
    """Of the locks. The first one of a try is waited for longest, for nothing is held yet. So a try begins with what
    kept out the one before it: at first with the parents, whose readers are to keep no reader of the tables waiting."""

    parents_first: bool = True

    def lock(self, turn: Turn, pairs: Sequence[Pair]) -> None:
        first, then = (lock_parents, lock) if self.parents_first else (lock, lock_parents)
        first(turn, pairs)
        self.parents_first = not self.parents_first
        then(turn, pairs)


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
    order = _Order()

    def work(turn: Turn) -> list[ChildKey]:
        order.lock(turn, successors.pairs)
        reshape()
        turn.hurry()
        return exchange(connection, successors, at_first)

    return between_readers(connection, work, where=label, seconds=_TRIES_SECONDS)
