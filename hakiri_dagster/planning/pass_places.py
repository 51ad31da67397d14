"""Who may begin a pass over a source, of all that work or wait on the machines that share an audit DB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PassPlace:
    """A pass that is at work, or that waits. `parallelism`: how many of its pipeline may be at work with it."""

    number: int
    pipeline_id: str
    parallelism: int
    at_work: bool


def may_begin(places: Sequence[PassPlace], number: int, most: int | None) -> bool:
    """In the order in which they came. Who waits for others of its pipeline holds up no other pipeline."""
    working = Counter(place.pipeline_id for place in places if place.at_work)
    for place in sorted((place for place in places if not place.at_work), key=lambda place: place.number):
        if most is not None and working.total() >= most:
            return False
        if working[place.pipeline_id] < place.parallelism:
            if place.number == number:
                return True
            working[place.pipeline_id] += 1
    return False
