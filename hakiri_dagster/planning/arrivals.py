"""Which files have arrived, and which may still be written. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Stamp:
    """A file as a listing shows it."""

    path: str
    size: int
    mtime_ns: int


Seen = tuple[int, int, float]
"""Size and time of change, and since when (seconds) it has been seen like that."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What is remembered of a table's files from one tick to the next.

    `started`: for which files everything was started, as a hash. `recent`: those that were changed a moment ago, by
    their own time. `idle`: the last try has started nothing, and nor would the next one as long as they are the same.
    `error`: why they could not be looked at; `again_at`: when that is tried next (seconds).
    """

    started: str = ""
    recent: Mapping[str, Seen] = field(default_factory=dict)
    idle: bool = False
    error: str | None = None
    again_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Arrived:
    """`complete` tells the files that are from any others; `waiting`: those that may still be written."""

    complete: str
    waiting: frozenset[str]
    recent: Mapping[str, Seen]


def arrived(before: Watched, files: Sequence[Stamp], now: datetime, settle: timedelta) -> Arrived:
    """A file is complete once it has stayed as it is for `settle`: by its own time or, where the clock of whoever wrote
    it is ahead of ours, by what earlier ticks have seen."""
    moment, wait = now.timestamp(), settle.total_seconds()
    recent = {
        file.path: (file.size, file.mtime_ns, _since(before.recent.get(file.path), file, moment))
        for file in files
        if moment - file.mtime_ns / 1e9 < wait
    }
    waiting = frozenset(path for path, (_, _, since) in recent.items() if moment - since < wait)
    return Arrived(_hash(file for file in files if file.path not in waiting), waiting, recent)


def _since(seen: Seen | None, file: Stamp, moment: float) -> float:
    return seen[2] if seen is not None and seen[:2] == (file.size, file.mtime_ns) else moment


def _hash(files: Iterable[Stamp]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(repr((file.path, file.size, file.mtime_ns)).encode())
    return digest.hexdigest()
