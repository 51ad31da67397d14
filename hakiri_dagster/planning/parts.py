"""Parts of a table that its source keeps apart, such as the repositories of a forge: each is planned as a table of its
own. Its chunks are called `part|window`, as Dagster writes partitions of two dimensions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from hakiri_dagster.manifest.part_names import name_of
from hakiri_dagster.planning.chunks import Bounds, Chunk, CursorRange, Extent, NullCursor, Part

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


def some_of(values: Sequence[str]) -> str:
    more = len(values) - _SHOWN
    return ", ".join(values[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
