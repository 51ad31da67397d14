import itertools
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.errors import SourceError
from hakiri_dagster.pipeline.slices import NO_SLICE, Splitter
from hakiri_dagster.planning.chunks import (
    CursorRange,
    Interval,
    NullCursor,
    SourceFile,
    WholeTable,
)
from hakiri_dagster.planning.cursor_positions import cursor_positions


def ranges(*edges: tuple[int | None, int | None]) -> list[CursorRange]:
    return [CursorRange(Interval(lower, upper)) for lower, upper in edges]


def test_a_row_belongs_to_the_range_that_holds_its_cursor() -> None:
    splitter = Splitter.of(ranges((0, 10), (10, 20)), {})
    assert splitter.assign(4, pa.array([0, 9, 10, 19]), None).tolist() == [0, 0, 1, 1]


def test_a_row_of_no_slice_is_left_out() -> None:
    splitter = Splitter.of(ranges((0, 10), (20, 30)), {})
    assert splitter.assign(4, pa.array([-1, 10, 19, 30]), None).tolist() == [NO_SLICE] * 4


def test_an_open_end_takes_everything_beyond() -> None:
    splitter = Splitter.of(ranges((None, 0), (0, None)), {})
    values = pa.array([-(2**63), -1, 0, 2**63 - 1])
    assert splitter.assign(4, values, None).tolist() == [0, 0, 1, 1]


def test_rows_without_a_cursor_go_to_their_own_slice_only_if_it_is_loaded() -> None:
    values = pa.array([None, 5], pa.int64())
    with_nulls = Splitter.of([*ranges((0, 10)), NullCursor()], {})
    without = Splitter.of(ranges((0, 10)), {})
    assert with_nulls.assign(2, values, None).tolist() == [1, 0]
    assert without.assign(2, values, None).tolist() == [NO_SLICE, 0]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([math.nan, math.inf, -math.inf, None, 5.5]),
        pa.array([math.nan, math.inf, -math.inf, None, 5.5], pa.float32()),
        pa.array(["NaN", "Infinity", "-Infinity", None, "5.5"]),
    ],
    ids=["double", "float", "numeric as text"],
)
def test_nan_and_infinity_go_where_null_goes_and_are_no_highest_cursor(values: pa.Array) -> None:
    bounds = [*ranges((None, 5), (5, None)), NullCursor()]
    assert Splitter.of(bounds, {}).assign(5, values, None).tolist() == [2, 2, 2, 2, 1]
    positions, without = cursor_positions(values)
    assert (without.tolist(), positions[~without].max()) == ([True, True, True, True, False], 5)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([Decimal(2**64 + 5)], pa.decimal128(38, 0)),
        pa.array([Decimal(-(2**63) - 1)], pa.decimal128(38, 0)),
        pa.array([2**63], pa.uint64()),
        pa.array([2.0**63]),
        pa.array([str(2**63)]),
        pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
    ],
    ids=lambda values: str(values.type),
)
def test_a_cursor_beyond_64_bits_is_refused_not_wrapped(values: pa.Array) -> None:
    with pytest.raises(SourceError, match=r"no position within 64 bits(.|\n)*set it to NULL"):
        Splitter.of(ranges((0, 1000)), {}).assign(1, values, None)


def test_the_last_window_may_end_beyond_64_bits() -> None:
    last = 2**63 - 1
    splitter = Splitter.of(ranges((-(2**70), 0), (last - 10, 2**70)), {})
    assert splitter.assign(3, pa.array([-(2**63), last - 11, last]), None).tolist() == [0, NO_SLICE, 1]


def test_files_are_told_apart_by_their_marker() -> None:
    splitter = Splitter.of([SourceFile("/a", "0" * 32), SourceFile("/b", "1" * 32)], {"/a": 7, "/b": -3})
    assert splitter.assign(3, None, pa.array([-3, 7, 99])).tolist() == [1, 0, NO_SLICE]


def test_a_whole_table_is_one_slice() -> None:
    assert Splitter.of([WholeTable()], {}).assign(3, None, None).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")), 1_000_000),
        (pa.array([datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("us")), 1_000_000),
        (pa.array([datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("ns")), 1_000_000),
        (pa.array([date(1970, 1, 2)], pa.date32()), 86_400_000_000),
        (pa.array([-5], pa.int16()), -5),
        (pa.array([Decimal("12.90")], pa.decimal128(10, 2)), 12),
        (pa.array([Decimal("-12.10")], pa.decimal128(10, 2)), -13),
        (pa.array([-1.5], pa.float64()), -2),
        (pa.array([float(2**62)], pa.float64()), 2**62),
        (pa.array(["-1.50"]), -2),
        (pa.array(["9223372036854775807.9999999999999999999999999"]), 2**63 - 1),
    ],
)
def test_positions_are_whole_numbers_of_the_cursor(values: pa.Array, expected: int) -> None:
    positions, nulls = cursor_positions(values)
    assert positions.tolist() == [expected]
    assert not nulls.any()


@given(
    st.lists(st.integers(-1000, 1000), min_size=2, max_size=8, unique=True).map(sorted),
    st.lists(st.one_of(st.none(), st.integers(-1200, 1200)), max_size=50),
    st.randoms(),
)
def test_every_row_goes_to_the_one_slice_that_holds_it(
    edges: list[int], values: list[int | None], random: object
) -> None:
    bounds = [*ranges(*itertools.pairwise(edges)), NullCursor()]
    random.shuffle(bounds)  # type: ignore[attr-defined]  # hypothesis' own Random
    assigned = Splitter.of(bounds, {}).assign(len(values), pa.array(values, pa.int64()), None)
    for value, index in zip(values, assigned.tolist(), strict=True):
        holders = [i for i, bound in enumerate(bounds) if _holds(bound, value)]
        assert [index] == (holders or [NO_SLICE])
    assert assigned.dtype == np.int32


def _holds(bound: CursorRange | NullCursor, value: int | None) -> bool:
    match bound:
        case NullCursor():
            return value is None
        case CursorRange(Interval(lower, upper)):
            assert lower is not None
            assert upper is not None
            return value is not None and lower <= value < upper
