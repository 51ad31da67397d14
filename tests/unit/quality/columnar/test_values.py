"""Cells, and what is known of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hakiri_dagster.quality.columnar.values import Value, attempted, by_column, column_of, nulls, numbers, undecided

PART = Value(pa.array([1, 2, None]))


def told(value: Value) -> list[bool] | None:
    return None if value.failed is None else value.failed.to_pylist()


def test_what_is_null_though_its_parts_are_known_has_failed() -> None:
    assert told(attempted(pa.array([1, None, None]), [PART])) == [False, True, False]


def test_what_a_part_has_failed_at_fails_the_whole() -> None:
    part = Value(PART.cells, pa.array([True, False, False]))
    assert told(attempted(pa.array([1, 1, None]), [part])) == [True, False, False]


def test_what_failed_matters_where_nothing_else_decided() -> None:
    failed = Value(pa.array([None, None], pa.bool_()), pa.array([True, True]))
    assert told(undecided(pa.array([True, None]), [failed])) == [False, True]
    assert undecided(pa.array([True, None]), [PART]).failed is None


def test_scalars_are_spread_beside_columns_and_stay_alone_otherwise() -> None:
    both = by_column(pc.add, pa.scalar(1), pa.array([1, 2]))
    assert both.to_pylist() == [2, 3]
    assert by_column(pc.add, pa.scalar(1), pa.scalar(2)) == pa.scalar(3)


@pytest.mark.parametrize("start", [0, 1])
def test_columns_go_to_numpy_and_back(start: int) -> None:
    column = pa.array([1.5, None, float("nan")])[start:]
    back = column_of(numbers(column) * 2, pa.float64(), nulls(column))
    assert str(back.to_pylist()) == str([3.0, None, float("nan")][start:])


def test_a_row_without_a_value_in_any_of_the_masks_has_none() -> None:
    made = column_of(
        np.array([1, 2, 3]), pa.int64(), np.array([True, False, False]), None, np.array([False, True, False])
    )
    assert made.to_pylist() == [None, None, 3]
