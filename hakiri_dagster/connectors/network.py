"""What the operator says of requests that sources make over the network. A manifest has no say in it.

Whoever has no budget does not import what shares one: Spark's workers read this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class Permits(Protocol):
    """Picklable, for Spark's workers."""

    def permit(self, chunk: str = "") -> AbstractContextManager[int]:
        """Waits until one request may be sent, and tells how many milliseconds that took.

        `with permits.permit(): answer = send(…)`, for each request: retries, redirects and pages too. The block ends
        with the answer's first bytes or later. An error leaves it only where no answer came: judge answers outside.
        """
        ...


class FreePermits:
    """Of a source without a budget."""

    @contextmanager
    def permit(self, chunk: str = "") -> Iterator[int]:
        yield 0


@dataclass(frozen=True, slots=True)
class Network:
    """`allow_loopback`: this machine itself may be asked, also by http. `authorities`: the certificates (PEM) to trust
    instead of the machine's. `permits`: one is asked for before every request. `hurried`: it is a tick
    that looks, and cannot wait; what does not answer soon is looked at again by a later one."""

    allow_loopback: bool = False
    authorities: Path | None = None
    permits: Permits = field(default_factory=FreePermits)
    hurried: bool = False
