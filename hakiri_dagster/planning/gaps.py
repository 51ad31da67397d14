"""Gaps: what was published and is not there any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hakiri_dagster.planning.chunks import Bounds, Chunk, CursorRange, Interval, NullCursor, Part
from hakiri_dagster.planning.intervals import high, hull, low
from hakiri_dagster.planning.parts import by_part, part_name, part_of
from hakiri_dagster.planning.repair import LedgerRow


@dataclass(frozen=True, slots=True)
class Gap:
    """`owed`: the ledger has lost the chunk's load, so it is loaded again by itself. Otherwise the ledger knows of it,
    and only its rows are gone: somebody deleted them, who may have meant to. `published_to`: another target, which
    the table had before and which has the chunk's rows."""

    key: str
    load_id: int | None
    owed: bool
    published_to: str | None = None


@dataclass(frozen=True, slots=True)
class Vanished:
    """Chunks whose rows are gone. `stretch`: of windows that lie next to one another, of one part; None for others."""

    keys: tuple[str, ...]
    stretch: Interval | None
    part: Part | None = None


def to_be_there(ledger: Iterable[LedgerRow]) -> tuple[LedgerRow, ...]:
    """Loads that have published rows which no later load has replaced."""
    live = [row for row in ledger if not row.superseded]
    newest = max(live, key=lambda row: row.load_id, default=None)
    if newest is None:
        return ()
    alike = [row for row in live if _by_cursor(row.bounds) == _by_cursor(newest.bounds)]
    overlapped = {i for rows in by_part(alike, lambda row: row.bounds).values() for i in _overlapped(rows)}
    return tuple(row for row in alike if row.rows > 0 and row.load_id not in overlapped)


def stretches(chunks: Sequence[Chunk]) -> tuple[Vanished, ...]:
    """Windows that touch are told together."""
    windows = sorted(
        (c for c in chunks if isinstance(c.bounds, CursorRange)), key=lambda c: (part_name(c.key), _lower(c))
    )
    groups: list[list[Chunk]] = []
    for chunk in windows:
        if groups and _follows(chunk, groups[-1][-1]):
            groups[-1].append(chunk)
        else:
            groups.append([chunk])
    told = (
        Vanished(tuple(c.key for c in group), hull(tuple(map(_interval, group))), part_of(group[0].bounds))
        for group in groups
    )
    return (*told, *(Vanished((c.key,), None) for c in chunks if not isinstance(c.bounds, CursorRange)))


def _follows(chunk: Chunk, before: Chunk) -> bool:
    return part_of(chunk.bounds) == part_of(before.bounds) and high(_interval(before)) == low(_interval(chunk))


def _by_cursor(bounds: Bounds) -> bool:
    return isinstance(bounds, CursorRange | NullCursor)


def _overlapped(rows: Iterable[LedgerRow]) -> Iterator[int]:
    """Of two that overlap, the earlier one. One sweep in cursor order."""
    ranges = [(row.bounds.interval, row.load_id) for row in rows if isinstance(row.bounds, CursorRange)]
    reaching: list[tuple[Interval, int]] = []
    for interval, load_id in sorted(ranges, key=lambda item: low(item[0])):
        reaching = [part for part in reaching if high(part[0]) > low(interval)]
        yield from (min(load_id, other) for _, other in reaching)
        reaching.append((interval, load_id))


def _interval(chunk: Chunk) -> Interval:
    assert isinstance(chunk.bounds, CursorRange)
    return chunk.bounds.interval


def _lower(chunk: Chunk) -> float:
    return low(_interval(chunk))
