"""What the operator says of requests that sources make over the network. A manifest has no say in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class RequestLimiter(Protocol):
    """Picklable: it is asked in Spark's workers, by several of them at once."""

    def wait_for_a_request(self) -> None:
        """Returns when one more request may be sent. Called before every one, repeated and redirected ones included."""
        ...


@dataclass(frozen=True, slots=True)
class NoLimit:
    def wait_for_a_request(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Network:
    """`allow_loopback`: this machine itself may be asked, also by http. `authorities`: the certificates (PEM) to trust
    instead of the machine's."""

    allow_loopback: bool = False
    authorities: Path | None = None
    limiter: RequestLimiter = field(default_factory=NoLimit)
