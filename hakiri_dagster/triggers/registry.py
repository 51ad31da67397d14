"""Which queues a project reads, and from which module each comes. Pipelines that share a queue read it together: one
that reads alone would hide the others' messages from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from hakiri_dagster.manifest.queue_identity import QueueIdentity, queue_identity
from hakiri_dagster.manifest.tables import Pipeline
from hakiri_dagster.manifest.trigger_spec import CloudflareQueueTrigger, QueueTrigger, SqsTrigger
from hakiri_dagster.settings import Settings
from hakiri_dagster.triggers.cloudflare import CloudflareQueue
from hakiri_dagster.triggers.intake import Reader
from hakiri_dagster.triggers.queues import Queue
from hakiri_dagster.triggers.sqs import SqsQueue


@dataclass(frozen=True, slots=True)
class SharedQueue:
    """A queue, how it is reached, and the pipelines that it may start. `validate` has refused those that would reach it
    otherwise."""

    trigger: QueueTrigger
    readers: tuple[Reader, ...]


def queues_of(pipelines: Sequence[Pipeline]) -> tuple[SharedQueue, ...]:
    found: dict[QueueIdentity, tuple[QueueTrigger, dict[Reader, None]]] = {}
    for pipeline in pipelines:
        for trigger in pipeline.queues:
            _, readers = found.setdefault(queue_identity(trigger), (trigger, {}))
            readers[Reader(pipeline.id, trigger.expects)] = None
    return tuple(SharedQueue(trigger, tuple(readers)) for trigger, readers in found.values())


def open_queue(trigger: QueueTrigger, settings: Settings) -> Queue:
    match trigger:
        case SqsTrigger():
            return SqsQueue(trigger, allow_loopback=settings.webhooks_to_loopback)
        case CloudflareQueueTrigger():
            return CloudflareQueue(
                trigger, allow_loopback=settings.webhooks_to_loopback, authorities=settings.webhook_authorities
            )
        case _:
            assert_never(trigger)
