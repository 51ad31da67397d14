"""The cursor of a table of files: its kind, its extent in each file, the condition for a set of slices.

NaN and infinity have no position: they count as NULL and are read with the NULL chunk. So do lines that could not be
parsed, whichever files and windows are read before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import FILE_COLUMN, FileState
from hakiri_dagster.connectors.files.footers import CursorStatistics
from hakiri_dagster.connectors.files.types import FLOATS, is_number, quoted
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.arrow_types import is_numeric_text, kind_of
from hakiri_dagster.planning.chunks import (
    FIRST_POSITION,
    LAST_POSITION,
    Bounds,
    CursorKind,
    CursorRange,
    Extent,
    Interval,
    NullCursor,
    Segment,
    SourceFile,
    WholeTable,
)
from hakiri_dagster.planning.columns import SourceSchema

_MICROSECONDS_A_DAY = 86_400_000_000
NUMERIC_TEXT = "numeric"
"""Instead of a type of Spark's, for numbers that travel as texts."""
_POSITIONS = "decimal(38,18)"
_BEYOND = 10**19


@dataclass(frozen=True, slots=True)
class Cursor:
    name: str
    kind: CursorKind
    spark_type: str

    @classmethod
    def of(cls, schema: SourceSchema, name: str, label: str) -> Cursor:
        column = schema.column(name)
        if column is None:
            raise SourceError(
                f"the cursor column `{name}` is in no file",
                where=label,
                hint=f"the columns are {', '.join(f'`{c.name}`' for c in schema.columns[:20])}",
            )
        if column.spark_type in ("timestamp", "timestamp_ntz"):
            return cls(name, "timestamp", column.spark_type)
        if column.spark_type == "date":
            return cls(name, "date", column.spark_type)
        if is_number(column.spark_type):
            return cls(name, "numeric", column.spark_type)
        if is_numeric_text(kind_of(column)):
            return cls(name, "numeric", NUMERIC_TEXT)
        raise SourceError(
            f"the cursor column `{name}` is of type {column.spark_type}, which has no windows",
            where=label,
            hint=f'declare its type, for example `columns = {{ {name} = "timestamptz" }}`',
        )

    @property
    def column(self) -> Column:
        column = F.col(quoted(self.name))
        return _as_decimal(column) if self.spark_type == NUMERIC_TEXT else column

    @property
    def has_position(self) -> Column:
        """Never NULL, so that its opposite is all other rows."""
        there = self.column.isNotNull()
        if self.spark_type not in FLOATS:
            return there
        # Spark's NaN is greater than infinity
        return there & (self.column > F.lit(-math.inf)) & (self.column < F.lit(math.inf))

    @property
    def nothing(self) -> tuple[CursorStatistics, int]:
        """What a file without rows tells."""
        return CursorStatistics(None, None, 0), 0

    def extents(self, rows: DataFrame) -> Mapping[int, tuple[CursorStatistics, int]]:
        """Statistics and number of rows, by the file's marker. One pass."""
        value = F.when(self.has_position, self.column)
        found = rows.groupBy(FILE_COLUMN).agg(
            self._told(F.min(value)).alias("lower"),
            self._told(F.max(value)).alias("upper"),
            F.sum(F.when(self.has_position, 0).otherwise(1)).alias("nulls"),
            F.count("*").alias("total"),
        )
        return {row[FILE_COLUMN]: (self._statistics(row), row["total"]) for row in found.collect()}

    def _told(self, value: Column) -> Column:
        """In a form that does not depend on any time zone on its way to us."""
        match self.kind:
            case "timestamp":
                return F.unix_micros(value) if self.spark_type == "timestamp" else value.cast("string")
            case "date":
                return F.unix_date(value)
            case "numeric":
                return value.cast("double") if self.spark_type in FLOATS else value

    def _statistics(self, row: Row) -> CursorStatistics:
        return CursorStatistics(self._position(row["lower"]), self._position(row["upper"]), row["nulls"])

    def _position(self, told: object) -> int | None:
        if told is None:
            return None
        if isinstance(told, str):
            return int(np.datetime64(told.removeprefix("+"), "us").astype(np.int64))
        assert isinstance(told, int | float | Decimal)
        number = math.floor(told)
        return number * _MICROSECONDS_A_DAY if self.kind == "date" else number

    def refuse_beyond(self, statistics: CursorStatistics, path: str, label: str) -> None:
        """Positions that 64 bits do not hold."""
        for position in (statistics.lower, statistics.upper):
            if position is not None and not FIRST_POSITION <= position <= LAST_POSITION:
                raise SourceError(
                    f"{path}: the cursor `{self.name}` reaches {position}, which is no position within 64 bits",
                    where=label,
                    hint="set it to NULL in such rows, or choose another cursor",
                )

    def literal(self, position: int) -> Column:
        """The lowest value at or above a position."""
        match self.kind:
            case "timestamp":
                if self.spark_type == "timestamp":
                    return F.timestamp_micros(F.lit(position))
                return F.lit(str(np.datetime64(position, "us"))).cast("timestamp_ntz")
            case "date":
                return F.date_from_unix_date(F.lit(-(-position // _MICROSECONDS_A_DAY)).cast("int"))
            case "numeric":
                return F.lit(_double(position) if self.spark_type in FLOATS else position)

    def condition(self, bounds: Sequence[Bounds]) -> Column | None:
        """The rows of all slices and perhaps some between them. None: every row."""
        ranges = [bound.interval for bound in bounds if isinstance(bound, CursorRange)]
        nulls = any(isinstance(bound, NullCursor) for bound in bounds)
        if any(isinstance(bound, WholeTable | SourceFile) for bound in bounds):
            return None
        if not ranges:
            return ~self.has_position
        inside = self._inside(hull(ranges))
        return inside | ~self.has_position if nulls else inside

    def _inside(self, interval: Interval) -> Column:
        inside = self.has_position
        if interval.lower is not None and interval.lower > FIRST_POSITION:
            inside = inside & (self.column >= self.literal(interval.lower))
        if interval.upper is not None and interval.upper <= LAST_POSITION:
            inside = inside & (self.column < self.literal(interval.upper))
        return inside


def _as_decimal(text: Column) -> Column:
    """Numbers that travel as texts, as far as positions reach. What lies beyond has none, and is refused as such."""
    near = F.when(~text.rlike("(?i)[nf]"), text.try_cast("double"))
    floored = F.regexp_replace(text, r"(\.\d{18})\d+$", "$1").try_cast(_POSITIONS)  # which would round otherwise
    beyond = F.lit(Decimal(_BEYOND)).cast(_POSITIONS)
    return (
        F.when(near >= F.lit(float(_BEYOND)), beyond).when(near <= F.lit(-float(_BEYOND)), -beyond).otherwise(floored)
    )


def _double(position: int) -> float:
    """The lowest one at or above: rounded down, it would cut off the highest row before it."""
    nearest = float(position)
    return nearest if nearest >= position else math.nextafter(nearest, math.inf)


def hull(intervals: Sequence[Interval]) -> Interval:
    lowers = [i.lower for i in intervals]
    uppers = [i.upper for i in intervals]
    return Interval(
        None if None in lowers else min(n for n in lowers if n is not None),
        None if None in uppers else max(n for n in uppers if n is not None),
    )


def overlaps(state: FileState, bounds: Bounds) -> bool:
    """Whether rows of the slice can be in the file. A file that was not looked into may hold any."""
    if isinstance(bounds, SourceFile):
        return state.path == bounds.path
    return state.rows is None or may_hold(CursorStatistics(state.lower, state.upper, state.nulls), bounds)


def may_hold(told: CursorStatistics, bounds: Bounds) -> bool:
    """Whether rows of the slice can be among those that the statistics speak of."""
    match bounds:
        case WholeTable() | SourceFile() | Segment():
            return True
        case NullCursor():
            return told.nulls > 0
        case CursorRange(interval):
            if told.lower is None or told.upper is None:
                return False
            above = interval.lower is None or told.upper >= interval.lower
            return above and (interval.upper is None or told.lower < interval.upper)


def with_statistics(state: FileState, statistics: CursorStatistics, rows: int) -> FileState:
    return replace(state, lower=statistics.lower, upper=statistics.upper, nulls=statistics.nulls, rows=rows)


def extent_of(states: Iterable[FileState]) -> Extent:
    states = tuple(states)
    lowers = [s.lower for s in states if s.lower is not None]
    uppers = [s.upper for s in states if s.upper is not None]
    return Extent(
        lower=min(lowers, default=None),
        upper=max(uppers, default=None),
        nulls=sum(s.nulls for s in states),
        rows_estimate=sum(s.rows or 0 for s in states),
    )
