"""When a backfill will be done, from what is left of it and how long the last chunks took."""

from __future__ import annotations

from collections import deque
from typing import Final

_RECENT_CHUNKS: Final = 50


class Pace:
    """`left` chunks are owed at `now` (seconds, of a clock that never goes back)."""

    def __init__(self, left: int, now: float) -> None:
        self._left = left
        self._ends = deque([now], maxlen=_RECENT_CHUNKS + 1)

    def settled(self, now: float) -> int:
        """One more is done or has failed. Answers how many seconds the others take, at the pace of the last ones."""
        self._left = max(0, self._left - 1)
        self._ends.append(now)
        return round(self._left * (now - self._ends[0]) / (len(self._ends) - 1))
