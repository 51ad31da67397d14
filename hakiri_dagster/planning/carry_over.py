"""Which earlier loads published the rows of a chunk that need not be loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hakiri_dagster.planning.chunks import Chunk, CursorRange, Interval
from hakiri_dagster.planning.intervals import high, low, overlap
from hakiri_dagster.planning.states import ChunkState


def load_ids(chunks: Sequence[Chunk], states: Iterable[ChunkState]) -> dict[str, tuple[int, ...]]:
    """One sweep over both in cursor order: a backfill may have a hundred thousand chunks on either side."""
    wanted = sorted(_intervals(chunks), key=lambda item: low(item[1]))
    if not wanted:
        return {}
    parts = sorted(_published_parts(states), key=lambda item: low(item[0]))
    found: dict[str, tuple[int, ...]] = {}
    reaching: list[tuple[Interval, tuple[int, ...]]] = []
    upcoming = 0
    for key, interval in wanted:
        while upcoming < len(parts) and low(parts[upcoming][0]) < high(interval):
            reaching.append(parts[upcoming])
            upcoming += 1
        reaching = [part for part in reaching if high(part[0]) > low(interval)]
        found[key] = tuple(sorted({i for part, ids in reaching if overlap(part, interval) for i in ids}))
    return found


def _intervals(chunks: Sequence[Chunk]) -> Iterable[tuple[str, Interval]]:
    return ((c.key, c.bounds.interval) for c in chunks if isinstance(c.bounds, CursorRange))


def _published_parts(states: Iterable[ChunkState]) -> Iterable[tuple[Interval, tuple[int, ...]]]:
    for state in states:
        ids = state.carried_from if state.load_id is None else (state.load_id, *state.carried_from)
        if ids:
            yield from ((part, ids) for part in (*state.covered, *_open_mark(state)))


def _open_mark(state: ChunkState) -> Iterable[Interval]:
    """Rows at it are published, and nothing after it was there: a chunk that begins at it may have no other load."""
    mark = state.cursor_committed
    if mark is not None and isinstance(state.bounds, CursorRange) and mark < high(state.bounds.interval):
        yield Interval(mark, mark + 1)
