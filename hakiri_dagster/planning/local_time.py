"""How far times without a zone may step back: each autumn, clocks in many zones show one hour twice. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from hakiri_dagster.planning.windows import HOUR

LONGEST_STEP: Final = 2 * HOUR
"""No clock that people live by is set back by more."""
_STEP: Final = timedelta(days=7)
_MOST_STEPS: Final = 8
_MICROSECOND: Final = timedelta(microseconds=1)


def longest_step_back(start: int, end: int) -> int:
    """Return by how much a local clock, in whatever zone, may have been set back between two moments, in microseconds.

    The zone in which a source's sessions stamp their rows is not known: each connection has its own.
    """
    return _longest_step_back(start // HOUR, -(-end // HOUR))


@lru_cache(maxsize=256)
def _longest_step_back(first_hour: int, last_hour: int) -> int:
    start, end = (datetime.fromtimestamp(hour * 3600, UTC) for hour in (first_hour, last_hour))
    if end <= start:
        return 0
    if end - start > _STEP * _MOST_STEPS:
        return LONGEST_STEP
    moments = [start, *(start + _STEP * step for step in range(1, _MOST_STEPS + 1) if start + _STEP * step < end), end]
    longest = timedelta(0)
    for zone in _zones():
        offsets = [moment.astimezone(zone).utcoffset() or timedelta(0) for moment in moments]
        longest = max(longest, *(before - after for before, after in pairwise(offsets)))
    return min(longest // _MICROSECOND, LONGEST_STEP)


@lru_cache(maxsize=1)
def _zones() -> tuple[ZoneInfo, ...]:
    return tuple(map(ZoneInfo, sorted(available_timezones())))
