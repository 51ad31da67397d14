"""How much of what strangers send is kept in memory at the same time, over all connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from hakiri_dagster.triggers.proving import Refused


class Room:
    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = Lock()

    @contextmanager
    def hold(self) -> Iterator[Callable[[int], None]]:
        """Gives what takes so many bytes more, or raises Refused. By what has come, not by what is announced: who only
        announces takes nothing from others."""
        held = 0

        def take(size: int) -> None:
            nonlocal held
            with self._lock:
                if size > self._left:
                    raise Refused(503, "too much is being read at the same time; send it again")
                self._left -= size
                held += size

        try:
            yield take
        finally:
            with self._lock:
                self._left += held
