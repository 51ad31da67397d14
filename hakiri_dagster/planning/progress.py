"""How far the loads of a table in order have come, and what that leaves to be owed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hakiri_dagster.planning.chunks import CursorRange, Interval
from hakiri_dagster.planning.intervals import NOTHING, Intervals, subtract, union, within
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
