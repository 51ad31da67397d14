"""Bounds that are somewhat wider than what was found, and round."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal

from hakiri_dagster.quality.measures import Instant

_LARGEST = 2**62
"""Of whole numbers in a manifest."""

_AGES = (1, 2, 3, 6, 12, 24, 36, 48, 72, 96, 168, 336, 744, 1488, 2208, 4416, 8784)
"""Hours, up to a year."""

_SIZES = (1, 2, 5)


def number_bounds(low: float | Decimal, high: float | Decimal) -> tuple[float, float] | None:
    """Half of the spread at each end, though what is never negative stays so."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    least, most = Decimal(str(low)), Decimal(str(high))
    room = max(most - least, abs(most), abs(least)) / 2
    wide = (Decimal(0) if least >= 0 else -_rounded(room - least), _rounded(most + room))
    if max(map(abs, wide)) >= _LARGEST:
        return None
    if isinstance(low, int) and isinstance(high, int):
        return int(wide[0]), math.ceil(wide[1])
    return float(wide[0]), float(wide[1])


def _rounded(number: Decimal) -> Decimal:
    """Up, to two digits."""
    if number <= 0:
        return Decimal(0)
    unit = Decimal(1).scaleb(number.adjusted() - 1)
    return (number / unit).to_integral_value(ROUND_CEILING) * unit


def day_bounds(low: Instant, high: Instant, now: datetime) -> tuple[str, str] | None:
    """From a year before to ten years after: a slip of a date is mostly off by more."""
    try:
        first, last = _year(low) - 1, max(_year(high), now.year) + 10
    except OverflowError:
        return None
    return (f"{first:04}-01-01", f"{last:04}-01-01") if first >= 1 and last <= 9999 else None


def _year(moment: Instant) -> int:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment.microseconds)).year


def oldest_hours(newest: Instant, now: datetime) -> int | None:
    """Half as old again as it is now; None of what has not changed within a year or so."""
    age = (Instant.of(now).microseconds - newest.microseconds) / 3_600_000_000
    return next((hours for hours in _AGES if hours >= age * 1.5), None)


def longest_text(length: int) -> int:
    size = 10
    while True:
        for step in _SIZES:
            if size * step >= length * 1.5:
                return size * step
        size *= 10


def null_share(ratio: float) -> float | None:
    """Half as many again, and a hundredth; None where that would be all."""
    share = math.ceil((ratio * 1.5 + 0.01) * 100) / 100
    return share if share < 1 else None


def row_band(rows: int, *, replaced: bool) -> tuple[int, int]:
    """Of a table that grows, hardly a row should be lost; one that is replaced may be smaller."""
    low, high = (rows // 2, rows * 2) if replaced else (rows * 9 // 10, rows * 10)
    return low, max(high, 1)
