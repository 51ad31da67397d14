"""What one pass answers: parts of the rows, tallied apart, add up to what all of them say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.quality.measures import (
    Answer,
    ColumnMeasure,
    Distinct,
    Highest,
    Instant,
    Lowest,
    Nulls,
    Strangers,
    Total,
    Violations,
)
from hakiri_dagster.quality.tallies import add_up, answers_of, packed, tally, unpacked


def answer(measure: ColumnMeasure, kind: pa.DataType, *parts: Sequence[Any]) -> Answer:
    tallies: list[Any] = []
    for part in parts:
        batch = pa.record_batch({"v": pa.array(part, kind)})
        tallies = add_up(tallies, unpacked(packed([tally(measure, batch)])))
    return answers_of([measure], tallies)[measure]


def test_no_rows_have_an_answer() -> None:
    assert answer(Nulls("v"), pa.int32()) == 0
    assert answer(Distinct("v", 5), pa.int32()) == 0
    assert answer(Lowest("v"), pa.int32()) is None
    assert answer(Strangers("v", (1,)), pa.int32()) == Violations(0)


def test_rows_without_a_value_have_neither_sum_nor_extremes() -> None:
    for measure in (Lowest("v"), Highest("v"), Total("v")):
        assert answer(measure, pa.float64(), [None, None], []) is None
    assert answer(Nulls("v"), pa.float64(), [None, 1.0], [None]) == 2


def test_sums_are_exact_where_numbers_are() -> None:
    assert answer(Total("v"), pa.int64(), [2**63 - 1] * 3, [2**63 - 1]) == 4 * (2**63 - 1)
    assert answer(Total("v"), pa.int64(), [-(2**63)] * 3) == -3 * 2**63
    assert answer(Total("v"), pa.int8(), [127] * 3, [None, -128]) == 253
    big = Decimal("9" * 36 + ".99")
    assert answer(Total("v"), pa.decimal128(38, 2), [big, big], [big]) == Decimal("2" + "9" * 36 + ".97")


def test_nan_is_the_highest_as_postgresql_has_it() -> None:
    nan = float("nan")
    highest = answer(Highest("v"), pa.float64(), [1.0], [nan])
    assert isinstance(highest, float)
    assert math.isnan(highest)
    assert answer(Lowest("v"), pa.float64(), [nan, 3.0], [nan]) == 3.0


def test_dates_and_times_are_instants() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    for kind, low, high in (
        (pa.date32(), date(2024, 1, 1), date(2024, 3, 1)),
        (pa.timestamp("us"), noon.replace(tzinfo=None), datetime(2024, 3, 1)),
        (pa.timestamp("us", "UTC"), noon, datetime(2024, 3, 1, tzinfo=UTC)),
    ):
        assert str(answer(Highest("v"), kind, [low], [high, None])) == "2024-03-01T00:00:00Z"
        assert isinstance(answer(Lowest("v"), kind, [low], [high]), Instant)


def test_strangers_are_counted_and_a_few_are_shown() -> None:
    found = answer(Strangers("v", ("A", "B")), pa.string(), ["A", None, "X", "X"], ["Y", "Z", "W", "B"])
    assert isinstance(found, Violations)
    assert (found.rows, len(found.few)) == (5, 3)
    assert set(found.few) <= {"X", "Y", "Z", "W"}


def test_coded_columns_are_read_like_plain_ones() -> None:
    batch = pa.record_batch({"v": pa.array(["a", "b", "a"]).dictionary_encode()})
    assert tally(Distinct("v", 5), batch).answer == 2
    assert tally(Strangers("v", ("a",)), batch).answer == Violations(1, ("b",))


MEASURES = (Nulls("v"), Lowest("v"), Highest("v"), Total("v"), Distinct("v", 10), Strangers("v", (1, 2)))


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: type(measure).__name__)
@given(values=st.lists(st.none() | st.integers(-5, 5), max_size=30), cut=st.integers(0, 30))
def test_parts_add_up_to_the_whole(measure: ColumnMeasure, values: list[int | None], cut: int) -> None:
    whole = answer(measure, pa.int64(), values)
    apart = answer(measure, pa.int64(), values[:cut], values[cut:])
    if isinstance(whole, Violations) and isinstance(apart, Violations):
        assert (whole.rows, set(whole.few)) == (apart.rows, set(apart.few)) or len(whole.few) == 3
    else:
        assert whole == apart


def test_numbers_of_32_bits_are_told_as_they_are_written() -> None:
    assert repr(answer(Highest("v"), pa.float32(), [0.05], [0.1])) == "0.1"
    assert repr(answer(Lowest("v"), pa.float32(), [0.1, None])) == "0.1"
