"""Sums, products and quotients in the widths that Spark computes them in; NULL where it would fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.quality.columnar.types import FLOAT, INTEGER, LONG, as_decimal, as_type, common, operands, sized
from hakiri_dagster.quality.columnar.values import (
    Cells,
    Mask,
    NotInArrow,
    Numbers,
    Value,
    attempted,
    by_column,
    column_of,
    nulls,
    numbers,
)

_IN_ARROW = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def computed(sign: str, left: Value, right: Value) -> Value:
    return attempted(_computed(sign, left, right), (left, right))


def _computed(sign: str, left: Value, right: Value) -> Cells:
    types = operands(left, right)
    if all(at.is_integer(kind) for kind in types):
        return _of_integers(sign, left, right)
    if any(at.is_floating(kind) for kind in types):
        kind = FLOAT if sign == "/" else common(types)
        return _of_floats(sign, as_type(left, kind), as_type(right, kind))
    if sign not in _IN_ARROW:
        raise NotInArrow(f"{sign} of decimals")
    one, other = (as_decimal(kind) for kind in types)
    _refuse_rounding(sign, one, other)
    return _IN_ARROW[sign](as_type(left, one), as_type(right, other))


def _refuse_rounding(sign: str, one: pa.DataType, other: pa.DataType) -> None:
    if sign == "*":
        sized(one.precision + other.precision + 1, one.scale + other.scale)
        return
    scale = max(one.scale, other.scale)
    sized(max(one.precision - one.scale, other.precision - other.scale) + scale + 1, scale)


def _of_floats(sign: str, left: Cells, right: Cells) -> Cells:
    if sign in _IN_ARROW:
        return _IN_ARROW[sign](left, right)
    return by_column(lambda one, other: _divided(sign, one, other), left, right)


def _divided(sign: str, one: pa.Array, other: pa.Array) -> pa.Array:
    divisors = numbers(other)
    with np.errstate(all="ignore"):
        values = (np.divide if sign == "/" else np.fmod)(numbers(one), divisors)
    return column_of(values, one.type, nulls(one, other), divisors == 0)


def _of_integers(sign: str, left: Value, right: Value) -> Cells:
    if sign == "/":
        return _of_floats(sign, as_type(left, FLOAT), as_type(right, FLOAT))
    kind = common((left.type, right.type))
    one, other = as_type(left, kind), as_type(right, kind)
    if sign == "%":
        return by_column(lambda a, b: _divided(sign, a, b), one, other)
    return by_column(lambda a, b: _whole(sign, a, b), one, other)


def _whole(sign: str, one: pa.Array, other: pa.Array) -> pa.Array:
    kind = one.type
    a, b = numbers(one).astype(np.int64), numbers(other).astype(np.int64)
    with np.errstate(all="ignore"):
        found = _WRAPPING[sign](a, b)
        if kind == LONG:
            wrong = _WRAPPED[sign](a, b, found)
        else:
            limits = np.iinfo(kind.to_pandas_dtype())
            wrong = (found < limits.min) | (found > limits.max)
    return column_of(found.astype(kind.to_pandas_dtype()), kind, nulls(one, other), wrong)


def _product_wrapped(a: Numbers, b: Numbers, found: Numbers) -> Mask:
    suspects = np.abs(a.astype(np.float64) * b.astype(np.float64)) > 2.0**62
    if suspects.any():
        divisors = np.where(a == 0, 1, a)
        lost = (found // divisors != b) | ((a == -1) & (b == np.iinfo(np.int64).min))
        suspects &= lost
    return suspects


_WRAPPING: Mapping[str, Callable[[Numbers, Numbers], Numbers]] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_WRAPPED: Mapping[str, Callable[[Numbers, Numbers, Numbers], Mask]] = {
    "+": lambda a, b, found: ((a ^ found) & (b ^ found)) < 0,
    "-": lambda a, b, found: ((a ^ b) & (a ^ found)) < 0,
    "*": _product_wrapped,
}
"""Whether 64 bits were too few."""


_NEGATED_DIGITS = 34
"""Longer decimals Spark rounds when it negates them."""


def negative(value: Value) -> Value:
    if at.is_integer(value.type):
        nothing = Value(pa.scalar(0, INTEGER))
        return attempted(_of_integers("-", nothing, value), (value,))
    _refuse_long("-", value.type)
    return Value(pc.negate(value.cells), value.failed)


def magnitude(value: Value) -> Value:
    """The least integer of a width has none of that width."""
    if at.is_integer(value.type):
        return Value(pc.abs(value.cells.cast(LONG).cast(pa.decimal128(20, 0))), value.failed)
    _refuse_long("abs", value.type)
    return Value(pc.abs(value.cells), value.failed)


def _refuse_long(what: str, kind: pa.DataType) -> None:
    if at.is_decimal(kind) and kind.precision > _NEGATED_DIGITS:
        raise NotInArrow(f"{what} of {kind}")


def rounded(value: Value, *, up: bool) -> Value:
    kind = value.type
    if at.is_integer(kind):
        return Value(value.cells.cast(LONG), value.failed)
    if at.is_decimal(kind) and not kind.scale:
        return value
    if at.is_decimal(kind):
        wide = sized(kind.precision + 1, kind.scale)
        whole = (pc.ceil if up else pc.floor)(value.cells.cast(wide))
        return Value(whole.cast(pa.decimal128(kind.precision - kind.scale + 1, 0)), value.failed)
    return attempted(by_column(lambda column: _whole_floats(column, up=up), value.cells), (value,))


_FITS_A_LONG = 9.2e18
"""As `functions.FITS_A_LONG` has it."""


def _whole_floats(column: pa.Array, *, up: bool) -> pa.Array:
    values = numbers(column).astype(np.float64)
    fits = np.abs(values) < _FITS_A_LONG
    whole = (np.ceil if up else np.floor)(np.where(fits, values, 0.0))
    return column_of(whole.astype(np.int64), LONG, nulls(column), ~fits)
