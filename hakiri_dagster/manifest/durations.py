"""`10s`, `15m`, `2h`, `3d`: how long something may take."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Final

DURATION: Final = r"^[1-9][0-9]{0,5}(s|m|h|d|w)$"
HINT: Final = "write it like `10s`, `15m`, `2h`, `3d` or `1w`"

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_duration(text: str) -> timedelta:
    """Of a text that was validated."""
    return timedelta(**{_UNITS[text[-1]]: int(text[:-1])})


def is_duration(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(DURATION.strip("^$"), value) is not None
