"""Comparisons as Spark makes them: NaN is equal to NaN and greater than anything else, and -0.0 is 0.0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.expressions.tree import Number, Text
from hakiri_dagster.quality.columnar.logic import combined
from hakiri_dagster.quality.columnar.moments import midnight, moment
from hakiri_dagster.quality.columnar.types import DATE, as_type, common, operands
from hakiri_dagster.quality.columnar.values import Cells, NotInArrow, Value, attempted, failed_of, spread, undecided

Test = Callable[[Cells, Cells], Cells]


def compared(sign: str, left: Value, right: Value) -> Value:
    left, right = comparable(left, right)
    _refuse_beyond_integers(left, right)
    _refuse_beyond_integers(right, left)
    kind = common(operands(left, right))
    return Value(TESTS[sign](as_type(left, kind), as_type(right, kind)), failed_of((left, right)))


def _refuse_beyond_integers(value: Value, other: Value) -> None:
    """To Spark even NULL is less than a number that no integer reaches, where it is written out."""
    if at.is_integer(value.type) and at.is_decimal(other.type) and isinstance(other.written, Number):
        size = Decimal(other.written.digits)
        if not -(2**63) <= size < 2**63:
            raise NotInArrow(f"{value.type} beside {size}")


def comparable(left: Value, right: Value) -> tuple[Value, Value]:
    """A text that is written out is a moment beside one, and a day its midnight beside a time."""
    left, right = with_moment(left, right.type), with_moment(right, left.type)
    return _with_clock(left, right.type), _with_clock(right, left.type)


def with_moment(value: Value, other: pa.DataType) -> Value:
    if isinstance(value.written, Text) and (at.is_date(other) or at.is_timestamp(other)):
        return Value(moment(value.written.value, other))
    return value


def _with_clock(value: Value, other: pa.DataType) -> Value:
    if value.type != DATE or not at.is_timestamp(other):
        return value
    return attempted(midnight(value.cells, other), [value])


def _equal(left: Cells, right: Cells) -> Cells:
    equal = pc.equal(left, right)
    return pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right))) if at.is_floating(left.type) else equal


def _less(left: Cells, right: Cells) -> Cells:
    less = pc.less(left, right)
    if not at.is_floating(left.type):
        return less
    return pc.or_(less, pc.and_(pc.is_nan(right), pc.invert(pc.is_nan(left))))


def _same(left: Cells, right: Cells) -> Cells:
    both, neither = pc.and_(pc.is_valid(left), pc.is_valid(right)), pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.if_else(both, _equal(left, right), neither)


TESTS: Mapping[str, Test] = {
    "=": _equal,
    "<>": lambda left, right: pc.invert(_equal(left, right)),
    "<": _less,
    "<=": lambda left, right: pc.invert(_less(right, left)),
    ">": lambda left, right: _less(right, left),
    ">=": lambda left, right: pc.invert(_less(left, right)),
    "<=>": _same,
}


def among(wanted: Value, options: Sequence[Value]) -> Value:
    pairs = [comparable(wanted, option) for option in options]
    if any(one.type != wanted.type for one, _ in pairs):  # a day among moments
        return combined("or", [compared("=", wanted, option) for option in options])
    listed = [option for _, option in pairs]
    kind = common([value.type for value in (wanted, *listed)])
    looked_for, cells = as_type(wanted, kind), [as_type(option, kind) for option in listed]
    known = [one for one in cells if isinstance(one, pa.Scalar)]
    if len(known) == len(cells) and not at.is_floating(kind):
        return undecided(_in_list(looked_for, known), (wanted, *listed))
    found = reduce(pc.or_kleene, [_equal(looked_for, one) for one in cells])
    return undecided(found, (wanted, *listed))


def _in_list(looked_for: Cells, known: Sequence[pa.Scalar]) -> Cells:
    there = [one for one in known if one.is_valid]
    kind = looked_for.type
    listed = pa.concat_arrays([pa.array([], kind), *(spread(one, 1) for one in there)])
    found = pc.is_in(looked_for, listed)
    missing = pa.scalar(None if len(there) < len(known) else False, pa.bool_())
    return pc.if_else(pc.is_valid(looked_for), pc.or_kleene(found, missing), pa.scalar(None, pa.bool_()))
