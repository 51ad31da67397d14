"""Counting distinct values in bounded memory: exact while they are few, close when they are many."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.quality.distinct import LEAST_KEPT, MOST_EXACT, Sketch, hashes_of


def counted(*parts: pa.Array, exact: int = 0) -> Sketch:
    first, *others = (Sketch.of(hashes_of(part), exact) for part in parts)
    return reduce(Sketch.plus, others, first)


@pytest.mark.parametrize(
    ("values", "kind", "distinct"),
    [
        (["a", "b", None, "a", ""], pa.string(), 3),
        ([1, 2, 2, None, -1], pa.int8(), 3),
        ([1, 2**62, -(2**62), 1], pa.int64(), 3),
        ([0.0, -0.0, float("nan"), -float("nan"), 1.5], pa.float64(), 3),
        ([0.0, 1.5, 1.5], pa.float32(), 2),
        ([True, False, True, None], pa.bool_(), 2),
        ([Decimal("1.10"), Decimal("1.1"), Decimal("-1.1")], pa.decimal128(20, 2), 2),
        ([date(2024, 1, 1), date(2024, 1, 2)], pa.date32(), 2),
        ([datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1)], pa.timestamp("us"), 2),
        ([b"a", b"\xff", b"a"], pa.binary(), 2),
        ([], pa.string(), 0),
        ([None], pa.int32(), 0),
    ],
)
def test_few_values_are_counted_one_by_one(values: list[object], kind: pa.DataType, distinct: int) -> None:
    assert counted(pa.array(values, kind)).count == distinct


def test_a_part_of_an_array_is_counted_alone() -> None:
    numbers = pa.array(range(100), pa.int32())
    assert counted(numbers.slice(10, 5)).count == 5
    assert counted(numbers.slice(10, 5), numbers.slice(12, 5)).count == 7


def test_many_values_are_estimated_within_a_few_percent() -> None:
    numbers = pa.array(np.arange(300_000, dtype=np.int64))
    parts = [numbers.slice(start, 7_000) for start in range(0, 300_000, 5_000)]
    assert counted(*parts).count == pytest.approx(300_000, rel=0.1)


def test_texts_spread_like_numbers_do() -> None:
    texts = pa.array([f"customer-{number:06}" for number in range(50_000)])
    assert counted(texts).count == pytest.approx(50_000, rel=0.1)


def test_up_to_what_was_asked_the_count_is_exact() -> None:
    numbers = pa.array(np.arange(MOST_EXACT, dtype=np.int64))
    assert counted(numbers, numbers, exact=MOST_EXACT).count == MOST_EXACT
    assert counted(numbers, exact=MOST_EXACT - 1).count > MOST_EXACT - 1


@given(st.lists(st.integers(0, 3 * LEAST_KEPT), max_size=200), st.integers(1, 7))
def test_parts_add_up_to_the_whole_whatever_they_are(values: list[int], parts: int) -> None:
    cut = [pa.array(values[place::parts], pa.int64()) for place in range(parts)]
    assert counted(*cut).count == counted(pa.array(values, pa.int64())).count == len(set(values))
