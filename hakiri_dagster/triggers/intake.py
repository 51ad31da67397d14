"""Messages on their way from a queue into the audit DB: stored first, deleted then. A message that is for nobody here
holds up no other, and is deleted only when it lies in another queue."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hakiri_dagster.audit.deliveries import Arrival, DeliveryStore
from hakiri_dagster.errors import QueueRefused
from hakiri_dagster.manifest.field_types import PIPELINE_ID, quoted
from hakiri_dagster.manifest.trigger_spec import Expects
from hakiri_dagster.triggers.queues import Message, Queue

MOST_BATCHES: Final = 20
_SHOWN: Final = 5
_ID: Final = re.compile(PIPELINE_ID.strip("^$"))


@dataclass(frozen=True, slots=True)
class Reader:
    """A pipeline that a queue may start."""

    pipeline_id: str
    expects: Expects


@dataclass(frozen=True, slots=True)
class Foreign:
    """A message that is for no pipeline here, and why."""

    message: Message
    reason: str


@dataclass(slots=True)
class Taken:
    """`refused`: why the queue for what is put aside did not take a message, of the first one."""

    stored: int = 0
    known: int = 0
    foreign: list[Foreign] = field(default_factory=list)
    refused: QueueRefused | None = None

    @property
    def summary(self) -> str:
        others = f", {len(self.foreign)} for nobody here" if self.foreign else ""
        return f"{self.stored} stored, {self.known} known{others}"


def take_in(
    queue: Queue,
    readers: Sequence[Reader],
    deliveries: DeliveryStore,
    *,
    end: float,
    clock: Callable[[], float] = time.monotonic,
    tell: Callable[[Sequence[Foreign]], None] = lambda _: None,
) -> Taken:
    """Until the queue is empty, but not beyond `end`. What is stored when an error leaves it stays stored. What is for
    nobody is told, and put aside, batch by batch: while its lease lives."""
    taken = Taken()
    met: set[str] = set()
    for _ in range(MOST_BATCHES):
        if clock() >= end:
            break
        messages = queue.receive()
        if not messages or met.issuperset(message.id for message in messages):
            break  # what was left alone comes round again
        met.update(message.id for message in messages)
        foreign = _take_batch(queue, messages, readers, deliveries, taken)
        if foreign:
            tell(foreign)
            taken.foreign += foreign
            taken.refused = put_aside(queue, foreign, end=end, clock=clock) or taken.refused
    return taken


def _take_batch(
    queue: Queue, messages: Sequence[Message], readers: Sequence[Reader], deliveries: DeliveryStore, taken: Taken
) -> list[Foreign]:
    ours: list[Message] = []
    foreign: list[Foreign] = []
    arrivals: list[Arrival] = []
    for message in messages:
        whose = whose_is(message, readers)
        if isinstance(whose, str):
            foreign.append(Foreign(message, whose))
        else:
            ours.append(message)
            arrivals += [_arrival(queue, message, reader) for reader in whose]
    if ours:
        are_new = deliveries.store(arrivals)
        taken.stored += sum(are_new)
        taken.known += len(are_new) - sum(are_new)
        queue.delete(ours)
    return foreign


def put_aside(
    queue: Queue, foreign: Sequence[Foreign], *, end: float, clock: Callable[[], float] = time.monotonic
) -> QueueRefused | None:
    """Where the trigger says, else they are left alone. What lies there is deleted here, whatever the next one meets:
    it would be put there once more. Answers why one was refused, which holds up none behind it."""
    lying: list[Message] = []
    refused: QueueRefused | None = None
    try:
        for one in foreign:
            if clock() >= end:
                break
            try:
                if queue.put_aside(one.message):
                    lying.append(one.message)
            except QueueRefused as error:
                refused = refused or error
    finally:
        if lying:
            queue.delete(lying)
    return refused


def whose_is(message: Message, readers: Sequence[Reader]) -> tuple[Reader, ...] | str:
    """Those it starts, or why it starts none."""
    takers = tuple(reader for reader in readers if reader.expects == "anything")
    named = _pipeline_named(message.body)
    if isinstance(named, _Unreadable):
        return takers or named.reason
    takers += tuple(reader for reader in readers if reader.expects == "pipeline_id" and reader.pipeline_id == named)
    return takers or f"it is for the pipeline {quoted(named)}, which no trigger of this queue belongs to"


@dataclass(frozen=True, slots=True)
class _Unreadable:
    reason: str


def _pipeline_named(body: bytes | None) -> str | _Unreadable:
    """Nothing of the body is quoted unless it has the form of an id."""
    if body is None:
        return _Unreadable("its content type cannot be read")
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        return _Unreadable("it is no JSON")
    named = document.get("pipeline_id") if isinstance(document, dict) else None
    if not isinstance(named, str):
        return _Unreadable("it is no JSON object with a `pipeline_id`")
    return named if _is_id(named) else _Unreadable("its `pipeline_id` is none")


def _is_id(text: str) -> bool:
    return len(text) <= 63 and _ID.fullmatch(text) is not None


def told_of_foreign(queue: Queue, foreign: Sequence[Foreign]) -> str:
    reasons = dict.fromkeys(one.reason for one in foreign)
    shown = "; ".join(list(reasons)[:_SHOWN])
    what = "stay where they are" if queue.aside is None else f"go to the queue {queue.aside}"
    return f"{len(foreign)} message(s) of the queue {queue.name} are for nobody here and {what}: {shown}"


def _arrival(queue: Queue, message: Message, reader: Reader) -> Arrival:
    body = message.body or b""
    return Arrival(reader.pipeline_id, queue.source, message.id, hashlib.sha256(body).hexdigest(), len(body))
