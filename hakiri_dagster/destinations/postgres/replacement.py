"""What a new load replaces among the table's own earlier loads. Pure: bounds against bounds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from hakiri_dagster.planning.chunks import (
    Bounds,
    CursorRange,
    Interval,
    NullCursor,
    Part,
    Segment,
    SourceFile,
    WholeTable,
)
from hakiri_dagster.planning.parts import part_of


@dataclass(frozen=True, slots=True)
class Earlier:
    """A ledger entry that has not been superseded. `cursor_max` is the highest cursor among its rows."""

    load_id: int
    chunk_key: str
    bounds: Bounds
    cursor_max: int | None


@dataclass(frozen=True, slots=True)
class Replacement:
    """`partly`: loads of which the rows within the new bounds go; `wholly`: loads of which all rows go;
    `superseded`: loads whose whole bounds the new one covers, whether or not rows of theirs are left."""

    partly: tuple[int, ...]
    wholly: tuple[int, ...]
    superseded: tuple[int, ...]

    @property
    def load_ids(self) -> tuple[int, ...]:
        return tuple(sorted((*self.partly, *self.wholly)))


def replacement(bounds: Bounds, earlier: Sequence[Earlier], supersedes: Collection[str] = ()) -> Replacement:
    """`supersedes` are the keys of chunks of which all rows go, whatever their bounds."""
    named = {entry.load_id for entry in earlier if entry.chunk_key in supersedes}
    covered = named | {entry.load_id for entry in earlier if covers(bounds, entry.bounds)}
    whole = covered if not _by_cursor(bounds) else named
    part = {entry.load_id for entry in earlier if entry.load_id not in whole and _touches(bounds, entry)}
    return Replacement(tuple(sorted(part)), tuple(sorted(whole)), tuple(sorted(covered)))


def covers(new: Bounds, old: Bounds) -> bool:
    if _begins_anew(new, old):
        return True
    if part_of(new) != part_of(old):
        return False
    match new, old:
        case SourceFile(), SourceFile():
            # never by path: what a path held before may have moved to another one
            return new.content_hash == old.content_hash
        case CursorRange(), CursorRange():
            return _contains(new.interval, old.interval)
        case NullCursor(), NullCursor():
            return True
        case Segment(number), Segment(other):
            return number == other
        case _:
            return False


def _begins_anew(new: Bounds, old: Bounds) -> bool:
    """All rows of the table, or its first segment where there were none: they come again, whatever they came in."""
    return new == WholeTable() or (isinstance(new, Segment) and new.number == 1 and not isinstance(old, Segment))


def _by_cursor(bounds: Bounds) -> bool:
    """The cursor says which rows go: even a covered load may hold rows that lie elsewhere."""
    return isinstance(bounds, CursorRange | NullCursor)


def _touches(new: Bounds, entry: Earlier) -> bool:
    if _apart(part_of(new), part_of(entry.bounds)):
        return False
    match new, entry.bounds:
        case CursorRange(), CursorRange():
            return _overlaps(new.interval, entry.bounds.interval) and _reaches(entry, new.interval.lower)
        case CursorRange(), NullCursor():
            return False
        case CursorRange(), _:
            return _reaches(entry, new.interval.lower)
        case NullCursor(), CursorRange():
            return False
        case NullCursor(), _:
            return True
        case SourceFile(), SourceFile():
            return False
        case SourceFile(), _:
            return True
        case _:
            return False


def _apart(new: Part | None, old: Part | None) -> bool:
    """What was loaded before a table had parts may hold rows of any."""
    return new is not None and old is not None and new != old


def _reaches(entry: Earlier, lower: int | None) -> bool:
    """Slices of an open chunk all end at the same bound; what they hold tells them apart."""
    return lower is None or entry.cursor_max is None or entry.cursor_max >= lower


def _contains(outer: Interval, inner: Interval) -> bool:
    below = outer.lower is None or (inner.lower is not None and inner.lower >= outer.lower)
    above = outer.upper is None or (inner.upper is not None and inner.upper <= outer.upper)
    return below and above


def _overlaps(one: Interval, other: Interval) -> bool:
    before = one.upper is not None and other.lower is not None and one.upper <= other.lower
    after = one.lower is not None and other.upper is not None and one.lower >= other.upper
    return not (before or after)


def bounds_to_json(bounds: Bounds) -> dict[str, Any]:
    match bounds:
        case CursorRange(interval, part):
            return {"kind": "range", "lower": interval.lower, "upper": interval.upper, **_part_to_json(part)}
        case NullCursor(part):
            return {"kind": "null", **_part_to_json(part)}
        case SourceFile(path, content_hash):
            return {"kind": "file", "path": path, "hash": content_hash}
        case WholeTable():
            return {"kind": "full"}
        case Segment(number, after):
            return {"kind": "segment", "number": number, "after": after}


def bounds_from_json(document: dict[str, Any]) -> Bounds:
    match document["kind"]:
        case "range":
            return CursorRange(Interval(document["lower"], document["upper"]), _part_from_json(document))
        case "null":
            return NullCursor(_part_from_json(document))
        case "file":
            return SourceFile(document["path"], document["hash"])
        case "full":
            return WholeTable()
        case "segment":
            return Segment(document["number"], document["after"])
        case other:
            raise ValueError(f"unknown bounds in the ledger: {other}")


def _part_to_json(part: Part | None) -> dict[str, Any]:
    return {} if part is None else {"part": {"column": part.column, "value": part.value}}


def _part_from_json(document: dict[str, Any]) -> Part | None:
    part = document.get("part")
    return None if part is None else Part(part["column"], part["value"])
