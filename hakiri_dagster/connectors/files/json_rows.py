"""JSON lines as rows, parsed by the tasks that stage them: the rows need not pass through the JVM.

Where Spark is to work on the rows first, the same tasks give them to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from hakiri_dagster.connectors.contract import (
    FILE_COLUMN,
    MALFORMED_COLUMN,
    RECORD_COLUMN,
    SPLIT_COLUMN,
    TRUNCATED_COLUMN,
    FileState,
)
from hakiri_dagster.connectors.files.charsets import Charset
from hakiri_dagster.connectors.files.contents import refuse_changed
from hakiri_dagster.connectors.files.cursors import hull
from hakiri_dagster.connectors.files.json_lines import LineRange, read_lines, records_of
from hakiri_dagster.connectors.files.markers import marker_of
from hakiri_dagster.connectors.json.row_reader import RowReader
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.chunks import Bounds, CursorRange, NullCursor, SourceFile, WholeTable
from hakiri_dagster.planning.columns import Column
from hakiri_dagster.planning.cursor_positions import cursor_positions

_MALFORMED_DDL: Final = "struct<line:string,reason:string,readable:boolean>"


@dataclass(frozen=True, slots=True)
class CursorFilter:
    """The rows of some slices, and perhaps some between them. A row that does not fit its columns has no position, but
    for one that is loaded without the values that do not fit (`keeps_misfits`)."""

    name: str
    bounds: tuple[Bounds, ...]
    keeps_misfits: bool

    def positioned(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with no cursor where the row has no position, and without the rows that no slice wants."""
        marks = batch.column(MALFORMED_COLUMN)
        placed = marks.is_null()
        if self.keeps_misfits:
            placed = pc.or_(placed, pc.fill_null(pc.struct_field(marks, "readable"), True))
        index = batch.schema.get_field_index(self.name)
        cursor = pc.if_else(placed, batch.column(index), pa.scalar(None, batch.schema.field(index).type))
        batch = batch.set_column(index, batch.schema.field(index), cursor)
        if any(isinstance(bound, WholeTable | SourceFile) for bound in self.bounds):
            return batch
        wanted = self._wanted(cursor)
        return batch if wanted.all() else batch.filter(pa.array(wanted))

    def _wanted(self, cursor: pa.Array) -> npt.NDArray[np.bool_]:
        positions, without = cursor_positions(cursor)
        wanted = without & any(isinstance(bound, NullCursor) for bound in self.bounds)
        ranges = [bound.interval for bound in self.bounds if isinstance(bound, CursorRange)]
        if ranges:
            interval = hull(ranges)
            inside = ~without
            if interval.lower is not None:
                inside &= positions >= interval.lower
            if interval.upper is not None:
                inside &= positions < interval.upper
            wanted |= inside
        return wanted


@dataclass(frozen=True, slots=True)
class JsonRows:
    """`connectors.contract.DirectRows`; pickled into Spark's plan. `names`: the columns that are wanted of a row, all
    of which are read, for each of them can be the reason that the row does not fit. `states`: the files as they were
    surveyed, by path, where that is known."""

    ranges: tuple[tuple[LineRange, ...], ...]
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    null_values: tuple[str, ...]
    charset: Charset
    label: str
    with_marker: bool = True
    filter: CursorFilter | None = None
    states: tuple[FileState, ...] = ()
    sub_microseconds: SubMicroseconds = "warn"
    declared: frozenset[str] = frozenset()

    @property
    def parts(self) -> int:
        return len(self.ranges)

    @property
    def same_twice(self) -> bool:
        """A file that has changed since it was surveyed is refused, before it is read and after."""
        return bool(self.states)

    def only(self, names: Collection[str]) -> JsonRows:
        return replace(self, names=tuple(name for name in self.names if name in names))

    def read(self, part: int) -> Iterator[pa.RecordBatch]:
        states = {state.path: state for state in self.states}
        for one in self.ranges[part]:
            survey = [states[one.path]] if states else []
            refuse_changed(survey, self.label)
            yield from self._rows(one)
            refuse_changed(survey, self.label)

    def _rows(self, one: LineRange) -> Iterator[pa.RecordBatch]:
        reader = RowReader(
            self.columns, self.null_values, sub_microseconds=self.sub_microseconds, declared=self.declared
        )
        names = [column.name for column in self.columns]
        marker, count = marker_of(one.path), 0
        for lines in read_lines(one, self.charset, self.label):
            records = records_of(lines)
            rows = reader.read(records, partial(_shown, records))
            marks = {
                MALFORMED_COLUMN: rows.malformed,
                TRUNCATED_COLUMN: rows.truncated,
                FILE_COLUMN: pa.repeat(pa.scalar(marker, pa.int64()), len(records)),
                SPLIT_COLUMN: pa.repeat(pa.scalar(one.start, pa.int64()), len(records)),
                RECORD_COLUMN: pa.array(np.arange(count, count + len(records), dtype=np.int64)),
            }
            count += len(records)
            batch = pa.RecordBatch.from_arrays([*rows.values, *marks.values()], names=[*names, *marks])
            if self.filter is not None:
                batch = self.filter.positioned(batch)
            yield batch.select(self._given)

    @property
    def _given(self) -> list[str]:
        marks = [
            MALFORMED_COLUMN,
            TRUNCATED_COLUMN,
            *([FILE_COLUMN] if self.with_marker else []),
            SPLIT_COLUMN,
            RECORD_COLUMN,
        ]
        return [*self.names, *marks]

    def frame(self, spark: SparkSession) -> DataFrame:
        """The same rows for Spark. It is given columns by position, as it reads dots in names as something else."""
        types = {column.name: column.spark_type for column in self.columns} | {
            MALFORMED_COLUMN: _MALFORMED_DDL,
            TRUNCATED_COLUMN: "array<string>",
        }
        given = self._given
        fields = ", ".join(f"c{place} {types.get(name, 'bigint')}" for place, name in enumerate(given))
        numbers = spark.range(0, self.parts, 1, max(self.parts, 1))
        return numbers.mapInArrow(_Read(self), fields).toDF(*given)


@dataclass(frozen=True, slots=True)
class _Read:
    """For `mapInArrow` over the numbers of parts."""

    rows: JsonRows

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for part in batch.column(0).to_pylist():
                for rows in self.rows.read(part):
                    yield rows.rename_columns([f"c{place}" for place in range(rows.num_columns)])


def _shown(records: Sequence[bytes], index: int) -> str:
    """A byte that is not UTF-8 as an escape."""
    return records[index].rstrip(b"\r").decode(errors="backslashreplace")
