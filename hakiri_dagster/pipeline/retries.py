"""Transient errors are tried again with back-off; permanent ones at once are not."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.pipeline.way import Way


class Retries:
    """`for attempt in retries: try: …; except HakiriError as e: retries.again_or_raise(e)`"""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._left = way.settings.retries

    def again_or_raise(self, error: HakiriError) -> None:
        if error.kind != "transient" or self._left <= 0:
            raise error
        tried = self._way.settings.retries - self._left
        self._left -= 1
        pause = self._way.settings.retry_base_seconds * 2**tried * random.uniform(0.5, 1.0)
        self._way.log(f"{self._way.table.label}: {error.what}; next try in {pause:.1f} s, {self._left} left after it")
        time.sleep(pause)
        self._way.revive()


def attempts() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number
