"""What intake asks of a queue, whoever runs it; one module a kind of queue keeps this contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hakiri_dagster.audit.deliveries import DeliverySource


@dataclass(frozen=True, slots=True)
class Message:
    """`id` is the same each time it is delivered, `receipt` another one each time. `body` is None where its kind cannot
    be read."""

    id: str
    body: bytes | None = field(repr=False)
    receipt: str = field(repr=False)


class Queue(Protocol):
    """Every method raises QueueUnavailable or QueueRefused."""

    @property
    def name(self) -> str:
        """As alerts name it; no secret."""
        ...

    @property
    def source(self) -> DeliverySource: ...

    @property
    def aside(self) -> str | None:
        """The name of the queue that messages are put aside in; None: they are left alone."""
        ...

    def receive(self) -> Sequence[Message]:
        """Some messages, which nobody else gets for a while; none: there are none now."""
        ...

    def delete(self, messages: Sequence[Message]) -> None:
        """What cannot be deleted is delivered again, and known then."""
        ...

    def put_aside(self, message: Message) -> bool:
        """It is in the other queue when this returns, and still in this one. False: it cannot be put there."""
        ...

    def close(self) -> None:
        """Of the connection, not of the queue."""
        ...
