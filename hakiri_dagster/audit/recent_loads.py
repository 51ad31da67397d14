"""How fast chunks were published lately, by the moments at which they were claimed and done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, or_, select

from hakiri_dagster.audit.schema import PIPELINE_CHUNKS

_C: Final = PIPELINE_CHUNKS.c
RECENT_CHUNKS: Final = 50

_Timed = Row[*tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class RecentLoads:
    """`seconds`: at work, one chunk after the other; the time between two runs is not part of it."""

    chunks: int
    seconds: float
    rows: int
    bytes: int

    @property
    def rows_per_sec(self) -> int:
        return self._rate(self.rows)

    @property
    def bytes_per_sec(self) -> int:
        return self._rate(self.bytes)

    @property
    def seconds_a_chunk(self) -> float | None:
        return self.seconds / self.chunks if self.chunks else None

    def eta_seconds(self, left: int) -> int | None:
        if not self.chunks:
            return None if left else 0
        return round(left * self.seconds / self.chunks)

    def _rate(self, amount: int) -> int:
        return round(amount / self.seconds) if self.seconds > 0 else 0


def recent_loads(connection: Connection, planned: Iterable[ColumnElement[bool]]) -> RecentLoads:
    """One that was begun anew says nothing of how long a load takes."""
    timed = or_(_C.started_at.is_(None), _C.started_at <= _C.completed_at)
    newest = (
        select(_C.started_at, _C.completed_at, _C.rows, _C.bytes)
        .where(*planned, _C.completed_at.is_not(None), timed)
        .order_by(_C.completed_at.desc())
        .limit(RECENT_CHUNKS + 1)
    )
    return _measured(connection.execute(newest).all()[::-1])


def _measured(oldest_first: Sequence[_Timed]) -> RecentLoads:
    """A run claims all its chunks at once, so a chunk's own time begins when the one before it was done. What came
    before the first is known as long as all chunks are looked at: then it is its claim."""
    if not oldest_first:
        return RecentLoads(0, 0.0, 0, 0)
    pairs = list(pairwise(oldest_first))
    seconds = sum((_between(before, chunk) for before, chunk in pairs), timedelta())
    counted = [chunk for _, chunk in pairs]
    if len(oldest_first) <= RECENT_CHUNKS:
        first = oldest_first[0]
        seconds += first.completed_at - (first.started_at or first.completed_at)
        counted.insert(0, first)
    return RecentLoads(
        len(counted),
        seconds.total_seconds(),
        sum(chunk.rows or 0 for chunk in counted),
        sum(chunk.bytes or 0 for chunk in counted),
    )


def _between(before: _Timed, chunk: _Timed) -> timedelta:
    began = before.completed_at if chunk.started_at is None else max(before.completed_at, chunk.started_at)
    worked: timedelta = chunk.completed_at - began
    return worked
