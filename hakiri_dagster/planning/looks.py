"""When a sensor looks at which source, and for how long it goes on looking. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hakiri_dagster.manifest.rates import Rate

OF_TABLE = tuple[str, str]
"""Pipeline and table."""

EVERY: Final = timedelta(minutes=1)
EVERY_OF_APIS: Final = timedelta(minutes=5)
"""Each look at one sends requests, which its budget has to bear."""
_SHARE: Final = 4
"""One request of so many that the budget allows may be spent on looks; the others are for loads."""
SURVEYED_EVERY: Final = timedelta(minutes=10)
"""However little the source says: what the destination has lost shows in nothing else."""
_LONGEST_PAUSE: Final = timedelta(minutes=16)
_SHORTEST_SPELL: Final = 0.5
_LONGEST_SPELL: Final = 20.0
"""Dagster ends a tick that takes longer than a minute, and one look may take some seconds."""


@dataclass(frozen=True, slots=True)
class Look:
    """The last one at a source. `surveyed_at`: when all of it was planned. `failures`: how many looks in a row have not
    ended well, this one included until it has."""

    looked_at: datetime
    surveyed_at: datetime | None = None
    said: str | None = None
    shown: int = 0
    failures: int = 0

    def next(self, every: timedelta) -> datetime:
        """A source that is down is asked less and less often."""
        pause = every * 2 ** min(self.failures, 10)
        return self.looked_at + (max(every, min(pause, _LONGEST_PAUSE)) if self.failures else every)

    def is_old(self, now: datetime) -> bool:
        return self.surveyed_at is None or now - self.surveyed_at >= SURVEYED_EVERY


@dataclass(frozen=True, slots=True)
class LookInterval:
    """How often the planner looks at a pipeline's sources. `wished`: what holds where the budget bears it. `requests`:
    of one look."""

    every: timedelta
    wished: timedelta
    requests: int

    @property
    def is_slowed(self) -> bool:
        return self.every > self.wished


def within_budget(every: timedelta, requests: int, budget: Rate | None) -> timedelta:
    """`requests`: what one look at all tables of the pipeline sends."""
    if budget is None:
        return every
    return max(every, timedelta(seconds=math.ceil(_SHARE * requests * budget.seconds / budget.count)))


@dataclass(frozen=True, slots=True)
class Spell:
    """What one tick looks at: the tables in turn, until the seconds are over."""

    tables: tuple[OF_TABLE, ...]
    seconds: float


def spell(wanted: Mapping[OF_TABLE, timedelta], known: Mapping[OF_TABLE, Look], now: datetime) -> Spell:
    """`wanted`: how often each is to be looked at. A tick takes a fraction of a second, unless looks are late: sources
    that answer slowly are not to wait for ever."""
    late = {table: lateness for table in wanted if (lateness := _lateness(wanted[table], known.get(table), now)) >= 0}
    ordered = tuple(sorted(late, key=lambda table: -late[table]))
    return Spell(ordered, _seconds(late.values()))


def _lateness(every: timedelta, look: Look | None, now: datetime) -> float:
    """Of a table that nobody looked at yet it has no end."""
    return float("inf") if look is None else (now - look.next(every)).total_seconds()


def _seconds(lateness: Iterable[float]) -> float:
    return max(_SHORTEST_SPELL, min(_LONGEST_SPELL, max(lateness, default=0) / 10))
