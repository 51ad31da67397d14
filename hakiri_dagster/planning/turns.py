"""Whose turn it is, for tables whose chunks are published in the order of their cursor: of the whole, or of each part.
Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest

from hakiri_dagster.planning.chunks import CursorRange
from hakiri_dagster.planning.intervals import low
from hakiri_dagster.planning.parts import by_part
from hakiri_dagster.planning.states import DueSlice


@dataclass(frozen=True, slots=True)
class Turns:
    """`ready` may be loaded now, those of a part one after the other. `waiting` come after chunks that are not among
    them: `on` says which, by key."""

    ready: tuple[DueSlice, ...]
    waiting: tuple[DueSlice, ...] = ()
    on: Mapping[str, str] = field(default_factory=dict)


def turns(owed: Iterable[DueSlice], wanted: Collection[str]) -> Turns:
    """Of each part up to the first window that is owed and not wanted. Rows without a cursor wait for nobody."""
    parts = by_part(owed, lambda due: due.slice.bounds)
    of_parts = [_turns(found, wanted) for found in parts.values()]
    side_by_side = zip_longest(*(one.ready for one in of_parts))
    return Turns(
        tuple(due for due in chain.from_iterable(side_by_side) if due is not None),
        tuple(due for one in of_parts for due in one.waiting),
        {key: on for one in of_parts for key, on in one.on.items()},
    )


def _turns(owed: Iterable[DueSlice], wanted: Collection[str]) -> Turns:
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
    return Turns(tuple(ready), tuple(waiting), {} if on is None else {due.key: on for due in waiting})


def in_cursor_order(owed: Iterable[DueSlice]) -> Sequence[DueSlice]:
    return sorted(owed, key=_place)


def _place(due: DueSlice) -> tuple[bool, float]:
    bounds = due.slice.bounds
    return (False, low(bounds.interval)) if isinstance(bounds, CursorRange) else (True, 0)
