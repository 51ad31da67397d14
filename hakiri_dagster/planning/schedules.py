"""When a schedule ticks: pure, so that `plan`, `status` and `apply` need no scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from hakiri_dagster.manifest.schedules import cron_of

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_RANGES: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_FARTHEST: Final = timedelta(days=9 * 366)
"""29 February may be eight years away, where a century skips one."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """When a cron expression fires, in its own time zone. Sunday is 0."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    @classmethod
    def parse(cls, cron: str) -> Ticks:
        fields = cron.split()
        minutes, hours, days, months, weekdays = (
            _values(text, low, high) for text, (low, high) in zip(fields, _RANGES, strict=True)
        )
        return cls(
            minutes,
            hours,
            days,
            months,
            frozenset(day % 7 for day in weekdays),
            # cron's own rule: of two restricted day fields, one is enough
            either_day=not fields[2].startswith("*") and not fields[4].startswith("*"),
        )

    def on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (of_month or of_week) if self.either_day else (of_month and of_week)


def has_elapsed(schedule: str, timezone: str, *, since: datetime, now: datetime) -> bool:
    """Whether it ticked after `since`, up to `now`. `schedule` is `every 15m` or cron, already validated."""
    tick = next_tick(schedule, timezone, after=since)
    return tick is not None and tick <= now


def next_tick(schedule: str, timezone: str, *, after: datetime) -> datetime | None:
    ticks, zone = Ticks.parse(cron_of(schedule)), ZoneInfo(timezone)
    local = after.astimezone(zone)
    day = local.date()
    while day - local.date() <= _FARTHEST:
        if ticks.on(day):
            for hour in sorted(ticks.hours):
                for minute in sorted(ticks.minutes):
                    moment = datetime.combine(day, time(hour, minute), tzinfo=zone).astimezone(UTC)
                    if moment > after:
                        return moment
        day += timedelta(days=1)
    return None


def last_tick(schedule: str, timezone: str, *, before: datetime) -> datetime | None:
    """The newest that is not after the moment."""
    ticks, zone = Ticks.parse(cron_of(schedule)), ZoneInfo(timezone)
    local = before.astimezone(zone)
    day = local.date()
    while local.date() - day <= _FARTHEST:
        if ticks.on(day):
            for hour in sorted(ticks.hours, reverse=True):
                for minute in sorted(ticks.minutes, reverse=True):
                    moment = datetime.combine(day, time(hour, minute), tzinfo=zone).astimezone(UTC)
                    if moment <= before:
                        return moment
        day -= timedelta(days=1)
    return None


@cache
def longest_pause(schedule: str) -> timedelta:
    """Between two ticks; of `every 15m` that is 15 minutes, of working hours it is the weekend. By the wall clock."""
    ticks = Ticks.parse(cron_of(schedule))
    moments = sorted(60 * hour + minute for hour in ticks.hours for minute in ticks.minutes)
    within = max((later - earlier for earlier, later in pairwise(moments)), default=0)
    over_night = moments[0] + 24 * 60 * _days_apart(ticks) - moments[-1]
    return timedelta(minutes=max(within, over_night))


def _days_apart(ticks: Ticks) -> int:
    """The farthest that two days with ticks, one after the other, lie apart."""
    first = date(2000, 1, 1)
    days = [n for n in range(2 * _FARTHEST.days) if ticks.on(first + timedelta(days=n))]
    return max((later - earlier for earlier, later in pairwise(days)), default=1)


def _values(text: str, low: int, high: int) -> frozenset[int]:
    return frozenset(value for item in text.split(",") for value in _item(item, low, high))


def _item(item: str, low: int, high: int) -> range:
    base, slash, step = item.partition("/")
    first, dash, last = base.partition("-")
    if base == "*":
        first, last = str(low), str(high)
    elif not dash:
        last = str(high) if slash else first
    return range(_number(first), _number(last) + 1, int(step or 1))


def _number(text: str) -> int:
    word = text.lower()
    if word in _MONTHS:
        return _MONTHS.index(word) + 1
    return _DAYS.index(word) if word in _DAYS else int(text)
