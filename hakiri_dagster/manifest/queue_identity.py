"""Which queue a trigger names, however it is written. Pipelines that name the same one read it together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never
from urllib.parse import urlsplit

from hakiri_dagster.manifest.queue_urls import region_of
from hakiri_dagster.manifest.trigger_spec import CloudflareQueueTrigger, QueueTrigger, SqsTrigger

QueueIdentity = tuple[str, ...]


def queue_identity(trigger: QueueTrigger) -> QueueIdentity:
    match trigger:
        case SqsTrigger():
            return _of_sqs(trigger.queue_url)
        case CloudflareQueueTrigger():
            return (trigger.type, trigger.base_url.rstrip("/").lower(), trigger.account_id, trigger.queue_id)
        case _:
            assert_never(trigger)


def shared_settings(trigger: QueueTrigger) -> Mapping[str, object]:
    """How a queue is read, by the keys of the manifest: whoever reads it for several can do so in one way only."""
    match trigger:
        case SqsTrigger():
            aside = trigger.aside_queue_url
            return {
                "region": trigger.region or region_of(trigger.queue_url),
                "access_key_id": trigger.access_key_id,
                "secret_access_key": trigger.secret_access_key,
                "aside_queue_url": None if aside is None else _of_sqs(aside),
            }
        case CloudflareQueueTrigger():
            return {"token": trigger.token, "aside_queue_id": trigger.aside_queue_id}
        case _:
            assert_never(trigger)


def _of_sqs(url: str) -> QueueIdentity:
    """Amazon has several hosts for the queues of a region: the one of today, that of before, and private ones."""
    parts = urlsplit(url)
    path = parts.path.strip("/")
    return ("sqs", region_of(url) or f"{parts.scheme}://{parts.netloc}".lower(), path)
