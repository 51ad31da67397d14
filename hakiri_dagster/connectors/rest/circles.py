"""Notices that pages go round in circles, without remembering them all (Brent's way of finding cycles)."""

from __future__ import annotations

from collections.abc import Hashable


class CircleWatch:
    """One of the things seen is kept, and replaced after one, two, four, eight … others: a circle meets it again,
    however long it is and whenever it begins."""

    def __init__(self) -> None:
        self._kept: Hashable | None = None
        self._since = 0
        self._until = 1

    def meets(self, seen: Hashable) -> bool:
        if self._kept is not None and seen == self._kept:
            return True
        if self._kept is None or self._since == self._until:
            self._until = self._until * 2 if self._kept is not None else 1
            self._kept, self._since = seen, 0
        self._since += 1
        return False
