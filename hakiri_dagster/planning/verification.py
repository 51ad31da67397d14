"""Which published rows are compared with the source, and what a comparison found. Pure.

A comparison covers only what the chunk states cover. Rows of the source at or after the mark of an open window are not
loaded yet, so they are no drift.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from hakiri_dagster.planning.chunks import (
    Bounds,
    Chunk,
    CursorKind,
    CursorRange,
    Interval,
    NullCursor,
    Segment,
    SourceFile,
    WholeTable,
)
from hakiri_dagster.planning.intervals import Intervals, high, low, overlap, subtract, union, within
from hakiri_dagster.planning.parts import by_part
from hakiri_dagster.planning.replays import ReadAgain
from hakiri_dagster.planning.states import ChunkState
from hakiri_dagster.planning.windows import to_position


@dataclass(frozen=True, slots=True)
class ComparableChunk:
    """A chunk and the bounds within which its rows are published."""

    key: str
    bounds: tuple[Bounds, ...]

    @property
    def intervals(self) -> Intervals:
        return tuple(one.interval for one in self.bounds if isinstance(one, CursorRange))


@dataclass(frozen=True, slots=True)
class ChunkTally:
    """How many rows one side has within a chunk. `digest` does not depend on their order; 0 where none is computed."""

    rows: int
    digest: int = 0


@dataclass(frozen=True, slots=True)
class ChunkDifference:
    """What is known about one chunk after its rows were compared.

    `accounted` rows of the source are quarantined, so they are not expected in the target. `missing` rows were lost,
    `extra` rows are in the target more often than in the source, `changed` rows have other values. These three are
    drift. `deleted_at_source` rows are in the target only. `moved` rows have another cursor at the source by now, and
    `not_loaded` rows came after the load of a table that is loaded whole.
    """

    key: str
    source_rows: int
    target_rows: int
    accounted: int = 0
    missing: int = 0
    extra: int = 0
    changed: int = 0
    deleted_at_source: int = 0
    moved: int = 0
    not_loaded: int = 0

    @property
    def is_drift(self) -> bool:
        return self.missing + self.extra + self.changed > 0

    @property
    def is_different(self) -> bool:
        return self.is_drift or self.deleted_at_source + self.moved + self.not_loaded > 0


def comparable_chunks(
    chunks: Sequence[Chunk], states: Sequence[ChunkState], due: Collection[str], complete_to: int | None = None
) -> tuple[ComparableChunk, ...]:
    """Return the chunks of the plan of which something is published, with its bounds.

    Windows follow from the coverage of all plans. Chunks that no window holds (`null`, `outside`), files and whole
    tables have no coverage: they count as published when they are done. `due` are the keys of chunks that are loaded
    next; the source holds something new of them. A whole table is due at each schedule, so that says nothing of it.
    A window of which the source has no row any more is not planned, and is compared all the same. `complete_to`: rows
    of windows may come later from there on, and are read again by the next load.
    """
    complete = Interval(None, complete_to)
    coverage = {
        part: within(union(covered for state in of_part for covered in state.covered), complete)
        for part, of_part in by_part(states, lambda state: state.bounds).items()
    }
    windows = {
        part: union(chunk.interval for chunk in of_part if chunk.interval.upper is not None)
        for part, of_part in by_part(_ranges(chunks), lambda bounds: bounds).items()
    }
    done = {state.key for state in states if state.status == "done" and not state.is_rewound}
    found = []
    for chunk in chunks:
        match chunk.bounds:
            case CursorRange(interval, part) if interval.upper is not None:
                covered = within(coverage.get(part, ()), interval)
                if covered:
                    found.append(ComparableChunk(chunk.key, tuple(CursorRange(one, part) for one in covered)))
            case CursorRange() | NullCursor() | SourceFile() if chunk.key in done and chunk.key not in due:
                found.append(ComparableChunk(chunk.key, (chunk.bounds,)))
            case WholeTable() if chunk.key in done:
                found.append(ComparableChunk(chunk.key, (chunk.bounds,)))
            case CursorRange() | NullCursor() | SourceFile() | WholeTable() | Segment():
                pass
    keys = {chunk.key for chunk in chunks}
    for state in states:
        if isinstance(state.bounds, CursorRange) and state.key not in keys:
            part = state.bounds.part
            left = subtract(within(within(state.covered, complete), state.bounds.interval), windows.get(part, ()))
            if left:
                found.append(ComparableChunk(state.key, tuple(CursorRange(one, part) for one in left)))
    return tuple(found)


def _ranges(chunks: Iterable[Chunk]) -> Iterator[CursorRange]:
    return (chunk.bounds for chunk in chunks if isinstance(chunk.bounds, CursorRange))


def within_stretch(chunks: Iterable[ComparableChunk], stretch: Interval) -> tuple[ComparableChunk, ...]:
    """Return the chunks of which published rows lie within the stretch of the cursor. Each is compared whole."""
    return tuple(chunk for chunk in chunks if any(overlap(one, stretch) for one in chunk.intervals))


def newest_windows(chunks: Sequence[ComparableChunk], count: int) -> tuple[ComparableChunk, ...]:
    """Return the newest chunks: of each part the last windows, of files the last by name, or the whole table."""
    windows = [chunk for chunk in chunks if chunk.intervals and high(chunk.intervals[-1]) != float("inf")]
    if not windows:
        return tuple(chunks[-count:])
    newest: set[str] = set()
    for of_part in by_part(windows, lambda chunk: chunk.bounds[0]).values():
        newest.update(chunk.key for chunk in sorted(of_part, key=_lower)[-count:])
    return tuple(chunk for chunk in windows if chunk.key in newest)


def in_cursor_order(chunks: Iterable[ComparableChunk]) -> list[ComparableChunk]:
    return sorted(chunks, key=lambda chunk: (_lower(chunk), chunk.key))


def _lower(chunk: ComparableChunk) -> float:
    return low(chunk.intervals[0]) if chunk.intervals else float("inf")


@dataclass(frozen=True, slots=True)
class Buckets:
    """Ranges of the cursor as one sorted list of edges, so that one query counts the rows of many chunks.

    A row belongs to bucket `n` if `n` edges are not above its cursor; `owners` names the chunks by bucket.
    """

    edges: tuple[int, ...]
    owners: Mapping[int, str]
    hull: Interval

    @classmethod
    def of(cls, chunks: Iterable[ComparableChunk]) -> Buckets:
        ranges = sorted(
            ((interval, chunk.key) for chunk in chunks for interval in chunk.intervals), key=lambda one: low(one[0])
        )
        edges: list[int] = []
        owners: dict[int, str] = {}
        for interval, key in ranges:
            if interval.lower is not None and (not edges or edges[-1] != interval.lower):
                edges.append(interval.lower)
            owners[len(edges)] = key
            if interval.upper is not None:
                edges.append(interval.upper)
        return cls(tuple(edges), owners, Interval(ranges[0][0].lower, ranges[-1][0].upper))

    def tallies(self, found: Iterable[tuple[int, int, int]]) -> dict[str, ChunkTally]:
        """Sum up what a query found, as (bucket, rows, digest)."""
        tallies = dict.fromkeys(self.owners.values(), ChunkTally(0))
        for bucket, rows, digest in found:
            if (key := self.owners.get(bucket)) is not None:
                so_far = tallies[key]
                tallies[key] = ChunkTally(so_far.rows + rows, so_far.digest + digest)
        return tallies


@dataclass(frozen=True, slots=True)
class QuarantinedRows:
    """Rows that one load has quarantined, by the text of their cursor as the quarantine keeps it."""

    load_id: int
    chunk_key: str | None
    cursor: str | None
    rows: int


def count_quarantined(
    rows: Iterable[QuarantinedRows],
    chunks: Sequence[ComparableChunk],
    kind: CursorKind | None,
    read_again: Callable[[int], ReadAgain],
) -> Mapping[str, int]:
    """Count the quarantined rows of each chunk. What a later load has read again counts for that load only."""
    ranges = sorted(
        ((interval, chunk.key) for chunk in chunks for interval in chunk.intervals), key=lambda one: low(one[0])
    )
    lowers = [low(interval) for interval, _ in ranges]
    others = {chunk.key for chunk in chunks if not chunk.intervals}
    found: Counter[str] = Counter()
    for one in rows:
        position = None if kind is None or one.cursor is None else position_of(one.cursor, kind)
        later = read_again(one.load_id)
        if position is None:
            if one.chunk_key in others and not (later.nulls and one.cursor is None):
                found[one.chunk_key] += one.rows
        elif not within(later.intervals, Interval(position, position + 1)):
            at = bisect_right(lowers, position) - 1
            if at >= 0 and position < high(ranges[at][0]):
                found[ranges[at][1]] += one.rows
    return found


def position_of(text: str, kind: CursorKind) -> int | None:
    """Return the position of a cursor that is written as text; None of what has none (NaN, infinity)."""
    if kind == "numeric":
        try:
            number = Decimal(text)
        except InvalidOperation:
            return None
        return math.floor(number) if number.is_finite() else None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return to_position(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
