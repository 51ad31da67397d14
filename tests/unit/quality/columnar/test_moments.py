"""Days and times of columns."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.quality.columnar.asking import cells_of, failing

DAYS = [date(1, 1, 1), date(1582, 10, 15), date(1969, 12, 31), date(2024, 2, 29), date(2021, 1, 3), date(9999, 12, 31)]
TIMES = [datetime(1969, 12, 31, 23, 59, 58, 999_999, UTC), datetime(2024, 2, 29, 6, 7, 8, tzinfo=UTC), None]
FAR = pa.array([2**31 - 1, -(2**31), 19_753], pa.int32()).cast(pa.date32())

OF_DAYS: dict[str, Any] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "day": lambda day: day.day,
    "dayofmonth": lambda day: day.day,
    "dayofweek": lambda day: day.isoweekday() % 7 + 1,
    "weekday": lambda day: day.weekday(),
    "dayofyear": lambda day: day.timetuple().tm_yday,
    "weekofyear": lambda day: day.isocalendar().week,
}


@pytest.mark.parametrize("part", OF_DAYS)
def test_the_parts_of_a_day(part: str) -> None:
    days = DAYS + [date(2020, 12, 20) + timedelta(more) for more in range(800)]
    assert cells_of(f"{part}(v)", v=days) == [OF_DAYS[part](day) for day in days]


def test_years_have_no_end() -> None:
    assert cells_of("year(v)", v=FAR) == [5_881_580, -5_877_641, 2024]


def test_the_parts_of_a_time_are_those_of_utc() -> None:
    found = {part: cells_of(f"{part}(v)", v=TIMES) for part in ("hour", "minute", "second", "day")}
    assert found == {"hour": [23, 6, None], "minute": [59, 7, None], "second": [58, 8, None], "day": [31, 29, None]}
    paris = pa.array(TIMES, pa.timestamp("ms", "Europe/Paris"))
    assert cells_of("hour(v)", v=paris) == [23, 6, None]


def test_days_are_counted_from_midnight_to_midnight() -> None:
    assert cells_of("datediff(v, '1970-01-01')", v=TIMES) == [-1, 19_782, None]
    assert cells_of("datediff('2024-03-01', v)", v=[date(2024, 2, 28), None]) == [2, None]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("date_add(v, 1)", [date(2024, 3, 1), date(2023, 2, 1)]),
        ("dateadd(v, -31)", [date(2024, 1, 29), date(2022, 12, 31)]),
        ("date_sub(v, 1)", [date(2024, 2, 28), date(2023, 1, 30)]),
        ("add_months(v, 1)", [date(2024, 3, 29), date(2023, 2, 28)]),
        ("add_months(v, -12)", [date(2023, 2, 28), date(2022, 1, 31)]),
        ("last_day(v)", [date(2024, 2, 29), date(2023, 1, 31)]),
    ],
)
def test_days_later_and_earlier(text: str, days: list[date]) -> None:
    assert cells_of(text, v=[date(2024, 2, 29), date(2023, 1, 31)]) == days


def test_days_move_from_years_of_four_digits_only() -> None:
    assert failing("date_add(v, 1)", v=FAR) == [0, 1]
    assert failing("last_day(v)", v=FAR) == [0, 1]


def test_a_day_is_cast_to_its_midnight_and_a_time_to_its_day() -> None:
    assert cells_of("CAST(v AS TIMESTAMP)", v=[date(2024, 2, 29), None]) == [datetime(2024, 2, 29, tzinfo=UTC), None]
    assert cells_of("CAST(v AS DATE)", v=TIMES) == [date(1969, 12, 31), date(2024, 2, 29), None]
    assert failing("CAST(v AS TIMESTAMP_NTZ)", v=FAR) == [0, 1]
