"""`CAST` where Arrow has exactly what Spark makes of a value; NULL where Spark cannot cast it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.quality.columnar.moments import day, midnight
from hakiri_dagster.quality.columnar.types import BOOLEAN, DATE, FLOAT, LONG, MOST_DIGITS, TEXT, as_type
from hakiri_dagster.quality.columnar.values import (
    Cells,
    NotInArrow,
    Value,
    attempted,
    by_column,
    column_of,
    nulls,
    numbers,
)

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""Of the integers that have so many bits."""

_FLOAT_BITS = 24
"""Of an integer that a float holds. Others Spark rounds, unless the float is to be a double: then it leaves it out."""


def cast(value: Value, kind: pa.DataType, *, lenient: bool) -> Value:
    cells = _cast(Value(value.cells), kind)
    return Value(cells, value.failed) if lenient else attempted(cells, (value,))


def _cast(value: Value, kind: pa.DataType) -> Cells:
    cells, old = value.cells, value.type
    if old == kind or at.is_null(old):
        return cells.cast(kind)
    if at.is_boolean(old):
        return cells.cast(TEXT) if kind == TEXT else _cast(Value(cells.cast(pa.int8())), kind)
    if at.is_integer(old):
        return _of_integer(value, kind)
    if at.is_decimal(old):
        return _of_decimal(value, kind)
    if at.is_floating(old):
        return _of_float(cells, kind)
    if at.is_date(old) and at.is_timestamp(kind):
        return midnight(cells, kind)
    if at.is_timestamp(old) and (kind == DATE or at.is_timestamp(kind)):
        return day(cells) if kind == DATE else cells.cast(kind)
    raise NotInArrow(f"{old} to {kind}")


def _of_integer(value: Value, kind: pa.DataType) -> Cells:
    cells = value.cells
    if kind == BOOLEAN:
        return pc.not_equal(cells, pa.scalar(0, value.type))
    if kind in (TEXT, FLOAT) or (at.is_floating(kind) and value.type.bit_width < _FLOAT_BITS):
        return cells.cast(kind, safe=False)
    if at.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return _within(cells.cast(LONG), int(limits.min), int(limits.max)).cast(kind)
    if at.is_decimal(kind):
        return _integer_as_decimal(cells, kind)
    raise NotInArrow(f"{value.type} to {kind}")


def _within(cells: Cells, least: int, most: int) -> Cells:
    """Of 64 bits."""
    fits = pc.and_(pc.greater_equal(cells, least), pc.less_equal(cells, most))
    return pc.if_else(fits, cells, pa.scalar(None, LONG))


def _integer_as_decimal(cells: Cells, kind: pa.DataType) -> Cells:
    digits, whole = _DIGITS[cells.type.bit_width], kind.precision - kind.scale
    if digits + kind.scale > MOST_DIGITS:
        raise NotInArrow(f"{cells.type} to {kind}")
    if whole < digits:
        most = 10**whole - 1
        cells = _within(cells.cast(LONG), -most, most).cast(cells.type)
    return cells.cast(pa.decimal128(digits + kind.scale, kind.scale)).cast(kind)


def _of_decimal(value: Value, kind: pa.DataType) -> Cells:
    cells, old = value.cells, value.type
    if kind == BOOLEAN:
        return pc.not_equal(cells, pa.scalar(0, pa.decimal128(1, 0)).cast(old))
    if kind == FLOAT:
        return as_type(value, kind)
    if not at.is_decimal(kind) or kind.scale < old.scale:
        raise NotInArrow(f"{old} to {kind}")
    whole = kind.precision - kind.scale
    if whole < old.precision - old.scale:
        bound = pa.scalar(10**whole, pa.decimal128(whole + 1, 0)).cast(old)
        cells = pc.if_else(pc.less(pc.abs(cells), bound), cells, pa.scalar(None, old))
    return cells.cast(kind)


def _of_float(cells: Cells, kind: pa.DataType) -> Cells:
    if kind == BOOLEAN:
        return pc.not_equal(cells, pa.scalar(0.0, cells.type))
    if at.is_floating(kind):
        return cells.cast(kind, safe=False)
    if at.is_integer(kind):
        return by_column(lambda column: _cut_off(column, kind), cells)
    raise NotInArrow(f"{cells.type} to {kind}")


def _cut_off(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """2^63 fits a bigint to Spark, as the greatest there is."""
    limits = np.iinfo(kind.to_pandas_dtype())
    values = numbers(column).astype(np.float64)
    fits = (np.floor(values) <= float(limits.max)) & (np.ceil(values) >= float(limits.min))
    greatest = values == 2.0**63
    whole = np.trunc(np.where(fits & ~greatest, values, 0.0)).astype(np.int64)
    whole[fits & greatest] = np.iinfo(np.int64).max
    return column_of(whole.astype(kind.to_pandas_dtype()), kind, nulls(column), ~fits)
