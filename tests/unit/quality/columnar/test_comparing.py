"""Comparisons of columns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hakiri_dagster.quality.columnar.values import NotInArrow
from tests.unit.quality.columnar.asking import cells_of, failing, value_of

NAN = float("nan")
ONE = pa.array([NAN, NAN, 0.0, float("inf"), 1.0, None])
OTHER = pa.array([NAN, 1.0, -0.0, NAN, None, None])


@pytest.mark.parametrize(
    ("sign", "cells"),
    [
        ("=", [True, False, True, False, None, None]),
        ("<>", [False, True, False, True, None, None]),
        ("<", [False, False, False, True, None, None]),
        ("<=", [True, False, True, True, None, None]),
        (">", [False, True, False, False, None, None]),
        (">=", [True, True, True, False, None, None]),
        ("<=>", [True, False, True, False, False, True]),
    ],
)
def test_nan_is_equal_to_nan_and_greater_than_anything(sign: str, cells: list[Any]) -> None:
    assert cells_of(f"v {sign} w", v=ONE, w=OTHER) == cells


def test_texts_are_ordered_by_their_bytes() -> None:
    assert cells_of("v < w", v=["Z", "a", "ä", "😀", ""], w=["a", "B", "z", "\uffff", "a"]) == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_numbers_of_different_types_meet_in_one_that_holds_both() -> None:
    assert cells_of("v = 1.5", v=pa.array([1, 2], pa.int8())) == [False, False]
    assert cells_of("v > 2.995", v=pa.array([Decimal("2.99"), Decimal("3.00")], pa.decimal128(5, 2))) == [False, True]
    assert cells_of("v = w", v=[2**53 + 1], w=[2.0**53]) == [True]  # as doubles, like Spark


def test_a_written_decimal_beside_a_float_is_the_nearest_float() -> None:
    assert cells_of("v = 0.1", v=[0.1, 0.25]) == [True, False]
    assert cells_of("v = 0.1", v=pa.array([0.1], pa.float32())) == [False]


@pytest.mark.parametrize("kind", [pa.decimal128(5, 2), pa.decimal128(30, 2), pa.decimal128(38, 25)])
def test_a_decimal_beside_a_float_is_rounded_once(kind: pa.DataType) -> None:
    values = ["0.10", "1.15", "-0.07", "123.45"]
    decimals = pa.array([Decimal(value) for value in values], kind)
    assert cells_of("v = w", v=decimals, w=[float(value) for value in values]) == [True] * 4


def test_a_written_text_is_a_moment_beside_one() -> None:
    days, noon = [date(2024, 1, 31), None], pa.array([datetime(2024, 1, 31, 12, tzinfo=UTC)])
    assert cells_of("v >= '2024-01-31'", v=days) == [True, None]
    assert cells_of("'2024-01-31T14:00:00+02:00' = v", v=noon) == [True]
    assert cells_of("v IN ('2024-01-30', '2024-01-31')", v=days) == [True, None]


def test_a_day_beside_a_time_is_its_midnight() -> None:
    days = pa.array([19_753, 2_000_000_000], pa.int32()).cast(pa.date32())
    times = pa.array([datetime(2024, 1, 31), datetime(2024, 1, 31)])
    assert cells_of("v = w", v=days, w=times) == [True, None]
    assert failing("v < w", v=days, w=times) == [1]
    assert cells_of("v IN (w)", v=days, w=times) == [True, None]


@pytest.mark.parametrize("values", ["1, 2", "1, 2, v + 10"])
def test_null_is_in_no_list_and_a_list_with_null_leaves_it_open(values: str) -> None:
    assert cells_of(f"v IN ({values})", v=[1, 3, None]) == [True, False, None]
    assert cells_of(f"v IN ({values}, NULLIF(1, 1))", v=[1, 3, None]) == [True, None, None]


def test_floats_are_looked_for_as_they_are_compared() -> None:
    assert cells_of("v IN (0e0, 5e0)", v=[-0.0, 5.0, NAN]) == [True, True, False]


def test_what_fails_in_a_list_matters_only_where_the_rest_does_not_decide() -> None:
    assert failing("v IN (1, 1 / w)", v=[1.0, 2.0], w=[0, 0]) == [1]


@pytest.mark.parametrize("size", ["9223372036854775808", "-99999999999999999999.5"])
def test_a_number_that_no_integer_reaches_is_left_to_spark(size: str) -> None:
    with pytest.raises(NotInArrow):
        value_of(f"v < {size}", v=[1])
    with pytest.raises(NotInArrow):
        value_of(f"{size} < v", v=[1])
    assert cells_of(f"v < {size} OR TRUE", v=[1.5]) == [True]


def test_decimals_that_no_decimal_holds_both_of_are_left_to_spark() -> None:
    with pytest.raises(NotInArrow):
        value_of("v = w", v=pa.array([Decimal(1)], pa.decimal128(38, 0)), w=pa.array([Decimal(1)], pa.decimal128(2, 1)))
