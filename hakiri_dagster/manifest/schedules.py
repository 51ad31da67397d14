"""`every 15m` and cron: what a schedule means, told without a clock."""

from __future__ import annotations

import re
from typing import NamedTuple

_EVERY = re.compile(r"every\s+([0-9]{1,5})\s*(m|h|d|w)")
_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_HINT = "write `every 15m`, `every 2h`, `every 1d`, or five cron fields like `0 */2 * * *`"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class ScheduleError(ValueError):
    def __init__(self, message: str, hint: str = _HINT) -> None:
        self.hint = hint
        super().__init__(message)


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()
    first_word: int = 0


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS, 1),
    _Field("day of the week", 0, 7, _DAYS, 0),
)


def cron_of(schedule: str) -> str:
    """Five cron fields. Raises ScheduleError."""
    text = schedule.strip()
    if text in _MACROS:
        return _MACROS[text]
    if text.startswith("every"):
        return _cron_of_every(text)
    return _checked_cron(text)


def _cron_of_every(text: str) -> str:
    found = _EVERY.fullmatch(text)
    if found is None:
        raise ScheduleError("`every` takes a whole number and one of m, h, d, w")
    count, unit = int(found[1]), found[2]
    match unit:
        case "m" if count in _divisors(60):
            return f"*/{count} * * * *" if count > 1 else "* * * * *"
        case "h" if count in _divisors(24):
            return f"0 */{count} * * *" if count > 1 else "0 * * * *"
        case "m" if count % 60 == 0 and count // 60 in _divisors(24):
            return _cron_of_every(f"every {count // 60}h")
        case "h" | "m" if count == (24 if unit == "h" else 24 * 60):
            return "0 0 * * *"
        case "d" if count == 1:
            return "0 0 * * *"
        case "d" | "w" if count == (7 if unit == "d" else 1):
            return "0 0 * * 0"
        case _:
            raise ScheduleError(
                f"ticks {count}{unit} apart do not fit evenly into an hour, a day or a week",
                "minutes that divide an hour (5m, 15m, 30m), hours that divide a day (2h, 6h, 12h), `1d` or `1w`;"
                " or write a cron expression",
            )


def _divisors(whole: int) -> tuple[int, ...]:
    return tuple(part for part in range(1, whole) if whole % part == 0)


def _checked_cron(text: str) -> str:
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ScheduleError(f"cron has five fields, and this has {len(parts)}")
    values = [_values(part, field) for part, field in zip(parts, _FIELDS, strict=True)]
    days, months = values[2], values[3]
    if parts[4] == "*" and min(days) > max(_LONGEST[month - 1] for month in months):
        raise ScheduleError("no month that it names has such a day")
    return " ".join(parts)


def _values(text: str, field: _Field) -> set[int]:
    return {value for item in text.split(",") for value in _item(item, field)}


def _item(item: str, field: _Field) -> range:
    base, slash, step_text = item.partition("/")
    if slash and not (_is_number(step_text) and int(step_text) >= 1):
        raise ScheduleError(f"`{item}` is not a {field.name}")
    step = int(step_text) if slash else 1
    if base == "*":
        return range(field.low, field.high + 1, step)
    first, dash, last = base.partition("-")
    low = _number(first, item, field)
    high = _number(last, item, field) if dash else (field.high if slash else low)
    if high < low:
        raise ScheduleError(f"`{item}` runs backwards")
    return range(low, high + 1, step)


def _number(text: str, item: str, field: _Field) -> int:
    if text.lower() in field.words:
        return field.words.index(text.lower()) + field.first_word
    if not _is_number(text) or not field.low <= int(text) <= field.high:
        raise ScheduleError(f"`{item}` is not a {field.name} ({field.low} to {field.high})")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 4
