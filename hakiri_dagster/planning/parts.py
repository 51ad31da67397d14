"""Parts of a table that its source keeps apart, such as the repositories of a forge: each is planned as a table of its
own. Its chunks are called `part|window`, as Dagster writes partitions of two dimensions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from hakiri_dagster.manifest.part_names import name_of
from hakiri_dagster.planning.chunks import Bounds, Chunk, CursorRange, Extent, NullCursor, Part, Slice
from hakiri_dagster.planning.states import ChunkState, Due, DueSlice

DELIMITER: Final = "|"
_SHOWN: Final = 3

Of = TypeVar("Of")


def key_in(part: Part | None, key: str) -> str:
    return key if part is None else f"{name_of(part.value)}{DELIMITER}{key}"


def bare_key(key: str) -> str:
    """Of a chunk within its part: the window's."""
    return key.rpartition(DELIMITER)[2]


def part_name(key: str) -> str:
    """Empty where the table has no parts."""
    return key.rpartition(DELIMITER)[0]


def part_of(bounds: Bounds) -> Part | None:
    return bounds.part if isinstance(bounds, CursorRange | NullCursor) else None


def within_part(bounds: Bounds, part: Part | None) -> Bounds:
    """Not by `replace`: there may be a hundred thousand of them."""
    match bounds:
        case CursorRange(interval):
            return CursorRange(interval, part)
        case NullCursor():
            return NullCursor(part)
        case _:
            return bounds


def chunk_in(part: Part, chunk: Chunk) -> Chunk:
    return Chunk(key_in(part, chunk.key), within_part(chunk.bounds, part))


def by_part(values: Iterable[Of], bounds: Callable[[Of], Bounds]) -> Mapping[Part | None, list[Of]]:
    found: dict[Part | None, list[Of]] = defaultdict(list)
    for value in values:
        found[part_of(bounds(value))].append(value)
    return found


def hull_of_extents(extents: Iterable[Extent]) -> Extent:
    """What all parts together hold."""
    found = list(extents)
    lowers = [extent.lower for extent in found if extent.lower is not None]
    uppers = [extent.upper for extent in found if extent.upper is not None]
    return Extent(min(lowers, default=None), max(uppers, default=None), sum(extent.nulls for extent in found))


def planned_by_part(parts: Mapping[Part, Extent], plan: Callable[[Extent], Iterable[Chunk]]) -> tuple[Chunk, ...]:
    return tuple(chunk_in(part, chunk) for part, extent in parts.items() for chunk in plan(extent))


def due_by_part(
    chunks: Sequence[Chunk],
    states: Iterable[ChunkState],
    parts: Mapping[Part, Extent],
    due: Callable[[Sequence[Chunk], Sequence[ChunkState], Extent], Due],
) -> Due:
    """What each part owes by itself: what is published of one says nothing of another.

    A part that the manifest no longer names keeps its rows, and owes nothing.
    """
    planned = by_part(chunks, lambda chunk: chunk.bounds)
    known = by_part(states, lambda state: state.bounds)
    found = {
        part: due([_bare_chunk(c) for c in planned.get(part, ())], [_bare(s) for s in known.get(part, ())], extent)
        for part, extent in parts.items()
    }
    gone = {part: states for part, states in known.items() if part not in parts}
    together = _together([_in(part, one) for part, one in found.items()])
    left = [state for states in gone.values() for state in states]
    return replace(
        together,
        states=(*together.states, *(replace(s, status="retired") for s in left if s.status in ("pending", "failed"))),
        overtaken=(*together.overtaken, *(state.key for state in left if state.status == "running")),
        warnings=(*_told({part: one.warnings for part, one in found.items()}), *_told_of_gone(gone)),
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


def _told_of_gone(gone: Mapping[Part | None, Sequence[ChunkState]]) -> Iterable[str]:
    published = {p: [s for s in states if s.load_id is not None or s.carried_from] for p, states in gone.items()}
    named = [part.value for part, states in published.items() if part is not None and states]
    if named:
        yield f"{some_of(named)} left the partition keys: rows that are there stay, and nothing more of it is loaded"
    if published.get(None):
        yield (
            f"{len(published[None])} chunk(s) were published before the table had partition keys: their rows stay, "
            "and are loaded once more by part; to begin anew, drop the target"
        )


def some_of(values: Sequence[str]) -> str:
    more = len(values) - _SHOWN
    return ", ".join(values[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
