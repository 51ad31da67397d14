"""Which of the chunks that are due one tick starts runs for. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile


def to_dispatch(
    due: Sequence[str],
    *,
    at_most: int,
    held: Collection[str] = (),
    failed: Collection[str] = (),
    retry: bool = True,
    in_order: bool = False,
) -> tuple[str, ...]:
    """The first of those that are due, in their turn. What somebody who lives holds is his to load, and of a table in
    order so is what comes after it. `retry`: those that failed as well. A schedule tries them at each tick; where
    nothing but a change starts runs, they would else fail again and again."""

    def is_free(key: str) -> bool:
        return key not in held and (retry or key not in failed)

    free = takewhile(is_free, due) if in_order else filter(is_free, due)
    return tuple(free)[:at_most]
