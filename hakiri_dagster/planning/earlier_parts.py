"""What a table has published in parts that it has no more, or before it had any: what that still says, and what is told
of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hakiri_dagster.planning.chunks import Bounds, CursorRange, Interval, NullCursor, Part
from hakiri_dagster.planning.intervals import Intervals, subtract, union, within
from hakiri_dagster.planning.parts import part_of, some_of, within_part
from hakiri_dagster.planning.states import ChunkState, Due

_ALL: Final = (Interval(None, None),)


def renamed_key(states: Iterable[ChunkState], parts: Iterable[Part]) -> str | None:
    """Why a table must not be loaded whose partition key had another name when it was: its parts would be others."""
    names = {part.column for part in parts}
    before = {part.column for s in states if (part := part_of(s.bounds)) is not None and s.has_published} - names
    if not names or not before:
        return None
    now, then = (", ".join(sorted(one)) for one in (names, before))
    return (
        f"the partition key was {then} when the table was loaded and is {now} now: every part would be loaded again "
        f"beside the rows that are there; call it {then}; or give the table another `target`, which is loaded anew; "
        "or drop the target and apply"
    )


def under_its_name(states: Iterable[ChunkState], parts: Iterable[Part]) -> Iterable[ChunkState]:
    """Chunks that have published nothing go on under another name of the partition key: they are called the same."""
    by_value = {part.value: part for part in parts}
    for state in states:
        before = part_of(state.bounds)
        part = by_value.get(before.value) if before is not None else None
        if part is None or part == before or state.has_published:
            yield state
        else:
            yield replace(state, bounds=within_part(state.bounds, part), from_ledger=True)  # so that it is stored


def less_replaced(states: list[ChunkState], whole: Sequence[ChunkState]) -> list[ChunkState]:
    """Rows of a part have given way to what the table published later, when it had no parts."""
    live = [state for state in whole if state.has_published]
    newest = max((state.load_id or 0 for state in live), default=0)
    if newest == 0:
        return states
    by_cursor = all(isinstance(state.bounds, CursorRange | NullCursor) for state in live)
    taken = union(interval for state in live for interval in state.covered) if by_cursor else _ALL
    return [
        replace(state, covered=subtract(state.covered, taken), cursor_committed=None, seen=None)
        if 0 < _newest_load(state) < newest and _reaches(state.bounds, taken)
        else state
        for state in states
    ]


def _reaches(bounds: Bounds, taken: Intervals) -> bool:
    return not isinstance(bounds, CursorRange) or bool(within(taken, bounds.interval))


def _newest_load(state: ChunkState) -> int:
    return max(state.load_id or 0, *state.carried_from, 0)


def told_of_gone(gone: Mapping[Part | None, Sequence[ChunkState]]) -> Iterable[str]:
    published = {p: [s for s in states if s.has_published and _newest_load(s)] for p, states in gone.items()}
    named = [part.value for part, states in published.items() if part is not None and states]
    if named:
        yield f"{some_of(named)} left the partition keys: rows that are there stay, and nothing more of it is loaded"
    if published.get(None):
        yield (
            f"{len(published[None])} chunk(s) were published before the table had partition keys: their rows stay, "
            "and are loaded once more by part; to begin anew, drop the target"
        )


def told_of_lost_parts(owed: Due, known: Mapping[Part | None, Sequence[ChunkState]]) -> Iterable[str]:
    """As long as there is a load to come that they have rows in the way of."""
    bounds = [one.slice.bounds for one in (*owed.slices, *owed.busy)]
    ranges = [one.interval for one in bounds if isinstance(one, CursorRange)]
    covered = {part: union(i for s in states for i in s.covered) for part, states in known.items()}
    found = [part.value for part, its in covered.items() if part and any(within(its, one) for one in ranges)]
    if found:
        yield (
            f"the table has no partition keys any more: what was published of {some_of(found)} is loaded once more, as "
            "one; in append, the rows of all these parts give way to each window that is loaded, also those that the "
            "source does not give any more: to keep them, give the table another `target`"
        )
