"""Peak memory of process trees, shared pages counted once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import psutil

_EVERY_SECONDS = 0.2


class PeakMemory:
    """PSS shares each page among those who map it, so that PostgreSQL's buffers are not counted once a backend."""

    def __init__(self, roots: Callable[[], Sequence[int]]) -> None:
        self.bytes = 0
        self._roots = roots
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak-memory", daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_EVERY_SECONDS):
            self.bytes = max(self.bytes, sum(_proportional(one) for one in _trees(self._roots())))


def _trees(roots: Sequence[int]) -> Iterator[psutil.Process]:
    seen: set[int] = set()
    for root in roots:
        try:
            process = psutil.Process(root)
            family = [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
        yield from (one for one in family if one.pid not in seen)
        seen.update(one.pid for one in family)


def _proportional(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
        return 0
