"""A stretch of the cursor, as somebody writes it: half-open, `[from, to)`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from hakiri_dagster.errors import UsageError
from hakiri_dagster.planning.chunks import FIRST_POSITION, LAST_POSITION, CursorKind, Interval
from hakiri_dagster.planning.windows import DAY, to_position

_ID: Final = re.compile(r"-?[0-9]{1,19}")
_SHOWN: Final = 40
_HINT_FOR_IDS = "write a whole number, like 250000"
_HINT_FOR_DATES = "write a date, like 2024-01-31"
_HINT_FOR_TIMES = "write a date or a time, like 2024-01-31 or 2024-01-31T06:00Z; without an offset it is UTC"


def parse_stretch(lower: str, upper: str, kind: CursorKind, where: str) -> Interval:
    """`upper` is the first that does not belong to it."""
    stretch = (_position("--from", lower, kind, where), _position("--to", upper, kind, where))
    if stretch[0] >= stretch[1]:
        raise UsageError(
            f"--from {_shown(lower)} is not before --to {_shown(upper)}",
            where=where,
            hint="the stretch begins with --from and ends before --to",
        )
    return Interval(*stretch)


def _position(option: str, text: str, kind: CursorKind, where: str) -> int:
    if kind == "numeric":
        return _id(option, text, where)
    moment = _moment(text.strip())
    if moment is None:
        hint = _HINT_FOR_DATES if kind == "date" else _HINT_FOR_TIMES
        raise UsageError(f"{option} {_shown(text)} is no {_noun(kind)}, and the cursor is one", where=where, hint=hint)
    position = to_position(moment)
    if kind == "date" and position % DAY:
        raise UsageError(
            f"{option} {_shown(text)} has a time of day, and the cursor is a date", where=where, hint=_HINT_FOR_DATES
        )
    return position


def _noun(kind: CursorKind) -> str:
    return "date" if kind == "date" else "date or time"


def _id(option: str, text: str, where: str) -> int:
    if not _ID.fullmatch(text.strip()):
        raise UsageError(
            f"{option} {_shown(text)} is no number, and the cursor is one", where=where, hint=_HINT_FOR_IDS
        )
    number = int(text)
    if not FIRST_POSITION <= number <= LAST_POSITION:
        raise UsageError(f"{option} {_shown(text)} is beyond 64 bits", where=where, hint=_HINT_FOR_IDS)
    return number


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
