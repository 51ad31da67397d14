"""One POST of a webhook: proven, stored, answered. It is answered with 2xx only once it is stored."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from threading import BoundedSemaphore
from typing import Final, Literal, TypedDict

from hakiri_dagster.audit.deliveries import Arrival, DeliveryStore
from hakiri_dagster.errors import AuditError
from hakiri_dagster.manifest.tables import Pipeline
from hakiri_dagster.manifest.trigger_spec import WebhookTrigger
from hakiri_dagster.triggers.proving import Refused, prove

PLACE: Final = re.compile(r"/hooks/(?P<pipeline>[a-z0-9][a-z0-9_-]*)")
_WRITERS: Final = 8
"""At once: an audit DB that is slow is not helped by more of them."""

_LONGEST_WAIT: Final = 8.0


class Receipt(TypedDict):
    """The body of a good answer. `known`: it has come before, and starts nothing again."""

    delivery: str
    state: Literal["accepted", "known"]


@dataclass(frozen=True, slots=True)
class Door:
    """What is taken in for one pipeline."""

    pipeline_id: str
    triggers: tuple[WebhookTrigger, ...]

    @property
    def most_bytes(self) -> int:
        return max(trigger.max_body_kib for trigger in self.triggers) * 1024


def doors_of(pipelines: Sequence[Pipeline]) -> dict[str, Door]:
    return {pipeline.id: Door(pipeline.id, pipeline.webhooks) for pipeline in pipelines if pipeline.webhooks}


class Reception:
    def __init__(
        self, doors: Mapping[str, Door], deliveries: DeliveryStore, clock: Callable[[], float] = time.time
    ) -> None:
        self._doors = doors
        self._deliveries = deliveries
        self._clock = clock
        self._writers = BoundedSemaphore(_WRITERS)

    def door(self, path: str) -> Door:
        """The same answer for a pipeline that takes no webhook and for one that there is not."""
        place = PLACE.fullmatch(path.partition("?")[0])
        door = None if place is None else self._doors.get(place["pipeline"])
        if door is None:
            raise Refused(404, "there is nothing here that takes a webhook")
        return door

    def take_in(self, door: Door, headers: Message, body: bytes) -> Receipt:
        """Raises Refused."""
        proven = prove(door.triggers, headers, body, self._clock())
        if headers.get_content_type() == "application/json":
            _require_json(body)
        arrival = Arrival(
            pipeline_id=door.pipeline_id,
            source="webhook",
            delivery_id=proven.delivery_id,
            body_sha256=hashlib.sha256(body).hexdigest(),
            body_bytes=len(body),
            proof=proven.proof,
        )
        with self._turn():
            try:
                (is_new,) = self._deliveries.store([arrival])
            except AuditError as error:
                raise NotStored(error) from error
        return Receipt(delivery=proven.delivery_id, state="accepted" if is_new else "known")

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._writers.acquire(timeout=_LONGEST_WAIT):
            raise Refused(503, "it cannot be stored now: too many others are")
        try:
            yield
        finally:
            self._writers.release()


class NotStored(Refused):
    """Of the audit DB the sender is told nothing more; the operator is."""

    def __init__(self, error: AuditError) -> None:
        super().__init__(503, "it cannot be stored now; send it again")
        self.error = error


def _require_json(body: bytes) -> None:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "its body is not the JSON that its Content-Type says") from None
