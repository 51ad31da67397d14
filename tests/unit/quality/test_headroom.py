"""Bounds leave room, and are round."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.quality.headroom import (
    day_bounds,
    longest_text,
    null_share,
    number_bounds,
    oldest_hours,
    row_band,
)
from hakiri_dagster.quality.measures import Instant

NOW = datetime(2026, 5, 1, tzinfo=UTC)
numbers = st.integers(-(2**61), 2**61) | st.floats(-1e18, 1e18) | st.decimals(-(10**18), 10**18, places=2)


@given(st.lists(numbers, min_size=2, max_size=2).filter(lambda pair: isinstance(pair[0], type(pair[1]))))
def test_what_was_found_lies_within_its_bounds(pair: list[float]) -> None:
    low, high = sorted(pair)
    bounds = number_bounds(low, high)
    if bounds is not None:
        assert Decimal(str(bounds[0])) <= Decimal(str(low))
        assert Decimal(str(high)) <= Decimal(str(bounds[1]))


@pytest.mark.parametrize(
    ("low", "high", "bounds"),
    [
        (1, 4, (0, 6)),
        (0, 0, (0, 0)),
        (-3, 10, (-9, 17)),
        (Decimal("9.00"), Decimal("129.00"), (0.0, 200.0)),
        (-0.5, -0.25, (-0.75, 0.0)),
        (1, math.nan, None),
        (1, math.inf, None),
        (1, 2**62, None),
    ],
)
def test_numbers_get_half_of_their_spread(low: float, high: float, bounds: tuple[float, float] | None) -> None:
    assert number_bounds(low, high) == bounds


def test_dates_get_years() -> None:
    low, high = Instant.of(datetime(2020, 3, 1, tzinfo=UTC)), Instant.of(datetime(2024, 3, 1, tzinfo=UTC))
    assert day_bounds(low, high, NOW) == ("2019-01-01", "2036-01-01")
    assert day_bounds(low, Instant(2**62), NOW) is None
    assert day_bounds(low, Instant.of(datetime(9999, 1, 1, tzinfo=UTC)), NOW) is None


@pytest.mark.parametrize(("age", "hours"), [(-5, 1), (0.1, 1), (10, 24), (30, 48), (24 * 8, 336), (24 * 300, None)])
def test_an_age_is_rounded_up(age: float, hours: int | None) -> None:
    assert oldest_hours(Instant.of(NOW - timedelta(hours=age)), NOW) == hours


def test_lengths_shares_and_counts_have_room() -> None:
    assert [longest_text(length) for length in (0, 6, 7, 100, 5000)] == [10, 10, 20, 200, 10_000]
    assert (null_share(0.001), null_share(0.25), null_share(0.9)) == (0.02, 0.39, None)
    assert (row_band(100, replaced=True), row_band(100, replaced=False)) == ((50, 200), (90, 1000))
