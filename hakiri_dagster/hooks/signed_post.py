"""Sends the JSON of a hook or an alert: to where its URL may lead, signed, and redirected only to where a URL may lead.

What was sent may arrive twice, as its answer may be lost; `signature` says what a receiver does about it.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote, urldefrag, urljoin

from hakiri_dagster.errors import UnsafeUrl, WebhookRefused, WebhookUnavailable
from hakiri_dagster.hooks.pinned_post import Answer, Message, post
from hakiri_dagster.hooks.signature import SIGNATURE, TIMESTAMP, sign
from hakiri_dagster.security.pinned_connection import Deadline, is_https, origin, resolved
from hakiri_dagster.security.retry_after import seconds_asked_for
from hakiri_dagster.security.url_guard import ALLOWED, Address, SafeUrl, judge

_SAME_POST_ELSEWHERE = frozenset((307, 308))
_TRY_AGAIN = frozenset((408, 425, 429))


@dataclass(frozen=True, slots=True)
class Limits:
    """`seconds` is for everything together: resolving, connecting, redirects and the answer."""

    seconds: float = 10
    connect_seconds: float = 3
    redirects: int = 3
    answer_bytes: int = 64 << 10


@dataclass(frozen=True, slots=True)
class Delivered:
    status: int
    redirects: int
    seconds: float


def send(
    hook_url: str,
    payload: Mapping[str, object],
    *,
    secret: str | None,
    idempotency_key: str,
    allow_loopback: bool,
    limits: Limits = Limits(),
    authorities: Path | None = None,
) -> Delivered:
    """Raises WebhookUnavailable when another try may help, else UnsafeUrl or WebhookRefused. `authorities` are the
    certificates (PEM) to trust instead of the machine's."""
    start = time.monotonic()
    deadline = Deadline(start + limits.seconds)
    at = judge(hook_url, allow_loopback=allow_loopback)
    message = _message(payload, secret, idempotency_key)
    tls = ssl.create_default_context(cafile=authorities)
    addresses = _resolve(at, deadline)
    redirects = 0
    while (answer := _post(at, addresses, message, tls, deadline, limits)).status in _SAME_POST_ELSEWHERE:
        if redirects == limits.redirects:
            raise WebhookRefused(f"the receiver redirects more than {redirects} times", where=origin(at))
        with _blaming_the_redirect(at):
            at = _follow(at, answer)
            addresses = _resolve(at, deadline)
        redirects += 1
    _accept(answer, at)
    return Delivered(answer.status, redirects, time.monotonic() - start)


def _message(payload: Mapping[str, object], secret: str | None, idempotency_key: str) -> Message:
    body = json.dumps(dict(payload), allow_nan=False, separators=(",", ":")).encode()
    timestamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"hakiri-dagster/{version('hakiri-dagster')}",
        "Idempotency-Key": quote(idempotency_key, safe="/:"),  # the names of tables need not be ASCII
        TIMESTAMP: timestamp,
    }
    if secret is not None:
        headers[SIGNATURE] = sign(secret, timestamp, body)
    return Message(headers, body)


def _resolve(at: SafeUrl, deadline: Deadline) -> tuple[Address, ...]:
    try:
        return resolved(at, deadline)
    except TimeoutError:
        raise WebhookUnavailable("the host was not resolved in time", where=origin(at)) from None


def _post(
    at: SafeUrl,
    addresses: tuple[Address, ...],
    message: Message,
    tls: ssl.SSLContext,
    deadline: Deadline,
    limits: Limits,
) -> Answer:
    with _telling(at):
        return post(
            at,
            addresses,
            message,
            tls=tls,
            deadline=deadline,
            connect_seconds=limits.connect_seconds,
            answer_bytes=limits.answer_bytes,
        )


@contextmanager
def _telling(at: SafeUrl) -> Iterator[None]:
    """What goes wrong on the way, without a word of what the receiver sent: it knows the URL and the body."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise WebhookRefused(
            f"the receiver's certificate does not prove that it is this host: {error.verify_message}",
            where=origin(at),
            hint="nothing was sent; the receiver needs a valid certificate, of an authority that this machine trusts",
        ) from None
    except TimeoutError:
        raise WebhookUnavailable("the receiver did not answer in time", where=origin(at)) from None
    except OSError as error:
        raise WebhookUnavailable(
            f"the receiver cannot be reached, or broke off: {error.strerror or error}", where=origin(at)
        ) from error
    except HTTPException:
        raise WebhookUnavailable("the receiver did not answer in HTTP", where=origin(at)) from None


def _follow(at: SafeUrl, answer: Answer) -> SafeUrl:
    """To the machine itself only from there: what the operator allowed is not the receiver's to use."""
    if answer.location is None:
        raise WebhookRefused("the receiver redirects, and does not say where to", where=origin(at))
    try:
        location = urldefrag(urljoin(at.url, answer.location)).url
    except ValueError:
        raise UnsafeUrl("the URL names no host that there could be", hint=ALLOWED) from None
    to = judge(location, allow_loopback=at.loopback)
    if is_https(at) and not is_https(to):
        raise UnsafeUrl("the URL is not https", where=origin(to), hint=ALLOWED)
    return to


@contextmanager
def _blaming_the_redirect(at: SafeUrl) -> Iterator[None]:
    try:
        yield
    except UnsafeUrl as error:
        place = f" ({error.where})" if error.where else ""
        raise UnsafeUrl(
            f"the receiver redirects elsewhere{place}: {error.what}", where=origin(at), hint=error.hint
        ) from None


def _accept(answer: Answer, at: SafeUrl) -> None:
    status, where = answer.status, origin(at)
    if 200 <= status < 300:
        return
    if status >= 500 or status in _TRY_AGAIN:
        raise WebhookUnavailable(
            f"the receiver answered {status}", where=where, retry_after=seconds_asked_for(answer.retry_after)
        )
    if 300 <= status < 400:
        raise WebhookRefused(
            f"the receiver answered {status}, which would make a GET of a POST",
            where=where,
            hint="name the URL that it redirects to; only 307 and 308 are followed",
        )
    raise WebhookRefused(
        f"the receiver answered {status}", where=where, hint="the receiver's own log may say what it misses"
    )
