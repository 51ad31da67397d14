"""Taking back what counts as published, so that it is loaded again. Rows stay until their successors replace them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from hakiri_dagster.planning.chunks import CursorRange, Interval
from hakiri_dagster.planning.intervals import Intervals, overlap, subtract, union
from hakiri_dagster.planning.states import ChunkState


def rewind(states: Sequence[ChunkState], lower: int | None, upper: int | None) -> tuple[ChunkState, ...]:
    """The states that change: the newest plan becomes a new generation, which owes what overlaps `[lower, upper)`.

    A chunk is owed whole, and what it published no longer counts, in older plans either.
    """
    newest = max((state.generation for state in states), default=0)
    again = {
        state.key: state.bounds.interval
        for state in states
        if state.generation == newest
        and isinstance(state.bounds, CursorRange)
        and overlap(state.bounds.interval, Interval(lower, upper))
    }
    taken = union(again.values())
    return tuple(
        _next_generation(state, owed=state.key in again) if state.generation == newest else state
        for before, state in zip(states, uncovered(states, taken), strict=True)
        if state.generation == newest or state != before
    )


def uncovered(states: Iterable[ChunkState], taken: Intervals) -> Iterator[ChunkState]:
    """Every plan's states lose the stretch: what an older plan published there no longer counts either."""
    for state in states:
        covered = subtract(state.covered, taken)
        mark = state.cursor_committed
        if mark is not None and any(overlap(part, Interval(mark, mark + 1)) for part in taken):
            yield replace(state, covered=covered, cursor_committed=None)
        elif covered != state.covered:
            yield replace(state, covered=covered)
        else:
            yield state


def _next_generation(state: ChunkState, *, owed: bool) -> ChunkState:
    moved = replace(state, generation=state.generation + 1)
    return replace(moved, status="pending", seen=None, cursor_committed=None) if owed else moved
