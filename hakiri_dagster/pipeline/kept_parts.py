"""Rows out of the quarantine on their way to Spark: files that the driver writes, one slice each, and the workers read
where they stage the rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from hakiri_dagster.connectors.contract import FILE_COLUMN, KEPT_COLUMN
from hakiri_dagster.destinations.quarantine_contract import KeptLine
from hakiri_dagster.pipeline.row_values import ValueLost, column_of
from hakiri_dagster.planning.chunks import Bounds, CursorRange, Interval, NullCursor
from hakiri_dagster.planning.cursor_positions import cursor_positions
from hakiri_dagster.planning.intervals import missing, overlap
from hakiri_dagster.planning.replays import ReadAgain

OVERTAKEN = "-overtaken"
"""Verdicts that no rule of a manifest can be called: a later load has read the row again …"""

LOST = "-lost"
"""… and what it was cannot be told from what is kept."""

_BYTES_A_PART = 16 * 1024 * 1024
_ROWS_A_BATCH = 5000
_KEPT = pa.struct([("id", pa.int64()), ("slice", pa.int32()), ("verdict", pa.string()), ("reason", pa.string())])
KEPT_DDL = "struct<id: bigint, slice: int, verdict: string, reason: string>"


@dataclass(frozen=True, slots=True)
class KeptPart:
    path: str
    slice: int

    def ids(self) -> Iterator[int]:
        with open(self.path, encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line[: line.index("\t")])[0]


@dataclass(frozen=True, slots=True)
class WrittenParts:
    """`sources`: the files that the rows are from, as far as that is known."""

    parts: tuple[KeptPart, ...]
    sources: frozenset[str]

    def of(self, slice_: int) -> tuple[KeptPart, ...]:
        return tuple(part for part in self.parts if part.slice == slice_)


def write_parts(lines: Iterable[KeptLine], slices: Mapping[str, int], directory: Path) -> WrittenParts:
    """`lines` come chunk by chunk; `slices` are the chunks' places."""
    parts: list[KeptPart] = []
    sources: set[str] = set()
    file: IO[str] | None = None
    size = 0
    try:
        for line in lines:
            if line.chunk_key not in slices:
                continue
            place = slices[line.chunk_key]
            if file is None or size >= _BYTES_A_PART or parts[-1].slice != place:
                if file is not None:
                    file.close()
                path = directory / f"kept-{len(parts):06d}.jsonl"
                file, size = path.open("w", encoding="utf-8"), 0
                parts.append(KeptPart(str(path), place))
            if line.source_file is not None:
                sources.add(line.source_file)
            size += file.write(f"{json.dumps([line.id, line.load_id, line.source_file])}\t{line.row}\n")
    finally:
        if file is not None:
            file.close()
    return WrittenParts(tuple(parts), frozenset(sources))


@dataclass(frozen=True, slots=True)
class LoadOfKept:
    """What the workers are to know of a load whose rows come back. `marker`: of the one file that it had."""

    bounds: Bounds
    read_again: ReadAgain
    marker: int | None = None


@dataclass(frozen=True, slots=True)
class KeptRows:
    """`connectors.contract.DirectRows`. `types` are the source's columns of today; `renamed` their old names. `wanted`:
    the columns that are given; None: all."""

    files: tuple[KeptPart, ...]
    types: tuple[tuple[str, pa.DataType, str], ...]
    loads: Mapping[int, LoadOfKept]
    markers: Mapping[str, int]
    cursor: str | None
    renamed: Mapping[str, str]
    wanted: frozenset[str] | None = None

    def only(self, names: Collection[str]) -> KeptRows:
        return replace(self, wanted=frozenset(names))

    @property
    def parts(self) -> int:
        return len(self.files)

    @property
    def same_twice(self) -> bool:
        """Nobody else knows of these files."""
        return True

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over part numbers."""
        for batch in numbers:
            for part in batch.column(0).to_pylist():
                yield from self.read(part)

    def read(self, part: int) -> Iterator[pa.RecordBatch]:
        file = self.files[part]
        with open(file.path, encoding="utf-8") as lines:
            while some := list(islice(lines, _ROWS_A_BATCH)):
                batch = self._batch(some, file.slice)
                wanted = self.wanted
                yield batch if wanted is None else batch.select([n for n in batch.schema.names if n in wanted])

    def _batch(self, lines: list[str], slice_: int) -> pa.RecordBatch:
        heads, rows = [], []
        for line in lines:
            head, _, row = line.partition("\t")
            heads.append(json.loads(head))
            rows.append(json.loads(row))
        lost = {place: f"{', '.join(strange)}: the source has no such column today"
                for place, row in enumerate(rows) if (strange := self._strange(row))}  # fmt: skip
        columns: list[pa.Array] = []
        for name, kind, shown in self.types:
            old = self.renamed.get(name, name)
            column, failed = column_of([row.get(name, row.get(old)) for row in rows], kind)
            for place, error in failed.items():
                why = str(error) if isinstance(error, ValueLost) else f"what is kept of it is no {shown}"
                lost.setdefault(place, f"{name}: {why}")
            columns.append(column)
        loads = [self.loads[head[1]] for head in heads]
        verdicts = self._verdicts(columns, loads, lost)
        kept = [
            {"id": head[0], "slice": slice_, "verdict": verdict, "reason": reason}
            for head, (verdict, reason) in zip(heads, verdicts, strict=True)
        ]
        markers = [self._marker(load, head[2]) for load, head in zip(loads, heads, strict=True)]
        names = [name for name, _, _ in self.types]
        return pa.RecordBatch.from_arrays(
            [*columns, pa.array(markers, pa.int64()), pa.array(kept, _KEPT)], names=[*names, FILE_COLUMN, KEPT_COLUMN]
        )

    def _strange(self, row: Mapping[str, Any]) -> list[str]:
        known = {name for name, _, _ in self.types} | set(self.renamed.values())
        return [name for name, value in row.items() if value is not None and name not in known]

    def _marker(self, load: LoadOfKept, source_file: str | None) -> int | None:
        if load.marker is not None or source_file is None:
            return load.marker
        return self.markers.get(source_file)

    def _verdicts(
        self, columns: list[pa.Array], loads: list[LoadOfKept], lost: Mapping[int, str]
    ) -> Iterator[tuple[str | None, str | None]]:
        places = self._places(columns, len(loads))
        for number, (load, place) in enumerate(zip(loads, places, strict=True)):
            if number in lost:
                yield LOST, lost[number]
            elif self.cursor is not None and not _within(place, load.bounds):
                yield LOST, f"{self.cursor}: it lies outside of the chunk that the row is kept for"
            elif self.cursor is not None and _is_read_again(place, load.read_again):
                yield OVERTAKEN, None
            else:
                yield None, None

    def _places(self, columns: list[pa.Array], rows: int) -> list[int | None]:
        names = [name for name, _, _ in self.types]
        if self.cursor is None or self.cursor not in names:
            return [None] * rows
        positions, without = cursor_positions(columns[names.index(self.cursor)])
        return [None if none else position for position, none in zip(positions.tolist(), without.tolist(), strict=True)]


def _within(place: int | None, bounds: Bounds) -> bool:
    match bounds:
        case CursorRange(interval):
            return place is not None and overlap(interval, Interval(place, place + 1))
        case NullCursor():
            return place is None
        case _:
            return True


def _is_read_again(place: int | None, later: ReadAgain) -> bool:
    if place is None:
        return later.nulls
    return not missing(Interval(place, place + 1), later.intervals)
