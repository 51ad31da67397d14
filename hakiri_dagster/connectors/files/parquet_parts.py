"""Parquet that Arrow reads as Spark does, for a Python stage: its tasks read the row groups themselves.

Rows that Spark's reader would have to convert (nanoseconds, nested columns, declared types, old calendars) do not
come this way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from hakiri_dagster.connectors.contract import FILE_COLUMN, FileState
from hakiri_dagster.connectors.files.arrow_types import alike_in_spark
from hakiri_dagster.connectors.files.contents import refuse_changed
from hakiri_dagster.connectors.files.cursors import may_hold
from hakiri_dagster.connectors.files.footers import Footer, group_statistics
from hakiri_dagster.connectors.files.format_contract import WantedRows
from hakiri_dagster.connectors.files.markers import marker_of
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.columns import Column

_MIB = 1 << 20
_PART_BYTES = 32 * _MIB
_OPENING_BYTES = 1 * _MIB
_BATCH_BYTES = 16 * _MIB
_MOST_BATCH_ROWS = 16_384
_MOST_NARROW_ROWS = 131_072
"""Of a few columns: what a batch costs, however small, is then more than what its rows do."""
_FIRST_ROWS = 128
_BUFFER_BYTES = 128 << 10
"""A column: of a thousand, each has one."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Row groups of one file, one after the other."""

    file: FileState
    marker: int
    row_groups: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class ParquetParts:
    """`connectors.contract.DirectRows`; pickled into Spark's plan."""

    pieces: tuple[tuple[Piece, ...], ...]
    schema: pa.Schema
    with_marker: bool
    label: str
    most_rows: int = _MOST_BATCH_ROWS

    @property
    def parts(self) -> int:
        return len(self.pieces)

    @property
    def same_twice(self) -> bool:
        """A file that has changed since it was surveyed is refused, before it is read and after."""
        return True

    def read(self, part: int) -> Iterator[pa.RecordBatch]:
        for piece in self.pieces[part]:
            refuse_changed([piece.file], self.label)
            try:
                yield from self._rows(piece)
            except (pa.ArrowException, OSError) as error:
                refuse_changed([piece.file], self.label)
                raise _broke_off(piece.file.path, error, self.label) from error
            refuse_changed([piece.file], self.label)

    def only(self, names: Collection[str]) -> ParquetParts:
        schema = pa.schema([field for field in self.schema if field.name in names])
        return replace(self, schema=schema, most_rows=_MOST_NARROW_ROWS)

    def _rows(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(piece.file.path, buffer_size=_BUFFER_BYTES) as file:
            names = set(file.schema_arrow.names)
            read = partial(
                file.iter_batches,
                row_groups=list(piece.row_groups),
                columns=[name for name in self.schema.names if name in names],
                use_threads=False,  # Spark runs as many tasks as there are cores
            )
            for batch in read(_batch_rows(read, self.most_rows)):
                yield self._as_spark_would(batch, piece.marker)

    def _as_spark_would(self, batch: pa.RecordBatch, marker: int) -> pa.RecordBatch:
        there = set(batch.schema.names)
        columns = [
            batch.column(field.name).cast(field.type) if field.name in there else pa.nulls(batch.num_rows, field.type)
            for field in self.schema
        ]
        names = list(self.schema.names)
        if self.with_marker:
            columns.append(pa.repeat(pa.scalar(marker, pa.int64()), batch.num_rows))
            names.append(FILE_COLUMN)
        return pa.RecordBatch.from_arrays(columns, names=names)


def _batch_rows(read: Callable[[int], Iterator[pa.RecordBatch]], most: int) -> int:
    """From the first rows: the footer tells sizes as they are encoded, and a long text repeated is short there."""
    first = next(read(_FIRST_ROWS), None)
    if first is None or not first.num_rows:
        return most
    fitting = int(_BATCH_BYTES * first.num_rows // max(first.nbytes, 1))
    return max(min(fitting, most), 1)


def parquet_parts(
    footers: Sequence[Footer], columns: Sequence[Column], wanted: WantedRows, label: str
) -> ParquetParts | None:
    """None where Spark must read. Row groups without a wanted row are left out."""
    if not all(_plain(footer, columns) for footer in footers):
        return None
    pieces = [piece for footer in footers for piece in _pieces(footer, wanted)]
    fields = [(column.name, to_arrow_type(DataType.fromDDL(column.spark_type), timezone="UTC")) for column in columns]
    return ParquetParts(
        pieces=tuple(_shared_out(pieces)) or ((),),
        schema=pa.schema(fields),
        with_marker=len(footers) > 1,
        label=label,
    )


def _plain(footer: Footer, columns: Sequence[Column]) -> bool:
    metadata = footer.metadata
    if metadata is None or _of_the_old_calendar(metadata):
        return False
    known = {column.name: column for column in footer.columns}
    physical = {metadata.schema.column(i).path: metadata.schema.column(i) for i in range(metadata.num_columns)}
    arrow = metadata.schema.to_arrow_schema()
    wanted = [column for column in columns if column.name in known]
    return bool(wanted) and all(
        known[column.name].conversion == "none"
        and known[column.name].spark_type == column.spark_type
        and column.name in physical  # which a column within another is not
        and physical[column.name].physical_type != "INT96"
        and alike_in_spark(arrow.field(column.name).type)
        for column in wanted
    )


def _of_the_old_calendar(metadata: pq.FileMetaData) -> bool:
    """Written by Spark in the calendar that was Julian before 1582: its reader mends the dates."""
    told = metadata.metadata or {}
    version = told.get(b"org.apache.spark.version")
    return b"org.apache.spark.legacyDateTime" in told or (version is not None and version < b"3")


def _pieces(footer: Footer, wanted: WantedRows) -> Iterator[Piece]:
    metadata = footer.metadata
    if metadata is None:
        return
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    told = group_statistics(metadata, footer.columns, wanted.cursor) if wanted.cursor else [None] * len(groups)
    marker = marker_of(footer.path)
    for index, (group, statistics) in enumerate(zip(groups, told, strict=True)):
        if statistics is None or any(may_hold(statistics, one) for one in wanted.bounds):
            size = sum(group.column(position).total_compressed_size for position in range(group.num_columns))
            yield Piece(wanted.files[footer.path], marker, (index,), size)


def _shared_out(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, ...]]:
    """In the order of the files, so that neighbours stay together."""
    part: list[Piece] = []
    filled = 0
    for piece in pieces:
        if part and filled + piece.bytes > _PART_BYTES:
            yield tuple(part)
            part, filled = [], 0
        if part and part[-1].file is piece.file:
            part[-1] = _joined(part[-1], piece)
        else:
            part.append(piece)
            filled += _OPENING_BYTES
        filled += piece.bytes
    if part:
        yield tuple(part)


def _joined(one: Piece, other: Piece) -> Piece:
    return Piece(one.file, one.marker, (*one.row_groups, *other.row_groups), one.bytes + other.bytes)


def _broke_off(path: str, error: Exception, label: str) -> SourceError:
    return SourceError(
        f"{path} cannot be read to its end: {str(error)[:200]}",
        where=label,
        hint="the file is damaged; write it again",
    )
