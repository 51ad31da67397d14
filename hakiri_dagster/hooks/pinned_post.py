"""One POST through one connection to one of the given addresses, all of it within a deadline."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from hakiri_dagster.security.pinned_connection import Deadline, Timed, authority, connect
from hakiri_dagster.security.url_guard import Address, SafeUrl


@dataclass(frozen=True, slots=True)
class Message:
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    location: str | None
    retry_after: str | None


def post(
    to: SafeUrl,
    addresses: Sequence[Address],
    message: Message,
    *,
    tls: ssl.SSLContext,
    deadline: Deadline,
    connect_seconds: float,
    answer_bytes: int,
) -> Answer:
    """Raises OSError and HTTPException. Of a good answer the body is read, up to a limit and for nothing but the
    receiver's sake: some stop their work when nobody listens."""
    with connect(to, addresses, tls=tls, deadline=deadline, at_most=connect_seconds) as connection:
        http = HTTPConnection(to.host, to.port)
        http.sock = Timed(connection, deadline)
        http.request("POST", to.target, message.body, {**message.headers, "Host": authority(to), "Connection": "close"})
        with http.getresponse() as answer:
            if 200 <= answer.status < 300:
                with suppress(OSError, HTTPException):
                    answer.read(answer_bytes)
            return Answer(answer.status, answer.headers.get("Location"), answer.headers.get("Retry-After"))
