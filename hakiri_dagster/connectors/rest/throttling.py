"""How long an API asks to be left alone: by `Retry-After`, or as GitHub and others say it."""

from __future__ import annotations

import re
import time
from typing import Final

from hakiri_dagster.connectors.rest.exchange import Answer
from hakiri_dagster.security.retry_after import http_date, seconds_asked_for

_THROTTLED = frozenset((403, 429))
_A_MOMENT_IN_TIME: Final = 1_000_000_000
"""Fewer seconds are a time to wait; so many, seconds since 1970."""
_SECONDARY: Final = re.compile(rb"secondary rate limit", re.IGNORECASE)
_SECONDARY_SECONDS: Final = 60.0
"""What GitHub asks for where it names no time."""


def seconds_to_wait(answer: Answer) -> float | None:
    """None: nothing says that the API wants to be left alone."""
    wish = seconds_asked_for(answer.headers.get("Retry-After"), date=answer.headers.get("Date"))
    if wish is not None or answer.status not in _THROTTLED:
        return wish
    if _number(answer.headers.get("x-ratelimit-remaining")) == 0:
        reset = _number(answer.headers.get("x-ratelimit-reset"))
        if reset is not None:
            return float(reset) if reset < _A_MOMENT_IN_TIME else max(0.0, reset - _now_there(answer))
    return _SECONDARY_SECONDS if _SECONDARY.search(answer.body) else None


def _now_there(answer: Answer) -> float:
    """By the API's own clock, which decides when the time is over."""
    theirs = http_date(answer.headers.get("Date"))
    return time.time() if theirs is None else theirs.timestamp()


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isascii() and text.strip().isdigit() else None
