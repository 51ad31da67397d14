"""Whose turn it is, for tables whose chunks are published in the order of their cursor. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from hakiri_dagster.planning.chunks import CursorRange
from hakiri_dagster.planning.intervals import low
from hakiri_dagster.planning.states import DueSlice


@dataclass(frozen=True, slots=True)
class Turns:
    """`ready` may be loaded now, one after the other. `waiting` come after the chunk `on`, which is not among them."""

    ready: tuple[DueSlice, ...]
    waiting: tuple[DueSlice, ...] = ()
    on: str | None = None


def turns(owed: Iterable[DueSlice], wanted: Collection[str]) -> Turns:
    """Up to the first window that is owed and not wanted. Rows without a cursor wait for nobody."""
    ready: list[DueSlice] = []
    waiting: list[DueSlice] = []
    on: str | None = None
    for due in in_cursor_order(owed):
        if due.key not in wanted:
            on = on or (due.key if isinstance(due.slice.bounds, CursorRange) else None)
        elif on is None or not isinstance(due.slice.bounds, CursorRange):
            ready.append(due)
        else:
            waiting.append(due)
    return Turns(tuple(ready), tuple(waiting), on if waiting else None)


def in_cursor_order(owed: Iterable[DueSlice]) -> Sequence[DueSlice]:
    return sorted(owed, key=_place)


def _place(due: DueSlice) -> tuple[bool, float]:
    bounds = due.slice.bounds
    return (False, low(bounds.interval)) if isinstance(bounds, CursorRange) else (True, 0)
