"""Spark's types by Arrow's, and which of them two values become when they meet."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pyarrow.types as at

from hakiri_dagster.expressions.tree import Number
from hakiri_dagster.planning.arrow_types import has_texts, is_bytes, is_number
from hakiri_dagster.quality.columnar.values import Cells, NotInArrow, Value, by_column, column_of, nulls, numbers

TEXT = pa.large_string()
BYTES = pa.large_binary()
BOOLEAN = pa.bool_()
INTEGER = pa.int32()
LONG = pa.int64()
FLOAT = pa.float64()
DATE = pa.date32()
TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

MOST_DIGITS = 38
_LEAST_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""Of a decimal that Spark makes of an integer, by its bits."""

_EXACT_DIGITS, _EXACT_SCALE = 15, 22
"""A floating number holds any integer of so many digits, and such a power of ten: their quotient is rounded once."""


def settled(kind: pa.DataType) -> pa.DataType:
    """The type in which values of this kind are computed."""
    if has_texts(kind):
        return TEXT
    if is_bytes(kind):
        return BYTES
    if at.is_date(kind):
        return DATE
    if at.is_timestamp(kind):
        return TIMESTAMP_NTZ if kind.tz is None else TIMESTAMP
    return kind


def decimal_of(digits: str) -> pa.DataType:
    """What Spark takes a number for that is written so."""
    told = Decimal(digits).as_tuple()
    scale = -int(told.exponent)
    return pa.decimal128(max(len(told.digits), scale), scale)


def number(digits: str, kind: pa.DataType) -> pa.Scalar:
    if at.is_floating(kind):
        return pa.scalar(float(digits), kind)
    return pa.scalar(int(digits) if at.is_integer(kind) else Decimal(digits), kind)


def sized(precision: int, scale: int) -> pa.DataType:
    """Beyond it Spark gives digits up."""
    if precision > MOST_DIGITS:
        raise NotInArrow(f"decimals of {precision} digits")
    return pa.decimal128(precision, scale)


def common(types: Sequence[pa.DataType]) -> pa.DataType:
    """Of values that stand for one another, or are looked for among one another."""
    kind = reduce(_wider, types)
    if not (kind in _PLAIN or is_number(kind)):
        raise NotInArrow(f"values of {kind}")
    return kind


_PLAIN = (TEXT, BYTES, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ)


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or at.is_null(other):
        return one
    if at.is_null(one):
        return other
    if at.is_integer(one) and at.is_integer(other):
        return max(one, other, key=lambda kind: int(kind.bit_width))
    if at.is_timestamp(one) and at.is_timestamp(other):
        return TIMESTAMP
    if not (is_number(one) and is_number(other)):
        raise NotInArrow(f"{one} beside {other}")
    if at.is_floating(one) or at.is_floating(other):
        return FLOAT
    one, other = as_decimal(one), as_decimal(other)
    scale = max(one.scale, other.scale)
    return sized(max(one.precision - one.scale, other.precision - other.scale) + scale, scale)


def as_decimal(kind: pa.DataType) -> pa.DataType:
    return kind if at.is_decimal(kind) else pa.decimal128(_LEAST_DIGITS[kind.bit_width], 0)


def operands(left: Value, right: Value) -> tuple[pa.DataType, pa.DataType]:
    """A whole number that is written out is no longer than it is, beside a decimal."""
    return _beside(left, right.type), _beside(right, left.type)


def _beside(value: Value, other: pa.DataType) -> pa.DataType:
    if isinstance(value.written, Number) and at.is_integer(value.type) and at.is_decimal(other):
        return decimal_of(value.written.digits)
    return value.type


def as_type(value: Value, kind: pa.DataType) -> Cells:
    """In a type that holds it, or in which Spark rounds it likewise."""
    cells, written = value.cells, value.written
    if value.type == kind:
        return cells
    if isinstance(written, Number):
        return number(written.digits, kind)
    if at.is_decimal(value.type) and at.is_floating(kind):
        return by_column(_as_float, cells)
    return cells.cast(kind, safe=False) if at.is_floating(kind) else cells.cast(kind)


def _as_float(column: pa.Array) -> pa.Array:
    kind = column.type
    if kind.precision > _EXACT_DIGITS or kind.scale > _EXACT_SCALE:
        return column.cast(pa.string()).cast(FLOAT)
    unscaled = column.view(pa.decimal128(kind.precision, 0)).cast(LONG)
    return column_of(numbers(unscaled) / 10.0**kind.scale, FLOAT, nulls(column))
