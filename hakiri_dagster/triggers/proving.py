"""Whether a POST comes from who shares the secret, and which delivery it is. No I/O, and no clock but the one given.

`timestamped` is how our own webhooks are signed (`hooks/signature.py`). `github` signs the body alone: its deliveries
are told apart by an id that nobody has signed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import Message
from typing import TypeVar, assert_never

from hakiri_dagster.hooks import signature
from hakiri_dagster.manifest.trigger_spec import WebhookTrigger

GITHUB_SIGNATURE = "X-Hub-Signature-256"
GITHUB_DELIVERY = "X-GitHub-Delivery"
IDEMPOTENCY_KEY = "Idempotency-Key"

_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_LONGEST_ID = 200

Of = TypeVar("Of")


class Refused(Exception):
    """Nothing of it is stored. The message is for the sender: it tells nothing that only the receiver knows."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Proven:
    """`proof` is None where a signature says nothing of when it was made: the next of the same body has the same."""

    delivery_id: str
    proof: str | None


def prove(triggers: Sequence[WebhookTrigger], headers: Message, body: bytes, now: float) -> Proven:
    """By any of a pipeline's triggers: while a secret is changed there are two. Raises Refused."""
    return _by_any(triggers, lambda trigger: _proven(trigger, headers, body, now))


def require_signature(triggers: Sequence[WebhookTrigger], headers: Message) -> None:
    """Whether a signature is there that could be good: before a body is read. Raises Refused."""
    _by_any(triggers, lambda trigger: _signature(trigger, headers))


def _by_any(triggers: Sequence[WebhookTrigger], ask: Callable[[WebhookTrigger], Of]) -> Of:
    refusals: list[Refused] = []
    for trigger in triggers:
        try:
            return ask(trigger)
        except Refused as refused:
            refusals.append(refused)
    # What came nearest is told: an old timestamp under a good signature rather than the other secret's mismatch.
    raise max(refusals, key=lambda refused: _FROM_FAR_TO_NEAR.index(refused.message))


_MISSING = "it is not signed"
_MALFORMED = "its signature or its timestamp is malformed"
_TWICE = "a header that must be there once is there twice"
_WRONG = "its signature is wrong"
_OLD = "its timestamp is too far from this clock: it is old, or a clock is wrong"
_NO_ID = "no header tells its delivery apart from others"
_FROM_FAR_TO_NEAR = (_MISSING, _MALFORMED, _TWICE, _WRONG, _OLD, _NO_ID)


def _proven(trigger: WebhookTrigger, headers: Message, body: bytes, now: float) -> Proven:
    match trigger.scheme:
        case "timestamped":
            return _timestamped(trigger, headers, body, now)
        case "github":
            return _github(trigger, headers, body)
        case _:
            assert_never(trigger.scheme)


def _signature(trigger: WebhookTrigger, headers: Message) -> tuple[str, str]:
    """And its timestamp, where the scheme has one."""
    dated = trigger.scheme == "timestamped"
    signed = _one(headers, signature.SIGNATURE if dated else GITHUB_SIGNATURE)
    timestamp = _one(headers, signature.TIMESTAMP) if dated else ""
    if signed is None:
        raise Refused(401, _MISSING)
    if timestamp is None or (dated and not _TIMESTAMP.fullmatch(timestamp)) or not _SIGNATURE.fullmatch(signed):
        raise Refused(400, _MALFORMED)
    return signed, timestamp


def _timestamped(trigger: WebhookTrigger, headers: Message, body: bytes, now: float) -> Proven:
    signed, timestamp = _signature(trigger, headers)
    if not signature.verify(trigger.secret, timestamp, body, signed):
        raise Refused(401, _WRONG)
    if abs(now - int(timestamp)) > trigger.tolerance_seconds:
        raise Refused(401, _OLD)
    proof = hashlib.sha256(f"{timestamp}.{signed}".encode()).hexdigest()
    return Proven(_delivery_id(headers, trigger.id_header or IDEMPOTENCY_KEY) or proof, proof)


def _github(trigger: WebhookTrigger, headers: Message, body: bytes) -> Proven:
    signed, _ = _signature(trigger, headers)
    made = "sha256=" + hmac.digest(trigger.secret.encode(), body, "sha256").hex()
    if not hmac.compare_digest(made, signed):
        raise Refused(401, _WRONG)
    delivery_id = _delivery_id(headers, trigger.id_header or GITHUB_DELIVERY)
    if delivery_id is None:
        raise Refused(400, _NO_ID)
    return Proven(delivery_id, None)


def _delivery_id(headers: Message, name: str) -> str | None:
    written = _one(headers, name)
    if not written:
        return None
    if len(written) > _LONGEST_ID or not (written.isascii() and written.isprintable()):
        return hashlib.sha256(written.encode("utf-8", "surrogateescape")).hexdigest()
    return written


def _one(headers: Message, name: str) -> str | None:
    """Of two, one program would take the first and the next one the last."""
    found = headers.get_all(name, [])
    if len(found) > 1:
        raise Refused(400, _TWICE)
    return str(found[0]).strip() if found else None
