"""How long ticks look at sources.

Dagster stops waiting for a tick after a minute, but its thread in the code server goes on. A few that wait for sources
would take all threads, and with them the answer to the daemon's heartbeat.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

from hakiri_dagster.connectors.network import Permits
from hakiri_dagster.errors import HeldBack

SECONDS: Final = 40.0
"""Nothing is asked of a source after that. What has been asked by then is answered, or given up, within the minute."""


@dataclass(frozen=True, slots=True)
class TickTime:
    """Of one tick, and all the tables that it looks at. `ends`: by the clock of `time.monotonic`."""

    ends: float

    @classmethod
    def begun(cls, seconds: float = SECONDS) -> Self:
        return cls(time.monotonic() + seconds)

    def refuse_when_over(self, where: str | None = None) -> None:
        if time.monotonic() >= self.ends:
            raise HeldBack(
                f"the tick has looked at sources for {SECONDS:.0f} s, and begins nothing more",
                where=where,
                hint="the next one looks again; a table whose look alone takes longer is loaded by `hakiri apply`",
            )


@dataclass(frozen=True, slots=True)
class TimedPermits:
    """None is given when the time is over: a look may send any number of requests."""

    permits: Permits
    time: TickTime

    @contextmanager
    def permit(self, chunk: str = "") -> Iterator[int]:
        self.time.refuse_when_over()
        with self.permits.permit(chunk) as wait_ms:
            yield wait_ms
