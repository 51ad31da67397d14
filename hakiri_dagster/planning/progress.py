"""How far the loads of a table in order have come, and what that leaves to be owed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from hakiri_dagster.planning.chunks import CursorRange, Interval
from hakiri_dagster.planning.intervals import NOTHING, Intervals, overlap, subtract, union, within
from hakiri_dagster.planning.states import ChunkState


@dataclass(frozen=True, slots=True)
class Progress:
    """What lies `lag` before the mark is read again together with what is new: rows may have come there late."""

    mark: int
    lag: int = 0

    @property
    def floor(self) -> int:
        return self.mark - self.lag

    def late(self, interval: Interval) -> Intervals:
        return within((Interval(self.floor, None),), interval) if self.lag else NOTHING


def behind(progress: Progress | None, states: Iterable[ChunkState]) -> Intervals:
    """Of this nothing is owed, for it lies before the mark and nobody asked for it again."""
    if progress is None:
        return NOTHING
    asked_for = (s.bounds.interval for s in states if s.is_owed_again and isinstance(s.bounds, CursorRange))
    return subtract((Interval(None, progress.floor),), union(asked_for))


def newest_mark(states: Iterable[ChunkState]) -> int | None:
    """The highest mark of a window. The chunk beyond all windows tells nothing of how far loads have come."""
    marks = (
        state.cursor_committed
        for state in states
        if state.status != "retired"
        and isinstance(state.bounds, CursorRange)
        and state.bounds.interval.upper is not None
    )
    return max((mark for mark in marks if mark is not None), default=None)


def is_rewound(mark: int, states: Collection[ChunkState]) -> bool:
    """The chunk that holds the mark is to come again, so that the mark speaks of rows that may be gone. If they are,
    what fills in there later would lie below it."""
    at, before = Interval(mark, mark + 1), Interval(mark - 1, mark)
    held = any(s.is_rewound and isinstance(s.bounds, CursorRange) and overlap(s.bounds.interval, at) for s in states)
    return held and not any(overlap(part, before) for state in states for part in state.covered)
