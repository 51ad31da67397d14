"""Transient errors are tried again with back-off; not so permanent ones, and a source that asks to be left alone."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from hakiri_dagster.errors import HakiriError, SourceThrottled, WebhookUnavailable
from hakiri_dagster.pipeline.way import Way

Result = TypeVar("Result")

_LONGEST_WISH = 60.0
"""What the receiver of a webhook may make us wait."""


class Retries:
    """How often one piece of work may still be tried again."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._tried = 0

    def again(self, error: HakiriError) -> bool:
        """Waits and answers True if the work is to be tried again."""
        settings = self._way.settings
        if error.kind != "transient" or isinstance(error, SourceThrottled) or self._tried >= settings.retries:
            return False
        pause = settings.retry_base_seconds * 2**self._tried * random.uniform(0.5, 1.0)
        if isinstance(error, WebhookUnavailable) and error.retry_after is not None:
            pause = max(pause, min(error.retry_after, _LONGEST_WISH))
        self._tried += 1
        self._way.log(
            f"{self._way.table.label}: {error.what}; try {self._tried} of {settings.retries} in {pause:.1f} s"
        )
        self._way.trace.retried(error, pause)
        time.sleep(pause)
        self._way.revive()
        return True


def retried(way: Way, work: Callable[[], Result], *, unless: Callable[[], bool] = lambda: False) -> Result:
    """`unless` tells that another try of this work alone would meet the same error."""
    retries = Retries(way)
    while True:
        try:
            return work()
        except HakiriError as error:
            if unless() or not retries.again(error):
                raise
