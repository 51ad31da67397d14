"""Numbers and times beside the bounds of a manifest."""

from __future__ import annotations

import math
from decimal import Decimal

from hakiri_dagster.manifest.rule_values import Bound, moment_of
from hakiri_dagster.quality.measures import Answer, Instant, Single

Measured = int | float | Decimal | Instant


def whole(answer: Answer) -> int:
    """An answer that counts."""
    if not isinstance(answer, int):
        raise TypeError(f"{answer!r} is no count")
    return answer


def measured(answer: Answer) -> Measured | None:
    if answer is None or isinstance(answer, int | float | Decimal | Instant):
        return answer
    raise TypeError(f"{answer!r} is neither a number nor a time")


def within(value: Measured, low: Bound | None, high: Bound | None) -> bool:
    """NaN lies between no bounds."""
    if not isinstance(value, Instant) and math.isnan(value):
        return False
    return (low is None or not _less(value, low)) and (high is None or not _less(high, value))


def _less(one: Measured | Bound, other: Measured | Bound) -> bool:
    if isinstance(one, Instant | str) or isinstance(other, Instant | str):
        return _instant(one) < _instant(other)
    if isinstance(one, Single) or isinstance(other, Single):
        return bool(_single(one) < _single(other))
    if isinstance(one, Decimal) or isinstance(other, Decimal):
        return _decimal(one) < _decimal(other)
    return one < other


def _instant(value: Measured | Bound) -> Instant:
    if isinstance(value, str):
        return Instant.of(moment_of(value))
    if not isinstance(value, Instant):
        raise TypeError(f"{value!r} is no time")
    return value


def _single(value: Measured | Bound) -> float:
    """In the precision of 32 bits, unless that is too small."""
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number of 32 bits")
    number = Single(value)
    return number if math.isfinite(number) else float(value)


def _decimal(value: float | Decimal) -> Decimal:
    """A float as it is written: 0.1 is a tenth."""
    return value if isinstance(value, Decimal) else Decimal(repr(value))


def bounds_shown(low: object, high: object) -> str:
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"between {low} and {high}"


def plotted(value: Measured) -> int | float | None:
    """As a chart takes it: hours since 1970 of a time would say nothing, and NaN has no place."""
    if isinstance(value, Instant):
        return None
    number = value if isinstance(value, int) else float(value)
    return number if math.isfinite(number) else None
