"""Days and times: what is written out, midnight, and the parts of a date. The calendar is numpy's, whose years have no
end; Arrow's has 32,767."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.quality.columnar.types import DATE, INTEGER, LONG, TIMESTAMP_NTZ
from hakiri_dagster.quality.columnar.values import Cells, Numbers, by_column, column_of, nulls, numbers
from hakiri_dagster.quality.comparable import microseconds_since_1970

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_FARTHEST = (2**63 - 1) // _DAY
"""Days from 1970 that have a midnight: beyond it microseconds do not reach."""


def moment(text: str, kind: pa.DataType) -> pa.Scalar:
    if at.is_date(kind):
        return pa.scalar(date.fromisoformat(text), DATE)
    read = datetime.fromisoformat(text)
    known = read if read.tzinfo is not None else read.replace(tzinfo=UTC)
    return pa.scalar(microseconds_since_1970(known), LONG).cast(kind)


def midnight(cells: Cells, kind: pa.DataType) -> Cells:
    """NULL where there is none."""
    return by_column(lambda column: _midnights(column).cast(kind), cells)


def _midnights(column: pa.Array) -> pa.Array:
    days = _days(column)
    far = np.abs(days) > _FARTHEST
    return column_of(np.where(far, 0, days) * _DAY, LONG, nulls(column), far)


def day(cells: Cells) -> Cells:
    """In which a time lies."""
    return cells if cells.type == DATE else by_column(_as_days, cells)


def _as_days(column: pa.Array) -> pa.Array:
    return column_of(_days(column).astype(np.int32), INTEGER, nulls(column)).cast(DATE)


def _days(column: pa.Array) -> Numbers:
    if column.type == DATE:
        return numbers(column.cast(INTEGER)).astype(np.int64)
    return _microseconds(column) // _DAY


def _microseconds(column: pa.Array) -> Numbers:
    return numbers(column.cast(TIMESTAMP_NTZ).cast(LONG))


def _months(days: Numbers) -> Numbers:
    return days.astype("M8[D]").astype("M8[M]").astype(np.int64)


def _first_of_month(months: Numbers) -> Numbers:
    return months.astype("M8[M]").astype("M8[D]").astype(np.int64)


def _years(days: Numbers) -> Numbers:
    return _months(days) // 12 + 1970


def _day_of_year(days: Numbers) -> Numbers:
    return days - _first_of_month(_months(days) // 12 * 12) + 1


def _weekdays(days: Numbers) -> Numbers:
    """0 is Monday; 1970 began on a Thursday."""
    return (days + 3) % 7


def _weeks(days: Numbers) -> Numbers:
    """A week belongs to the year that has its Thursday."""
    return (_day_of_year(days - _weekdays(days) + 3) + 6) // 7


_OF_DAYS: Mapping[str, Callable[[Numbers], Numbers]] = {
    "year": _years,
    "quarter": lambda days: _months(days) % 12 // 3 + 1,
    "month": lambda days: _months(days) % 12 + 1,
    **dict.fromkeys(("day", "dayofmonth"), lambda days: days - _first_of_month(_months(days)) + 1),
    "dayofweek": lambda days: (_weekdays(days) + 1) % 7 + 1,
    "weekday": _weekdays,
    "dayofyear": _day_of_year,
    "weekofyear": _weeks,
}
_OF_CLOCKS: Mapping[str, Callable[[Numbers], Numbers]] = {
    "hour": lambda moments: moments // (3600 * _SECOND) % 24,
    "minute": lambda moments: moments // (60 * _SECOND) % 60,
    "second": lambda moments: moments // _SECOND % 60,
}
PARTS = frozenset({*_OF_DAYS, *_OF_CLOCKS})


def part(name: str, cells: Cells) -> Cells:
    def found(column: pa.Array) -> pa.Array:
        of_days = _OF_DAYS.get(name)
        values = _OF_CLOCKS[name](_microseconds(column)) if of_days is None else of_days(_days(column))
        return column_of(values.astype(np.int32), INTEGER, nulls(column))

    return by_column(found, cells)


def days_between(later: Cells, earlier: Cells) -> Cells:
    return pc.subtract(day(later).cast(INTEGER), day(earlier).cast(INTEGER))


def moved(cells: Cells, to: Callable[[Numbers], Numbers]) -> Cells:
    """Days, of the years that have four digits."""

    def found(column: pa.Array) -> pa.Array:
        days = _days(column)
        years = _years(days)
        strange = (years < 1) | (years > 9999)
        moved_days = to(np.where(strange, 0, days)).astype(np.int32)
        return column_of(moved_days, INTEGER, nulls(column), strange).cast(DATE)

    return by_column(found, cells)


def months_later(days: Numbers, months: int) -> Numbers:
    """The same day of the month, or its last."""
    old = _months(days)
    new = old + months
    lengths = _first_of_month(new + 1) - _first_of_month(new)
    days_before: Numbers = np.minimum(days - _first_of_month(old), lengths - 1)
    return _first_of_month(new) + days_before


def last_of_month(days: Numbers) -> Numbers:
    return _first_of_month(_months(days) + 1) - 1
