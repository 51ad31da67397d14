"""What an answer's `Retry-After` asks for."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]{1,9}")


def seconds_asked_for(retry_after: str | None, *, date: str | None = None) -> float | None:
    """Given as seconds, or as a date; None for what is neither. `date`: the answer's own `Date`, by whose clock that
    is; without one it is by ours."""
    if retry_after is None:
        return None
    if _SECONDS.fullmatch(retry_after):
        return float(retry_after)
    then = http_date(retry_after)
    return None if then is None else max(0.0, (then - (http_date(date) or datetime.now(UTC))).total_seconds())


def http_date(text: str | None) -> datetime | None:
    try:
        then = parsedate_to_datetime(text or "")
        return then.replace(tzinfo=then.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
