"""What Parquet and ORC files say of themselves at their ends. Read with pyarrow: no Spark, no data."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from hakiri_dagster.connectors.files.arrow_types import FileColumn, file_column
from hakiri_dagster.connectors.files.formats import Format
from hakiri_dagster.connectors.files.orc_times import JAVA_WRITER, SECONDS_TYPE
from hakiri_dagster.errors import SourceError

_THREADS = min(8, 2 * (os.cpu_count() or 1))
_MICROSECONDS_A_DAY = 86_400_000_000
_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})


@dataclass(frozen=True, slots=True)
class CursorStatistics:
    """Positions (`planning/chunks.py`); `lower` is None where no cursor has one, `nulls` how many have none."""

    lower: int | None
    upper: int | None
    nulls: int


@dataclass(frozen=True, slots=True)
class Footer:
    """`cursor` is None where the footer cannot tell exactly."""

    path: str
    columns: tuple[FileColumn, ...]
    rows: int
    cursor: CursorStatistics | None
    metadata: pq.FileMetaData | None = field(default=None, compare=False, repr=False)
    """Parquet's."""


def read_footers(paths: Iterable[str], format_: Format, cursor: str | None, label: str) -> tuple[Footer, ...]:
    def read(path: str) -> Footer:
        try:
            return _parquet(path, cursor, label) if format_ == "parquet" else _orc(path, label)
        except (pa.ArrowInvalid, pa.ArrowIOError, OSError) as error:
            raise _unreadable(path, format_, error, label) from error

    with ThreadPoolExecutor(_THREADS) as pool:
        return tuple(pool.map(read, paths))


def _unreadable(path: str, format_: Format, error: Exception, label: str) -> SourceError:
    if isinstance(error, FileNotFoundError):
        return SourceError(f"{path} has vanished since it was listed", where=label, hint="run again")
    if isinstance(error, PermissionError):
        return SourceError(f"{path} cannot be read: {error.strerror}", where=label, hint="check its permissions")
    empty = os.path.getsize(path) == 0
    what = "is empty, not even a footer" if empty else f"is no complete {format_} file: {error}"
    return SourceError(f"{path} {what}", where=label, hint="write the file again, or move it out of the folder")


def _parquet(path: str, cursor: str | None, label: str) -> Footer:
    metadata = pq.read_metadata(path)
    schema = metadata.schema.to_arrow_schema()
    int96 = {
        column.path.split(".")[0]
        for column in map(metadata.schema.column, range(metadata.num_columns))
        if column.physical_type == "INT96"
    }
    columns = tuple(_parquet_column(field, int96, path, label) for field in schema)
    statistics = _statistics(metadata, columns, cursor) if cursor is not None else None
    return Footer(path, _unique(columns, path, label), metadata.num_rows, statistics, metadata)


def _parquet_column(field: pa.Field, int96: set[str], path: str, label: str) -> FileColumn:
    if field.name in int96:
        # Spark's and Hive's old timestamps: instants, though nothing in the file says so.
        if pa.types.is_timestamp(field.type):
            return FileColumn(field.name, "timestamp", "timestamp", "int96")
        raise _unsupported(field, path, label)
    return _column(field, path, label)


def _orc(path: str, label: str) -> Footer:
    file = orc.ORCFile(path)
    by_java = file.writer == JAVA_WRITER
    columns = tuple(_orc_column(field, path, label, by_java=by_java) for field in file.schema)
    return Footer(path, _unique(columns, path, label), file.nrows, None)


def _orc_column(field: pa.Field, path: str, label: str, *, by_java: bool) -> FileColumn:
    """Spark reads every timestamp of ORC as an instant, and writes its own zoneless ones as numbers."""
    declared = (field.metadata or {}).get(b"spark.sql.catalyst.type")
    if declared == b"timestamp_ntz":
        return FileColumn(field.name, "timestamp_ntz", "timestamp_ntz")
    if pa.types.is_timestamp(field.type):
        return FileColumn(field.name, SECONDS_TYPE, "timestamp", "orc_java" if by_java else "orc")
    if pa.types.is_date(field.type) and not by_java:
        return FileColumn(field.name, "date", "date", "orc_date")
    return _column(field, path, label)


def _column(field: pa.Field, path: str, label: str) -> FileColumn:
    found = file_column(field.name, field.type)
    if found is None:
        raise _unsupported(field, path, label)
    return found


def _unsupported(field: pa.Field, path: str, label: str) -> SourceError:
    return SourceError(
        f"{path}: column `{field.name}` is of type {field.type}, which Spark does not read",
        where=label,
        hint="write it as another type (timestamps within lists or structs with microseconds)",
    )


def _unique(columns: tuple[FileColumn, ...], path: str, label: str) -> tuple[FileColumn, ...]:
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise SourceError(f"{path}: two columns are called `{column.name}`", where=label, hint="rename one of them")
        seen.add(column.name)
    return columns


def _statistics(metadata: pq.FileMetaData, columns: tuple[FileColumn, ...], cursor: str) -> CursorStatistics | None:
    found = CursorStatistics(None, None, 0)
    for one in group_statistics(metadata, columns, cursor):
        if one is None:
            return None
        found = merged(found, one)
    return found


def group_statistics(
    metadata: pq.FileMetaData, columns: Sequence[FileColumn], cursor: str
) -> list[CursorStatistics | None]:
    """Of each row group; None where it cannot tell exactly."""
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    column = next((c for c in columns if c.name == cursor), None)
    if column is None or column.conversion == "absent":
        return [CursorStatistics(None, None, group.num_rows) for group in groups]
    leaves = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    if cursor not in leaves:
        return [None] * len(groups)
    unit = _unit(metadata.schema.column(leaves[cursor]).logical_type)
    return [_chunk_statistics(group.column(leaves[cursor]), column, unit) for group in groups]


def merged(one: CursorStatistics, other: CursorStatistics) -> CursorStatistics:
    lowers = [s.lower for s in (one, other) if s.lower is not None]
    uppers = [s.upper for s in (one, other) if s.upper is not None]
    return CursorStatistics(min(lowers, default=None), max(uppers, default=None), one.nulls + other.nulls)


def _chunk_statistics(chunk: pq.ColumnChunkMetaData, column: FileColumn, unit: str | None) -> CursorStatistics | None:
    """None where the statistics are missing, or are no exact bounds."""
    statistics = chunk.statistics
    if statistics is None or not statistics.has_null_count:
        return None
    if statistics.null_count == chunk.num_values:
        return CursorStatistics(None, None, statistics.null_count)
    if not statistics.has_min_max:
        return None
    lower, upper = (_position(statistics, end, column, unit) for end in ("min", "max"))
    if lower is None or upper is None:
        return None
    return CursorStatistics(lower, upper, statistics.null_count)


def _position(statistics: Any, end: str, column: FileColumn, unit: str | None) -> int | None:
    raw = getattr(statistics, f"{end}_raw")
    if column.spark_type in ("timestamp", "timestamp_ntz"):
        return _micros(raw, unit)
    if column.spark_type == "date":
        return int(raw) * _MICROSECONDS_A_DAY
    value = getattr(statistics, end)
    if column.spark_type in _INTEGERS or isinstance(value, Decimal):
        whole: int = math.floor(value)
        return whole
    return None  # floats among others: their NaN are left out of the statistics, and counted nowhere


def _micros(raw: Any, unit: str | None) -> int | None:
    match unit:
        case "milliseconds":
            return int(raw) * 1000
        case "microseconds":
            return int(raw)
        case "nanoseconds":
            return int(raw) // 1000
        case _:
            return None


def _unit(logical_type: Any) -> str | None:
    unit: str | None = json.loads(logical_type.to_json()).get("timeUnit")
    return unit
