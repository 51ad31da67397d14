from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.errors import PlanError
from hakiri_dagster.planning.windows import (
    EARLIEST,
    FixedWindow,
    IdWindow,
    MonthWindow,
    from_position,
    parse_position,
    parse_window,
    sortable_id,
    to_position,
)

CRON_WINDOWS = (
    [f"{n}m" for n in range(1, 60) if 60 % n == 0]
    + [f"{n}h" for n in range(1, 25) if 24 % n == 0]
    + ["1d", "1w", "7d", "1mo", "2mo", "1q", "3mo", "4mo", "6mo", "2q", "12mo", "1y"]
)
RANGE_WINDOWS = ["7m", "90m", "5h", "2d", "30d", "2w", "5mo", "3q", "2y"]


@pytest.mark.parametrize("text", CRON_WINDOWS)
def test_dagster_spells_every_cron_window_as_we_do(text: str) -> None:
    window = parse_window(text, "timestamp")
    cron = window.cron
    assert cron is not None
    first = window.index(to_position(datetime(2023, 12, 28, 23, 59, tzinfo=UTC)))
    ours = [window.key(first + n) for n in range(30)]
    partitions = dg.TimeWindowPartitionsDefinition(
        start=from_position(window.start(first)),
        cron_schedule=cron.cron_schedule,
        fmt=cron.key_format,
        timezone="UTC",
        end_offset=1,
    )
    now = from_position(window.start(first + 29)) + timedelta(seconds=1)
    assert list(partitions.get_partition_keys(current_time=now)) == ours
    for n, key in enumerate(ours):
        span = partitions.time_window_for_partition_key(key)
        assert (to_position(span.start), to_position(span.end)) == (
            window.start(first + n),
            window.start(first + n + 1),
        )


@pytest.mark.parametrize("text", RANGE_WINDOWS)
def test_windows_that_cron_cannot_express_are_ranges(text: str) -> None:
    window = parse_window(text, "timestamp")
    assert window.cron is None
    assert ".." in window.key(window.index(to_position(datetime(2024, 1, 10, tzinfo=UTC))))


def test_keys_say_their_window() -> None:
    moment = to_position(datetime(2026, 2, 3, 6, 15, tzinfo=UTC))
    keys = {}
    for text in ("1y", "1q", "2mo", "6mo", "1mo", "1w", "1d", "1h", "6h", "15m", "30d", "5h"):
        window = parse_window(text, "timestamp")
        keys[text] = window.key(window.index(moment))
    assert keys == {
        "1y": "2026",
        "1q": "2026-01-1q",
        "2mo": "2026-01-2mo",
        "6mo": "2026-01-6mo",
        "1mo": "2026-02",
        "1w": "2026-W06-1",
        "1d": "2026-02-03",
        "1h": "2026-02-03T06",
        "6h": "2026-02-03T06-6h",
        "15m": "2026-02-03T0615-15m",
        "30d": "2026-01-07..2026-02-06",
        "5h": "2026-02-03T0200..2026-02-03T0700",
    }


@given(
    st.sampled_from([*CRON_WINDOWS, *RANGE_WINDOWS]),
    st.datetimes(datetime(1, 1, 1), datetime(9000, 1, 1)),
)
def test_a_time_lies_in_its_window_and_keys_sort_in_time_order(text: str, moment: datetime) -> None:
    window = parse_window(text, "timestamp")
    position = to_position(moment.replace(tzinfo=UTC))
    index = window.index(position)
    assert window.start(index) <= position < window.start(index + 1)
    assert window.key(index) < window.key(index + 1)
    assert not set(window.key(index)) & set(",/'\"`\\ ")


@given(st.integers(-(10**30), 10**30), st.integers(-(10**30), 10**30))
def test_ids_sort_as_numbers_do(one: int, other: int) -> None:
    assert (sortable_id(one) < sortable_id(other)) == (one < other)


def test_an_id_window_names_both_ends() -> None:
    assert IdWindow(100_000).key(1) == "id-0000100000..0000200000"


def test_years_before_1000_are_padded_and_earlier_ones_belong_to_the_first_window() -> None:
    month = MonthWindow(1)
    assert month.key(month.index(to_position(datetime(33, 4, 3, tzinfo=UTC)))) == "0033-04"
    assert month.index(EARLIEST - 10**15) == month.index(EARLIEST)
    assert MonthWindow(5).key(MonthWindow(5).index(EARLIEST)).startswith("0001-01..")
    assert FixedWindow(30 * 86_400_000_000).key(FixedWindow(30 * 86_400_000_000).index(EARLIEST)).startswith("0001")


@pytest.mark.parametrize(
    ("window", "kind", "fault"),
    [
        ("1mo", "numeric", "the cursor is a number"),
        (100, "timestamp", "the cursor is a timestamp"),
        ("1 month", "timestamp", "does not fit"),
        ("0d", "timestamp", "does not fit"),
        (0, "numeric", "holds nothing"),
        ("6h", "date", "finer than the cursor"),
        ("99999y", "timestamp", "a thousand years"),
    ],
)
def test_a_window_that_does_not_fit_its_cursor_is_refused(window: str | int, kind: str, fault: str) -> None:
    with pytest.raises(PlanError, match=fault):
        parse_window(window, kind)  # type: ignore[arg-type]  # a sampled literal


def test_a_start_is_read_in_utc() -> None:
    assert parse_position("2020-01-01", "date") == to_position(datetime(2020, 1, 1, tzinfo=UTC))
    assert parse_position("2020-01-01T02:00+02:00", "timestamp") == parse_position("2020-01-01", "timestamp")
    assert parse_position("42", "numeric") == 42
    for value, kind in (("soon", "timestamp"), (2020, "date"), ("2020-01-01", "numeric")):
        with pytest.raises(PlanError, match="start_from"):
            parse_position(value, kind)  # type: ignore[arg-type]  # a sampled literal
