from __future__ import annotations

import pytest

from hakiri_dagster.manifest.schedules import ScheduleError, cron_of


@pytest.mark.parametrize(
    ("schedule", "cron"),
    [
        ("every 1m", "* * * * *"),
        ("every 15m", "*/15 * * * *"),
        ("every 60m", "0 * * * *"),
        ("every 120m", "0 */2 * * *"),
        ("every 2h", "0 */2 * * *"),
        ("every 24h", "0 0 * * *"),
        ("every 1440m", "0 0 * * *"),
        ("every 1d", "0 0 * * *"),
        ("every 7d", "0 0 * * 0"),
        ("every 1w", "0 0 * * 0"),
        ("  every   5 m ", "*/5 * * * *"),
        ("@daily", "0 0 * * *"),
        ("0 */2 * * *", "0 */2 * * *"),
        ("0,30 8-18/2 * JAN-mar mon-fri", "0,30 8-18/2 * JAN-mar mon-fri"),
        ("0 0 29 2 *", "0 0 29 2 *"),
        ("0 0 31 * 1", "0 0 31 * 1"),
        ("0 0 * * 7", "0 0 * * 7"),
    ],
)
def test_a_schedule_is_five_cron_fields(schedule: str, cron: str) -> None:
    assert cron_of(schedule) == cron


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("", "five fields"),
        ("often", "five fields"),
        ("every", "whole number"),
        ("every 0m", "do not fit"),
        ("every 7m", "do not fit"),
        ("every 5h", "do not fit"),
        ("every 2d", "do not fit"),
        ("every 1.5h", "whole number"),
        ("every 15x", "whole number"),
        ("every -5m", "whole number"),
        ("every \u0665m", "whole number"),
        ("* * * *", "five fields, and this has 4"),
        ("* * * * * *", "five fields, and this has 6"),
        ("60 * * * *", "`60` is not a minute"),
        ("* 24 * * *", "is not a hour"),
        ("* * 0 * *", "is not a day of the month"),
        ("* * * 13 *", "is not a month"),
        ("* * * * 8", "is not a day of the week"),
        ("*/0 * * * *", "is not a minute"),
        ("*/x * * * *", "is not a minute"),
        ("1,,2 * * * *", "is not a minute"),
        ("30-10 * * * *", "runs backwards"),
        ("0 0 30 2 *", "no month"),
        ("0 0 31 4,6 *", "no month"),
        ("\u00b2  * * * *", "is not a minute"),
    ],
)
def test_a_schedule_that_means_nothing_is_refused_with_a_hint(schedule: str, words: str) -> None:
    with pytest.raises(ScheduleError, match=words) as refused:
        cron_of(schedule)
    assert refused.value.hint
