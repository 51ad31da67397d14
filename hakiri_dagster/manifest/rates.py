"""`60/min`: how many requests in how much time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

SECONDS: Final = {"s": 1, "min": 60, "h": 3600, "d": 86400}
MOST_A_SECOND: Final = 200
"""Each permit takes two transactions of the audit DB, one after the other."""

_RATE: Final = re.compile(r"([1-9][0-9]{0,17})/(s|min|h|d)")
_HINT: Final = "write it like `60/min`, with 1 at least; also `/s`, `/h` and `/d`"


class RateError(ValueError):
    def __init__(self, message: str, hint: str) -> None:
        self.hint = hint
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `count` in any window of `seconds`, wherever it begins."""

    count: int
    seconds: int

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _RATE.fullmatch(text)
        if found is None:
            raise RateError("not a rate", _HINT)
        rate = cls(int(found[1]), SECONDS[found[2]])
        if rate.count > MOST_A_SECOND * rate.seconds:
            raise RateError(
                f"more than {MOST_A_SECOND} requests a second, which is no budget",
                "take it out: without it, requests are not held back",
            )
        return rate

    def __str__(self) -> str:
        unit = next(unit for unit, seconds in SECONDS.items() if seconds == self.seconds)
        return f"{self.count}/{unit}"
