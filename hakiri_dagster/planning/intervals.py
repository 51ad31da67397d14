"""Arithmetic on sets of half-open intervals, kept as sorted tuples of intervals that neither touch nor overlap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from math import inf
from typing import Final

from hakiri_dagster.planning.chunks import Interval

Intervals = tuple[Interval, ...]

NOTHING: Final[Intervals] = ()


def union(parts: Iterable[Interval]) -> Intervals:
    merged: list[Interval] = []
    for part in sorted((p for p in parts if low(p) < high(p)), key=low):
        if merged and low(part) <= high(merged[-1]):
            if high(part) > high(merged[-1]):
                merged[-1] = Interval(merged[-1].lower, part.upper)
        else:
            merged.append(part)
    return tuple(merged)


def within(parts: Intervals, frame: Interval) -> Intervals:
    """What of the set lies in the frame."""
    found = []
    for part in parts[_first_reaching(parts, frame) :]:
        if low(part) >= high(frame):
            break
        lower = part.lower if low(part) > low(frame) else frame.lower
        upper = part.upper if high(part) < high(frame) else frame.upper
        if (lower is None or upper is None) or lower < upper:
            found.append(Interval(lower, upper))
    return tuple(found)


def missing(frame: Interval, parts: Intervals) -> Intervals:
    """What of the frame the set leaves out."""
    gaps = []
    lower = frame.lower
    for part in within(parts, frame):
        if low(part) > (-inf if lower is None else lower):
            gaps.append(Interval(lower, part.lower))
        if part.upper is None:
            return tuple(gaps)
        lower = part.upper
    if (-inf if lower is None else lower) < high(frame):
        gaps.append(Interval(lower, frame.upper))
    return tuple(gaps)


def subtract(parts: Intervals, taken: Intervals) -> Intervals:
    return tuple(gap for part in parts for gap in missing(part, taken))


def hull(parts: Intervals) -> Interval:
    return Interval(parts[0].lower, parts[-1].upper)


def overlap(one: Interval, other: Interval) -> bool:
    return low(one) < high(other) and low(other) < high(one)


def low(interval: Interval) -> float:
    return -inf if interval.lower is None else interval.lower


def high(interval: Interval) -> float:
    return inf if interval.upper is None else interval.upper


def _first_reaching(parts: Intervals, frame: Interval) -> int:
    """The last part that begins at or before the frame may reach into it; earlier ones cannot."""
    return max(0, bisect_right(parts, low(frame), key=low) - 1)
