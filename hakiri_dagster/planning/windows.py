"""Windows: how history is cut along a cursor. Pure arithmetic on cursor positions, UTC everywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from hakiri_dagster.errors import PlanError
from hakiri_dagster.planning.chunks import CursorKind

MINUTE: Final = 60_000_000
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY

DEFAULT_TIME_WINDOW: Final = "1mo"
DEFAULT_ID_WINDOW: Final = 1_000_000

EARLIEST: Final = -62_135_596_800_000_000
"""0001-01-01, where Python's dates begin. Sources know earlier ones: they belong to the first window."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONDAY = -3 * DAY  # 1970-01-01 was a Thursday
_MONTHS_BEFORE_EPOCH = 1970 * 12
_WINDOW = re.compile(r"([1-9][0-9]{0,8})(m|h|d|w|mo|q|y)")
_FIXED = {"m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
_MONTHS = {"mo": 1, "q": 3, "y": 12}
_HINT = "write `15m`, `6h`, `30d`, `1w`, `1mo`, `1q` or `1y` for times, or a number of ids like 100000"


@dataclass(frozen=True, slots=True)
class CronWindow:
    """How Dagster's TimeWindowPartitionsDefinition spells the window; its keys are then equal to ours."""

    cron_schedule: str
    key_format: str


@dataclass(frozen=True, slots=True)
class FixedWindow:
    """`width` microseconds, counted from `anchor`."""

    width: int
    anchor: int = 0

    def index(self, position: int) -> int:
        return (position - self.anchor) // self.width

    def start(self, index: int) -> int:
        return self.anchor + index * self.width

    @property
    def cron(self) -> CronWindow | None:
        minutes, hours = self.width // MINUTE, self.width // HOUR
        if self.width == WEEK:
            return CronWindow("0 0 * * 1", "%G-W%V-%u")
        if self.width == DAY:
            return CronWindow("0 0 * * *", "%Y-%m-%d")
        if self.width == HOUR:
            return CronWindow("0 * * * *", "%Y-%m-%dT%H")
        if self.width < HOUR and 60 % minutes == 0:
            return CronWindow(f"*/{minutes} * * * *", f"%Y-%m-%dT%H%M-{minutes}m")
        if self.width % HOUR == 0 and 24 % hours == 0:
            return CronWindow(f"0 */{hours} * * *", f"%Y-%m-%dT%H-{hours}h")
        return None

    def key(self, index: int) -> str:
        if (cron := self.cron) is not None:
            return time_key(self.start(index), cron.key_format)
        edge = "%Y-%m-%d" if self.width % DAY == 0 else "%Y-%m-%dT%H%M"
        return f"{time_key(self.start(index), edge)}..{time_key(self.start(index + 1), edge)}"


@dataclass(frozen=True, slots=True)
class MonthWindow:
    """`months` calendar months; counted from 1970-01, so that windows that divide a year begin with the year."""

    months: int

    def index(self, position: int) -> int:
        moment = from_position(max(position, EARLIEST))
        return (moment.year * 12 + moment.month - 1 - _MONTHS_BEFORE_EPOCH) // self.months

    def start(self, index: int) -> int:
        year, month = divmod(index * self.months + _MONTHS_BEFORE_EPOCH, 12)
        return to_position(datetime(year, month + 1, 1, tzinfo=UTC)) if year > 0 else EARLIEST

    @property
    def cron(self) -> CronWindow | None:
        match self.months:
            case 1:
                return CronWindow("0 0 1 * *", "%Y-%m")
            case 3:
                return CronWindow("0 0 1 */3 *", "%Y-%m-1q")
            case 2 | 4 | 6:
                return CronWindow(f"0 0 1 */{self.months} *", f"%Y-%m-{self.months}mo")
            case 12:
                return CronWindow("0 0 1 1 *", "%Y")
            case _:
                return None

    def key(self, index: int) -> str:
        if (cron := self.cron) is not None:
            return time_key(self.start(index), cron.key_format)
        return f"{time_key(self.start(index), '%Y-%m')}..{time_key(self.start(index + 1), '%Y-%m')}"


@dataclass(frozen=True, slots=True)
class IdWindow:
    """`width` ids, counted from 0."""

    width: int

    def index(self, position: int) -> int:
        return position // self.width

    def start(self, index: int) -> int:
        return index * self.width

    @property
    def cron(self) -> CronWindow | None:
        return None

    def key(self, index: int) -> str:
        return f"id-{sortable_id(self.start(index))}..{sortable_id(self.start(index + 1))}"


Window = FixedWindow | MonthWindow | IdWindow


def parse_window(text: str | int | None, kind: CursorKind) -> Window:
    """`backfill.window` as written in the manifest; None is the default of the cursor's kind."""
    if kind == "numeric":
        return _id_window(DEFAULT_ID_WINDOW if text is None else text)
    return _time_window(DEFAULT_TIME_WINDOW if text is None else text, kind)


def _id_window(value: str | int) -> IdWindow:
    if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
        raise PlanError(f"the cursor is a number, so the window {value!r} does not fit it", hint=_HINT)
    if int(value) < 1:
        raise PlanError(f"a window of {value} ids holds nothing", hint=_HINT)
    return IdWindow(int(value))


def _time_window(text: str | int, kind: CursorKind) -> FixedWindow | MonthWindow:
    found = _WINDOW.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise PlanError(f"the cursor is a {kind}, so the window {text!r} does not fit it", hint=_HINT)
    count, unit = int(found[1]), found[2]
    if unit in _MONTHS:
        return _within_calendar(MonthWindow(count * _MONTHS[unit]), count * _MONTHS[unit] * 28 * DAY, found[0])
    width = count * _FIXED[unit]
    if kind == "date" and width % DAY:
        raise PlanError(f"a date has no time of day, so the window {text!r} is finer than the cursor", hint=_HINT)
    return _within_calendar(FixedWindow(width, _MONDAY if width == WEEK else 0), width, found[0])


def _within_calendar(window: FixedWindow | MonthWindow, width: int, text: str) -> FixedWindow | MonthWindow:
    """A window reaches from before 1970 past any date we meet only if its edges are still dates."""
    if width > 1000 * 365 * DAY:
        raise PlanError(f"the window {text!r} is longer than a thousand years", hint=_HINT)
    return window


def parse_position(value: str | int, kind: CursorKind) -> int:
    """`backfill.start_from` as a cursor position. A time without an offset is UTC."""
    if kind == "numeric":
        try:
            return int(value)
        except ValueError:
            raise PlanError(f"start_from = {value!r} is not a number, but the cursor is") from None
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None:
        raise PlanError(f"start_from = {value!r} is not a date", hint='write it as "2020-01-01"')
    return to_position(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def to_position(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def from_position(position: int) -> datetime:
    return _EPOCH + timedelta(microseconds=position)


def time_key(position: int, key_format: str) -> str:
    moment = from_position(max(position, EARLIEST))
    if moment.year < 1000:  # strftime pads years on some platforms only, and unpadded keys sort wrongly
        key_format = key_format.replace("%Y", f"{moment.year:04}").replace("%G", f"{moment.isocalendar().year:04}")
    return moment.strftime(key_format)


def sortable_id(number: int) -> str:
    """Text that sorts as numbers do: ten digits, a letter before each further one; negatives as complements."""
    if number >= 0:
        digits = f"{number:010}"
        return digits if len(digits) == 10 else f"{_letter(len(digits) - 11, number)}{digits}"
    length = max(10, len(str(-number)))
    return f"-{_letter(35 - length, number)}{10**length + number:0{length}}"


def _letter(rank: int, number: int) -> str:
    if not 0 <= rank < 26:
        raise PlanError(f"the cursor value {number} has too many digits to be part of a chunk's key")
    return chr(ord("a") + rank)
