from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hakiri_dagster.audit.database import open_audit
from hakiri_dagster.audit.deliveries import DeliverySource
from hakiri_dagster.errors import QueueRefused, QueueUnavailable
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
        if message.id == "away":
            raise QueueUnavailable("the other queue does not answer")
        return message.id != "unreadable"

    def close(self) -> None: ...


def test_a_queue_that_never_ends_does_not_take_the_whole_tick(tmp_path: Path) -> None:
    queue, moments = EndlessQueue(), iter(range(100))
    with open_audit(None, tmp_path) as audit:
        assert take_in(queue, ANY, audit.deliveries, end=3, clock=lambda: next(moments)).stored == 3
        assert take_in(queue, ANY, audit.deliveries, end=1000, clock=lambda: 0).stored == MOST_BATCHES
    assert len(queue.deleted) == queue.given


def foreign(*names: str) -> list[Foreign]:
    return [Foreign(Message(name, b"", name), "it is no JSON") for name in names]


def test_only_what_lies_in_the_other_queue_is_deleted_and_a_refusal_holds_up_none() -> None:
    queue = EndlessQueue()
    refused = put_aside(queue, foreign("good", "unreadable", "refused", "next"), end=1, clock=lambda: 0)
    assert refused is not None
    assert queue.deleted == ["good", "next"]


def test_what_lies_in_the_other_queue_is_deleted_before_an_error_is_told() -> None:
    queue = EndlessQueue()
    with pytest.raises(QueueUnavailable):
        put_aside(queue, foreign("good", "away", "next"), end=1, clock=lambda: 0)
    assert queue.deleted == ["good"]


def test_putting_aside_ends_with_its_time() -> None:
    queue, moments = EndlessQueue(), iter(range(100))
    put_aside(queue, foreign(*"abcde"), end=3, clock=lambda: next(moments))
    assert queue.deleted == ["a", "b", "c"]


def test_what_is_for_nobody_is_told_and_put_aside_before_more_is_received(tmp_path: Path) -> None:
    queue, told = EndlessQueue(), []
    with open_audit(None, tmp_path) as audit:
        taken = take_in(
            queue, (), audit.deliveries, end=1000, clock=lambda: 0, tell=lambda found: told.append(len(queue.deleted))
        )
    assert told == list(range(MOST_BATCHES))
    assert len(taken.foreign) == MOST_BATCHES
