from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hakiri_dagster.manifest.schedules import cron_of
from hakiri_dagster.planning.schedules import has_elapsed, last_tick, longest_pause, next_tick

ZONES = ("UTC", "Europe/Berlin", "America/New_York")
SCHEDULES = (
    "every 15m", "every 6h", "every 1d", "@monthly", "0 */2 * * *", "5,35 8-18 * * mon-fri",
    "0 12 1 * 1", "30 4 29 2 *", "0 0 * jan,jul sun", "10-50/20 3 * * 7",
)  # fmt: skip

A_LEAP_DAY = (date(2024, 2, 28), date(2024, 2, 29))
"""And the day before it."""


@given(
    st.sampled_from(SCHEDULES),
    st.sampled_from(ZONES),
    st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1)).filter(lambda d: not 0 <= d.hour <= 3),
)
def test_the_next_tick_is_the_one_that_dagster_would_take(schedule: str, zone: str, moment: datetime) -> None:
    after = moment.replace(tzinfo=ZoneInfo(zone), microsecond=0, second=1)
    assume(not (schedule == "30 4 29 2 *" and moment.date() in A_LEAP_DAY))
    theirs = dg.TimeWindowPartitionsDefinition(
        start=after, cron_schedule=cron_of(schedule), timezone=zone, fmt="%Y-%m-%dT%H:%M"
    ).get_next_partition_window(after, respect_bounds=False)
    assert theirs is not None
    assert next_tick(schedule, zone, after=after) == theirs.start


@pytest.mark.parametrize("after", ["2020-03-01T00:00", "2024-01-29T05:00", "2024-02-28T05:00", "2024-02-29T04:29"])
def test_a_leap_day_is_waited_for_for_years_and_not_missed_the_day_before(after: str) -> None:
    """As Dagster misses it, hence no comparison there."""
    found = next_tick("30 4 29 2 *", "UTC", after=datetime.fromisoformat(after).replace(tzinfo=UTC))
    assert found == datetime(2024, 2, 29, 4, 30, tzinfo=UTC)


@given(
    st.sampled_from(SCHEDULES),
    st.sampled_from(ZONES),
    st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1)).filter(lambda d: not 0 <= d.hour <= 3),
)
def test_the_last_tick_is_the_one_after_which_none_came_until_now(schedule: str, zone: str, moment: datetime) -> None:
    now = moment.replace(tzinfo=ZoneInfo(zone), microsecond=0, second=1)
    last = last_tick(schedule, zone, before=now)
    assert last is not None
    assert last <= now
    following = next_tick(schedule, zone, after=last)
    assert following is not None
    assert following > now


@pytest.mark.parametrize(
    ("schedule", "pause"),
    [
        ("every 15m", timedelta(minutes=15)),
        ("every 1d", timedelta(days=1)),
        ("5,35 * * * *", timedelta(minutes=30)),
        ("0 9-17 * * mon-fri", timedelta(days=2, hours=16)),
        ("@monthly", timedelta(days=31)),
        ("0 6,18 * * *", timedelta(hours=12)),
    ],
)
def test_the_longest_pause_of_a_schedule(schedule: str, pause: timedelta) -> None:
    assert longest_pause(schedule) == pause


@pytest.mark.parametrize(
    ("schedule", "since", "now", "elapsed"),
    [
        ("every 15m", "12:00:10", "12:14:59", False),
        ("every 15m", "12:00:10", "12:15:00", True),
        ("0 * * * *", "12:00:00", "12:59:59", False),
        ("0 * * * *", "11:59:59", "12:00:00", True),
    ],
)
def test_a_schedule_has_elapsed_once_it_ticked(schedule: str, since: str, now: str, elapsed: bool) -> None:
    day = "2026-11-18T"
    assert (
        has_elapsed(
            schedule,
            "UTC",
            since=datetime.fromisoformat(f"{day}{since}+00:00"),
            now=datetime.fromisoformat(f"{day}{now}+00:00"),
        )
        is elapsed
    )


def test_two_restricted_day_fields_mean_either() -> None:
    after = datetime(2026, 11, 1, 13, tzinfo=ZoneInfo("UTC"))
    assert next_tick("0 12 1 * 1", "UTC", after=after) == datetime(2026, 11, 2, 12, tzinfo=ZoneInfo("UTC"))


def test_a_leap_day_is_found_years_ahead() -> None:
    after = datetime(2096, 3, 1, tzinfo=ZoneInfo("UTC"))
    assert next_tick("30 4 29 2 *", "UTC", after=after) == datetime(2104, 2, 29, 4, 30, tzinfo=ZoneInfo("UTC"))
