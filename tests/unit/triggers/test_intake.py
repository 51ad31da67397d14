from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hakiri_dagster.audit.database import open_audit
from hakiri_dagster.audit.deliveries import DeliverySource
from hakiri_dagster.errors import QueueRefused
from hakiri_dagster.triggers.intake import MOST_BATCHES, Foreign, Reader, put_aside, take_in
from hakiri_dagster.triggers.queues import Message

ANY = (Reader("shop", "anything"),)


class EndlessQueue:
    """Gives a message that nobody has seen yet, whenever it is asked."""

    name = "endless"
    source: DeliverySource = "sqs"
    aside: str | None = "aside"

    def __init__(self) -> None:
        self.given = 0
        self.deleted: list[str] = []

    def receive(self) -> Sequence[Message]:
        self.given += 1
        return [Message(str(self.given), b"", f"receipt {self.given}")]

    def delete(self, messages: Sequence[Message]) -> None:
        self.deleted += [message.id for message in messages]

    def put_aside(self, message: Message) -> bool:
        if message.id == "refused":
            raise QueueRefused("the other queue is not there")
        return message.id != "unreadable"

    def close(self) -> None: ...


def test_a_queue_that_never_ends_does_not_take_the_whole_tick(tmp_path: Path) -> None:
    queue, moments = EndlessQueue(), iter(range(100))
    with open_audit(None, tmp_path) as audit:
        assert take_in(queue, ANY, audit.deliveries, end=3, clock=lambda: next(moments)).stored == 3
        assert take_in(queue, ANY, audit.deliveries, end=1000, clock=lambda: 0).stored == MOST_BATCHES
    assert len(queue.deleted) == queue.given


def test_only_what_lies_in_the_other_queue_is_deleted() -> None:
    queue = EndlessQueue()
    foreign = [Foreign(Message(name, b"", name), "it is no JSON") for name in ("good", "unreadable", "refused", "next")]
    with pytest.raises(QueueRefused):
        put_aside(queue, foreign)
    assert queue.deleted == ["good"]
