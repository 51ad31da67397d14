"""Which of the chunks that are due one tick starts runs for. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile


def to_dispatch(
    due: Sequence[str], *, at_most: int, leave: Collection[str] = (), in_order: bool = False
) -> tuple[str, ...]:
    """The first of those that are due, in their turn. What somebody who lives holds is his to load, and of a table in
    order so is what comes after it."""

    def is_free(key: str) -> bool:
        return key not in leave

    free = takewhile(is_free, due) if in_order else filter(is_free, due)
    return tuple(free)[:at_most]
