"""Values one of which is chosen: CASE, the first that is known, the greatest. What is not chosen fails nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.quality.columnar.comparing import TESTS, comparable, compared, with_moment
from hakiri_dagster.quality.columnar.logic import is_true
from hakiri_dagster.quality.columnar.types import as_type, common
from hakiri_dagster.quality.columnar.values import Cells, Value, either, failed_of


def as_one_kind(values: Sequence[Value]) -> tuple[list[Value], pa.DataType]:
    time = next((value.type for value in values if at.is_date(value.type) or at.is_timestamp(value.type)), None)
    if time is not None:
        values = [with_moment(value, time) for value in values]
    return list(values), common([value.type for value in values])


def chosen(branches: Sequence[tuple[Value, Value]], otherwise: Value) -> Value:
    """A condition that could not be computed is NULL, so its branch is not taken; but the whole has failed."""
    values, kind = as_one_kind([*(value for _, value in branches), otherwise])
    *taken, last = values
    cells, failed = as_type(last, kind), _failed(last)
    for (condition, _), value in zip(reversed(branches), reversed(taken), strict=True):
        holds = is_true(condition).cells
        cells = pc.if_else(holds, as_type(value, kind), cells)
        if condition.failed is not None:
            failed = pc.or_(failed, condition.failed)
        failed = pc.if_else(holds, _failed(value), failed)
    return Value(cells, failed)


def _failed(value: Value) -> Cells:
    return pa.scalar(False) if value.failed is None else value.failed


def first_known(given: Sequence[Value]) -> Value:
    values, kind = as_one_kind(given)
    cells: Cells = pa.scalar(None, kind)
    masks: list[Cells] = []
    for value in values:
        if value.failed is not None:
            masks.append(pc.and_(pc.is_null(cells), value.failed))
        cells = pc.coalesce(cells, as_type(value, kind))
    return Value(cells, either(masks))


def unless(left: Value, right: Value) -> Value:
    """The left one, where it is not the right one."""
    same = compared("=", left, right)
    left, _ = comparable(left, right)
    alike = pc.fill_null(same.cells, False)
    return Value(pc.if_else(alike, pa.scalar(None, left.type), left.cells), same.failed)


def extreme(given: Sequence[Value], *, greatest: bool) -> Value:
    """Of those that are known."""
    values, kind = as_one_kind(given)
    beyond = TESTS[">" if greatest else "<"]
    cells = as_type(values[0], kind)
    for value in values[1:]:
        other = as_type(value, kind)
        better = pc.or_(pc.is_null(cells), pc.fill_null(beyond(other, cells), False))
        cells = pc.if_else(better, other, cells)
    return Value(cells, failed_of(values))


def known(value: Value) -> Value:
    return Value(pc.is_valid(value.cells), value.failed)


def unknown(value: Value) -> Value:
    return Value(pc.is_null(value.cells), value.failed)
