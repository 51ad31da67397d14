"""Comparisons that are exact, of columns with bounds and with one another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.manifest.rule_spec import Comparison
from hakiri_dagster.manifest.rule_values import moment_of
from hakiri_dagster.planning.arrow_types import NativeText, is_number, is_numeric_text, is_text, is_time
from hakiri_dagster.quality import numerics

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_DIGITS = 76  # of Arrow's widest decimal
_INT64 = (-(2**63), 2**63 - 1)
_MOST_OF_FLOAT32 = float(np.finfo(np.float32).max)

Test = Callable[[pa.Array, pa.Scalar], pa.BooleanArray]


def outside(array: pa.Array, low: float | str | None, high: float | str | None) -> pa.BooleanArray:
    """NULL where the value is. NaN lies in no range."""
    if is_numeric_text(array.type):
        return numerics.outside(array, low, high)
    tests = []
    if low is not None:
        tests.append(_tested(array, low, pc.less, math.ceil))
    if high is not None:
        tests.append(_tested(array, high, pc.greater, math.floor))
    if at.is_floating(array.type):
        tests.append(pc.is_nan(array))
    found = tests[0]
    for test in tests[1:]:
        found = pc.or_(found, test)
    return found


def _tested(array: pa.Array, bound: float | str, test: Test, to_whole: Callable[[float], int]) -> pa.BooleanArray:
    if isinstance(bound, str):
        return test(microseconds(array), pa.scalar(_microseconds_of(bound), pa.int64()))
    if at.is_integer(array.type):
        lowest, highest = _INT64
        whole = int(bound) if math.isinf(bound) else to_whole(bound)
        return test(array.cast(pa.int64()), pa.scalar(min(max(whole, lowest), highest), pa.int64()))
    if at.is_decimal(array.type):
        return _decimal(array, Decimal(repr(bound)), test)
    kind = array.type if at.is_float32(array.type) and _fits_float32(bound) else pa.float64()
    return test(array.cast(kind), pa.scalar(float(bound), kind))


def _fits_float32(bound: float) -> bool:
    """A tenth of 32 bits is another number than one of 64."""
    return abs(bound) <= _MOST_OF_FLOAT32 or math.isinf(bound)


def _decimal(array: pa.Array, bound: Decimal, test: Test) -> pa.BooleanArray:
    """Of the column's own type where that holds the bound, for then nothing is cast. One beyond all decimals is as good
    rounded."""
    if not bound.is_finite():
        return test(array.cast(pa.float64()), pa.scalar(float(bound), pa.float64()))
    kind, digits = array.type, max(bound.adjusted() + 1, 0)
    scale = max(kind.scale, -int(bound.as_tuple().exponent))
    if scale == kind.scale and digits + scale <= kind.precision:
        return test(array, pa.scalar(bound, kind))
    if max(kind.precision - kind.scale, digits) + scale > _MOST_DIGITS:
        return test(array.cast(pa.float64()), pa.scalar(float(bound), pa.float64()))
    wide = pa.decimal256(_MOST_DIGITS, scale)
    return test(array.cast(wide), pa.scalar(bound, wide))


def microseconds(array: pa.Array) -> pa.Array:
    """Of dates and times, since 1970; without a zone they are UTC."""
    zone = array.type.tz if at.is_timestamp(array.type) else None
    return array.cast(pa.timestamp("us", zone)).cast(pa.int64())


def _microseconds_of(bound: str) -> int:
    return microseconds_since_1970(moment_of(bound))


def microseconds_since_1970(moment: datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


_BROKEN = {
    "<": pc.greater_equal, "<=": pc.greater, "=": pc.not_equal, "!=": pc.equal, ">=": pc.less, ">": pc.less_equal,
}  # fmt: skip


def readable_among(values: Sequence[object], kind: pa.DataType) -> bool:
    """Whether all of these are values that a column of this kind may hold."""
    if is_numeric_text(kind):
        return all(map(numerics.is_number, values))
    if isinstance(kind, NativeText):
        return kind.has_one_text_a_value and readable_among(values, kind.storage_type)
    try:
        pa.array(values).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False
    return True


def among(array: pa.Array, values: Sequence[object]) -> pa.BooleanArray:
    """Where the value is one of these; NULL is not."""
    if is_numeric_text(array.type):
        return numerics.known_among(array, values)
    known = pa.array(values).cast(array.type)
    if at.is_floating(array.type):  # -0.0 is 0.0
        array, known = (pc.add(numbers, pa.scalar(0.0, array.type)) for numbers in (array, known))
    return pc.is_in(array, known)


def alike(one: pa.DataType, op: Comparison, other: pa.DataType) -> bool:
    """Whether values of the two can be compared so."""
    if isinstance(one, NativeText) and isinstance(other, NativeText) and not is_number(one):
        return op in ("=", "!=") and one.base == other.base and one.has_one_text_a_value
    kinds = (is_text, is_number, is_time, at.is_boolean)
    return any(kind(one) and kind(other) for kind in kinds)


def breaks(one: pa.Array, op: Comparison, other: pa.Array) -> pa.BooleanArray:
    """Where `one op other` does not hold, or a text is no number; NULL where either is."""
    if is_numeric_text(one.type) or is_numeric_text(other.type):
        signs = numerics.ordered(one, other)
        unreadable = pc.and_(signs.is_null(), pc.and_(one.is_valid(), other.is_valid()))
        return pc.if_else(unreadable, True, _BROKEN[op](signs, pa.scalar(0, pa.int8())))
    if is_time(one.type):
        one, other = microseconds(one), microseconds(other)
    elif at.is_floating(one.type) or at.is_floating(other.type):
        one, other = one.cast(pa.float64(), safe=False), other.cast(pa.float64(), safe=False)
        unordered = pc.or_(pc.is_nan(one), pc.is_nan(other))
        return pc.or_(_BROKEN[op](one, other), unordered)
    elif is_number(one.type):
        one, other = _as_decimal(one), _as_decimal(other)
    return _BROKEN[op](one, other)


def _as_decimal(array: pa.Array) -> pa.Array:
    if at.is_integer(array.type):
        return array.cast(pa.int64()).cast(pa.decimal128(19, 0))
    return array
