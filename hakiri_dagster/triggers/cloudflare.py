"""Cloudflare Queues, by their HTTP pull consumer: messages are leased, and acknowledged by their lease."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hakiri_dagster.audit.deliveries import DeliverySource
from hakiri_dagster.errors import QueueRefused, QueueUnavailable
from hakiri_dagster.manifest.api_urls import joined, judged
from hakiri_dagster.manifest.trigger_spec import CloudflareQueueTrigger
from hakiri_dagster.security.retry_after import seconds_asked_for
from hakiri_dagster.triggers.posting import Answer, Limits, Poster
from hakiri_dagster.triggers.queues import Message

_AT_ONCE: Final = 50
"""Of 100 that it gives, lest an answer be too large: a message has up to 128 KB."""

_LIMITS: Final = Limits()
_TRY_AGAIN: Final = frozenset((408, 425, 429))
_HINTS: Final = {
    401: "check `token`: it needs the permission to edit Queues of this account",
    403: "check `token`: it needs the permission to edit Queues of this account",
    404: "check `account_id` and `queue_id`, and that the queue has an HTTP pull consumer",
    405: "does the queue have an HTTP pull consumer? One with a Worker is not pulled from",
}


class CloudflareQueue:
    """`lease_seconds`: for how long what is pulled is hidden from others; within that it has to be stored."""

    def __init__(
        self,
        trigger: CloudflareQueueTrigger,
        *,
        allow_loopback: bool,
        authorities: Path | None = None,
        lease_seconds: int = 60,
        limits: Limits = _LIMITS,
    ) -> None:
        self._trigger = trigger
        self._allow_loopback = allow_loopback
        self._lease_seconds = lease_seconds
        self._poster = Poster(f"the queue {self.name} of Cloudflare", trigger.token, authorities, limits)

    @property
    def name(self) -> str:
        return self._trigger.queue_id

    @property
    def source(self) -> DeliverySource:
        return "cloudflare_queue"

    @property
    def aside(self) -> str | None:
        return self._trigger.aside_queue_id

    def receive(self) -> Sequence[Message]:
        asked = {"batch_size": _AT_ONCE, "visibility_timeout_ms": self._lease_seconds * 1000}
        result = self._asked(self._trigger.queue_id, "messages/pull", asked)
        messages = result.get("messages") if isinstance(result, dict) else None
        if not isinstance(messages, list):
            raise self._odd("no list of messages")
        return [self._message(found) for found in messages]

    def delete(self, messages: Sequence[Message]) -> None:
        acks = [{"lease_id": message.receipt} for message in messages]
        self._asked(self._trigger.queue_id, "messages/ack", {"acks": acks, "retries": []})

    def put_aside(self, message: Message) -> bool:
        aside = self._trigger.aside_queue_id
        if aside is None or message.body is None:
            return False
        try:
            body = message.body.decode()
        except UnicodeDecodeError:  # it could be put aside as other bytes only
            return False
        self._asked(aside, "messages", {"body": body, "content_type": "text"})
        return True

    def close(self) -> None:
        """Each request has a connection of its own."""

    def _message(self, found: Any) -> Message:
        match found:
            case {"id": str(message_id), "lease_id": str(lease)} if message_id and lease:
                return Message(message_id, _body(found), lease)
            case _:
                raise self._odd("a message without an id or a lease")

    def _asked(self, queue_id: str, what: str, document: Mapping[str, Any]) -> Any:
        place = f"accounts/{self._trigger.account_id}/queues/{queue_id}/{what}"
        to = judged(joined(self._trigger.base_url, place), allow_loopback=self._allow_loopback)
        answer = self._poster.post(to, document)
        self._require_good(answer)
        try:
            envelope = json.loads(answer.body)
        except (ValueError, RecursionError):
            raise QueueUnavailable(f"{self._poster.whom}: the answer is no JSON") from None
        if not isinstance(envelope, dict) or envelope.get("success") is not True:
            raise self._odd(f"no success{_codes(envelope)}")
        return envelope.get("result")

    def _require_good(self, answer: Answer) -> None:
        status = answer.status
        if 200 <= status < 300:
            return
        told = f"{self._poster.whom} answered {status}"
        if status >= 500 or status in _TRY_AGAIN:
            raise QueueUnavailable(told, retry_after=seconds_asked_for(answer.headers.get("Retry-After")))
        raise QueueRefused(told, hint=_HINTS.get(status, "check `base_url`, `account_id` and `queue_id`"))

    def _odd(self, what: str) -> QueueRefused:
        return QueueRefused(f"{self._poster.whom} answered with {what}", hint="is `base_url` Cloudflare's API?")


def _codes(envelope: Any) -> str:
    """Cloudflare's own numbers; its words may repeat what it was sent."""
    errors = envelope.get("errors") if isinstance(envelope, dict) else None
    found = [error.get("code") for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    codes = [str(code) for code in found if isinstance(code, int)]
    return f" ({', '.join(codes[:5])})" if codes else ""


def _body(found: Mapping[str, Any]) -> bytes | None:
    """JSON and bytes come as base64, text as it is; what is in the format of Workers can be read by them alone."""
    body, metadata = found.get("body"), found.get("metadata")
    kind = metadata.get("CF-Content-Type") if isinstance(metadata, dict) else None
    if kind == "v8" or not isinstance(body, str):
        return None
    plain = body.encode("utf-8", "surrogatepass")
    if kind == "text":
        return plain
    try:
        decoded = base64.b64decode(body, validate=True)
    except ValueError:
        return plain
    return plain if _is_json(plain) and not _is_json(decoded) else decoded


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True
