"""Which rows of a quarantine may be loaded after all, chunk by chunk, and why the others are left alone. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from hakiri_dagster.manifest.load_spec import HISTORY_MODES
from hakiri_dagster.manifest.rule_spec import RowOnFail
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.chunks import Bounds, CursorRange, Interval, NullCursor, Segment, SourceFile, WholeTable
from hakiri_dagster.planning.intervals import Intervals, high, low, union
from hakiri_dagster.planning.parts import part_of

Standing = Literal["unknown", "stands", "replaced", "gone"]
"""What the ledger says of a load: that it has never heard of it, that its rows are there, that a later one has replaced
them, that they are gone without a successor."""

Shape = Literal["cursor", "files", "full", "segments"]


@dataclass(frozen=True, slots=True)
class KeptOfLoad:
    """How many rows a load has set aside, of one kind. `is_line`: what could not be parsed. `bounds` are the load's."""

    chunk_key: str | None
    load_id: int | None
    on_fail: RowOnFail | None
    is_line: bool
    rows: int
    standing: Standing
    bounds: Bounds | None = None


@dataclass(frozen=True, slots=True)
class LiveLoad:
    """A load that stands. `is_replay`: of rows that another one had set aside."""

    load_id: int
    chunk_key: str
    bounds: Bounds
    is_replay: bool


@dataclass(frozen=True, slots=True)
class ReplayChunk:
    """A chunk of which rows may be loaded. `loads` set them aside, each within its bounds; `bounds` hold them all."""

    key: str
    bounds: Bounds
    loads: Mapping[int, Bounds]
    rows: int


@dataclass(frozen=True, slots=True)
class LeftAlone:
    reason: str
    rows: int


def objection(table: Table) -> str | None:
    """Why rows cannot be added to those that the table's loads have published."""
    again = f"`hakiri run {table.pipeline_id} --table {table.name}` loads it with the rules of today"
    if table.whole_table:
        return f"every load of mode {table.mode} reads all rows of the source, those in quarantine too: {again}"
    if table.mode in HISTORY_MODES and table.cursor is None:
        return (
            f"without a cursor, a row has in mode {table.mode} no time but that of its load, which has passed: "
            f"{again}, `--chunk` a part of it"
        )
    return None


def plan_replay(
    table: Table, kept: Iterable[KeptOfLoad], shape: Shape | None
) -> tuple[tuple[ReplayChunk, ...], tuple[LeftAlone, ...]]:
    """Without a shape, what may be replayed as far as the quarantine and the ledger tell."""
    loads: dict[str, dict[int, Bounds]] = defaultdict(dict)
    rows: dict[str, int] = defaultdict(int)
    left: dict[str, int] = defaultdict(int)
    for one in kept:
        reason = _why_not(table, one, shape)
        if reason is not None:
            left[reason] += one.rows
        elif one.chunk_key is not None and one.load_id is not None and one.bounds is not None:
            loads[one.chunk_key][one.load_id] = one.bounds
            rows[one.chunk_key] += one.rows
    chunks = tuple(ReplayChunk(key, hull_of(list(of.values())), of, rows[key]) for key, of in sorted(loads.items()))
    return chunks, tuple(LeftAlone(reason, rows) for reason, rows in left.items())


def _why_not(table: Table, one: KeptOfLoad, shape: Shape | None) -> str | None:
    again = f"`hakiri run {table.pipeline_id} --table {table.name} --chunk KEY`"
    if one.on_fail == "warn":
        return "a rule only warns of them, and keeps none of them from the target"
    if one.on_fail == "abort":
        return "a rule has stopped the load of their chunk: the next apply loads it"
    if one.load_id is None or one.chunk_key is None:
        return "nothing tells which load has set them aside"
    match one.standing:
        case "unknown":
            return "the load that has set them aside was not published: the next apply loads their chunk"
        case "replaced":
            return "a later load has taken the place of the one that has set them aside"
        case "gone":
            return "the target was made anew since: the next apply loads their chunk"
        case "stands":
            pass
        case _:
            assert_never(one.standing)
    if one.is_line:
        return f"they could not be read: mend the file, or how it is read, and load their chunk again with {again}"
    if one.bounds is None or (shape is not None and not _is_of(shape, one.bounds)):
        return "the table was cut into other chunks since: load it again with `hakiri run`"
    return None


def _is_of(shape: Shape, bounds: Bounds) -> bool:
    match shape:
        case "cursor":
            return isinstance(bounds, CursorRange | NullCursor)
        case "files":
            return isinstance(bounds, SourceFile)
        case "full":
            return isinstance(bounds, WholeTable)
        case "segments":
            return isinstance(bounds, Segment)
        case _:
            assert_never(shape)


def hull_of(bounds: Sequence[Bounds]) -> Bounds:
    """Of several slices of one chunk."""
    ranges = [one.interval for one in bounds if isinstance(one, CursorRange)]
    if not ranges:
        return bounds[0]
    return CursorRange(Interval(min(ranges, key=low).lower, max(ranges, key=high).upper), part_of(bounds[0]))


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """What later loads have read once more of what one load set aside: the rows are theirs."""

    intervals: Intervals = ()
    nulls: bool = False


def read_again(load_id: int, beside: Iterable[LiveLoad]) -> ReadAgain:
    later = [one.bounds for one in beside if one.load_id > load_id and not one.is_replay]
    return ReadAgain(
        union(bounds.interval for bounds in later if isinstance(bounds, CursorRange)),
        any(isinstance(bounds, NullCursor) for bounds in later),
    )
