"""Taking back what counts as published, so that it is loaded again. Rows stay until their successors replace them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf

from hakiri_dagster.planning.chunks import Bounds, CursorRange, Interval, Part
from hakiri_dagster.planning.intervals import NOTHING, Intervals, low, overlap, subtract, union, within
from hakiri_dagster.planning.parts import by_part, part_of
from hakiri_dagster.planning.states import ChunkState


@dataclass(frozen=True, slots=True)
class RewoundChunk:
    """A chunk that somebody asked for again and that was not published since. `load_ids`: where its rows came from."""

    key: str
    rewind_id: int
    reason: str
    asked_by: str
    asked_at: datetime
    load_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reach:
    """The chunks of the newest plan that a stretch of the cursor touches, in its order. `published` have something to
    be taken back; `owed` have not: they were never loaded, or somebody asked for them already."""

    published: tuple[ChunkState, ...]
    owed: tuple[ChunkState, ...]

    @property
    def states(self) -> tuple[ChunkState, ...]:
        return (*self.published, *self.owed)


def reach(
    states: Sequence[ChunkState],
    stretch: Interval,
    parts: Collection[str] = (),
    keys: Collection[str] | None = None,
) -> Reach:
    """`parts`: their values; none: of all parts, or of a table without any. `keys`: the chunks themselves are named,
    of whatever kind, and the stretch selects nothing."""
    newest = max((state.generation for state in states), default=0)
    coverage = {
        part: union(covered for state in of_part for covered in state.covered)
        for part, of_part in by_part(states, lambda state: state.bounds).items()
    }
    touched = sorted(
        (
            state
            for state in states
            if state.generation == newest
            and (_lies_in(state.bounds, stretch, parts) if keys is None else state.key in keys)
        ),
        key=_in_cursor_order,
    )

    def is_published(state: ChunkState) -> bool:
        bounds = state.bounds
        is_covered = isinstance(bounds, CursorRange) and bool(within(coverage[bounds.part], bounds.interval))
        return is_covered or _holds_rows(state)

    return Reach(
        published=tuple(state for state in touched if is_published(state)),
        owed=tuple(state for state in touched if not is_published(state)),
    )


def _lies_in(bounds: Bounds, stretch: Interval, parts: Collection[str]) -> bool:
    if not isinstance(bounds, CursorRange) or not overlap(bounds.interval, stretch):
        return False
    return not parts or (bounds.part is not None and bounds.part.value in parts)


def _in_cursor_order(state: ChunkState) -> tuple[float, str]:
    return (low(state.bounds.interval) if isinstance(state.bounds, CursorRange) else inf, state.key)


def rewind(
    states: Sequence[ChunkState],
    stretch: Interval,
    rewind_id: int | None = None,
    planned: Collection[str] | None = None,
    parts: Collection[str] = (),
    keys: Collection[str] | None = None,
) -> tuple[ChunkState, ...]:
    """The states that change: the newest plan becomes a new generation, which owes what is published of the stretch.

    A chunk is owed whole, and what it published no longer counts, in older plans either. One that is not in the plan
    that the source makes now (`planned`) is owed when the source has rows there again.
    """
    touched = reach(states, stretch, parts, keys).published
    if not touched:
        return ()
    newest = touched[0].generation
    again = {state.key for state in touched}
    changed = []
    taken = stretches_of(state.bounds for state in touched)
    for before, state in zip(states, uncovered_by_part(states, taken), strict=True):
        if state.key in again:
            changed.append(_taken_back(state, rewind_id, in_plan=planned is None or state.key in planned))
        elif state.generation == newest:
            changed.append(replace(state, generation=newest + 1))
        elif state != before:
            changed.append(state)
    return tuple(changed)


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


def stretches_of(bounds: Iterable[Bounds]) -> Mapping[Part | None, Intervals]:
    """What ranges of the cursor cover together, each part by itself."""
    ranges = [one for one in bounds if isinstance(one, CursorRange)]
    return {part: union(one.interval for one in found) for part, found in by_part(ranges, lambda one: one).items()}


def uncovered_by_part(states: Iterable[ChunkState], taken: Mapping[Part | None, Intervals]) -> Iterator[ChunkState]:
    for state in states:
        yield from uncovered([state], taken.get(part_of(state.bounds), NOTHING))


def _holds_rows(state: ChunkState) -> bool:
    """Of loads of its own, or of others. Their coverage may be empty: that of a slice without rows is."""
    return not state.is_rewound and (state.load_id is not None or bool(state.carried_from))


def _taken_back(state: ChunkState, rewind_id: int | None, *, in_plan: bool) -> ChunkState:
    """It counts as an attempt, so that whoever looked before claims nothing and stores nothing."""
    return replace(
        state,
        status="pending" if in_plan else "retired",
        attempts=state.attempts + 1,
        generation=state.generation + 1,
        seen=None,
        cursor_committed=None,
        rewind=rewind_id,
    )
