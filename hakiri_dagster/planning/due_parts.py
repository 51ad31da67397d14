"""Which slices a table owes its source where that keeps parts of it apart, and where it does so no more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from hakiri_dagster.planning.chunks import Chunk, Extent, Part, Slice
from hakiri_dagster.planning.earlier_parts import (
    less_replaced,
    told_of_gone,
    told_of_lost_parts,
    under_its_name,
)
from hakiri_dagster.planning.parts import bare_key, by_part, chunk_in, key_in, some_of, within_part
from hakiri_dagster.planning.states import ChunkState, Due, DueSlice


def due_by_part(
    chunks: Sequence[Chunk],
    states: Iterable[ChunkState],
    parts: Mapping[Part, Extent],
    away: Collection[Part],
    due: Callable[[Sequence[Chunk], Sequence[ChunkState], Extent], Due],
) -> Due:
    """What each part owes by itself: what is published of one says nothing of another.

    A part that the manifest no longer names keeps its rows, and owes nothing. What one owes that is away is found out
    when it is back.
    """
    planned = by_part(chunks, lambda chunk: chunk.bounds)
    known = by_part(under_its_name(states, [*parts, *away]), lambda state: state.bounds)
    known = {part: less_replaced(its, known.get(None, ())) if part else its for part, its in known.items()}
    found = {
        part: due([_bare_chunk(c) for c in planned.get(part, ())], [_bare(s) for s in known.get(part, ())], extent)
        for part, extent in parts.items()
    }
    gone = {part: states for part, states in known.items() if part not in parts and part not in away}
    together = _together([_in(part, one) for part, one in found.items()])
    told = (*_told({part: one.warnings for part, one in found.items()}), *told_of_gone(gone))
    return _without(replace(together, warnings=told), gone)


def due_as_one(
    chunks: Sequence[Chunk],
    states: Iterable[ChunkState],
    extent: Extent,
    due: Callable[[Sequence[Chunk], Sequence[ChunkState], Extent], Due],
) -> Due:
    """What a table without parts owes. What was published of parts that it had says nothing of the whole."""
    known = dict(by_part(states, lambda state: state.bounds))
    owed = due(chunks, known.pop(None, []), extent)
    return _without(replace(owed, warnings=(*owed.warnings, *told_of_lost_parts(owed, known))), known)


def _without(due: Due, gone: Mapping[Part | None, Sequence[ChunkState]]) -> Due:
    """With an end to what is planned of parts that are no more. What they have published is left as it is."""
    left = [state for states in gone.values() for state in states]
    theirs = {state.key for state in left}
    return replace(
        due,
        states=(
            *(state for state in due.states if state.key not in theirs),
            *(replace(s, status="retired") for s in left if s.status in ("pending", "failed")),
        ),
        overtaken=(*due.overtaken, *(state.key for state in left if state.status == "running")),
    )


def _bare_chunk(chunk: Chunk) -> Chunk:
    return Chunk(bare_key(chunk.key), within_part(chunk.bounds, None))


def _bare(state: ChunkState) -> ChunkState:
    superseded = tuple(map(bare_key, state.supersedes))
    return replace(state, key=bare_key(state.key), bounds=within_part(state.bounds, None), supersedes=superseded)


def _in(part: Part, due: Due) -> Due:
    def keys(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(key_in(part, name) for name in names)

    def slices(found: Iterable[DueSlice]) -> tuple[DueSlice, ...]:
        return tuple(
            DueSlice(
                Slice(chunk_in(part, one.slice.chunk), within_part(one.slice.bounds, part)),
                one.attempts,
                one.settles,
                one.mark_at_most,
                one.seen,
                keys(one.supersedes),
            )
            for one in found
        )

    return Due(
        slices=slices(due.slices),
        busy=slices(due.busy),
        done=tuple(chunk_in(part, chunk) for chunk in due.done),
        states=tuple(
            replace(s, key=key_in(part, s.key), bounds=within_part(s.bounds, part), supersedes=keys(s.supersedes))
            for s in due.states
        ),
        carried_over=keys(due.carried_over),
        overtaken=keys(due.overtaken),
    )


def _together(dues: Sequence[Due]) -> Due:
    return Due(
        slices=tuple(one for due in dues for one in due.slices),
        busy=tuple(one for due in dues for one in due.busy),
        done=tuple(one for due in dues for one in due.done),
        states=tuple(one for due in dues for one in due.states),
        carried_over=tuple(key for due in dues for key in due.carried_over),
        overtaken=tuple(key for due in dues for key in due.overtaken),
    )


def _told(warnings: Mapping[Part, Sequence[str]]) -> Iterable[str]:
    """One that many parts have is told once."""
    having: dict[str, list[str]] = defaultdict(list)
    for part, told in warnings.items():
        for text in told:
            having[text].append(part.value)
    return (f"{some_of(values)}: {text}" for text, values in having.items())
