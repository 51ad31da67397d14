"""Trying again what may pass: after pauses that grow and differ, or after as long as the API asks for."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from hakiri_dagster.connectors.rest.api import Patience
from hakiri_dagster.errors import SourceThrottled, SourceUnavailable

Result = TypeVar("Result")


class MayPass(Exception):
    """What went wrong may be right at the next try; `retry_after` is how many seconds the API asks to be left alone."""

    def __init__(self, what: str, retry_after: float | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.retry_after = retry_after


def tried(
    work: Callable[[], Result],
    patience: Patience,
    *,
    pause: Callable[[float], None] = time.sleep,
    draw: Callable[[float, float], float] = random.uniform,
) -> Result:
    """Full jitter: of a hundred workers that were turned away at once, no two come back at once."""
    for tries, longest in enumerate((*patience.pauses(), None), start=1):
        try:
            return work()
        except MayPass as error:
            wish = error.retry_after
            if wish is not None and wish > patience.longest_retry_after:
                raise SourceThrottled(
                    f"{error.what}; it asks to be left alone for {wish:.0f} s",
                    hint=patience.way_out
                    or f"that is more than `retry.longest_retry_after` ({patience.longest_retry_after:g} s): "
                    "run again later, or let it wait longer",
                ) from None
            if longest is None:
                raise SourceUnavailable(f"{error.what}; tried {_times(tries)}") from None
            pause(draw(0, longest) + (wish or 0))
    raise AssertionError("the last try returns or raises")


def _times(tries: int) -> str:
    return "once" if tries == 1 else f"{tries} times"
