"""One POST through one connection to one of the given addresses, all of it within a deadline.

On http.client itself: it knows no proxy, no cookie, no netrc and no redirect, and unlike the libraries above it logs
neither the URL, in which there often is a token, nor the headers.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hakiri_dagster.security.url_guard import Address, SafeUrl

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@dataclass(frozen=True, slots=True)
class Deadline:
    at: float

    def left(self) -> float:
        left = self.at - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time is over")
        return left


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
    with (
        _connect(addresses, to.port, deadline, connect_seconds) as raw,
        _secure(raw, to, tls, deadline) as connection,
    ):
        http = HTTPConnection(to.host, to.port)
        http.sock = _Timed(connection, deadline)  # with a socket it neither resolves nor connects
        http.request("POST", to.target, message.body, {**message.headers, "Host": authority(to), "Connection": "close"})
        with http.getresponse() as answer:
            if 200 <= answer.status < 300:
                with suppress(OSError, HTTPException):
                    answer.read(answer_bytes)
            return Answer(answer.status, answer.headers.get("Location"), answer.headers.get("Retry-After"))


def is_https(url: SafeUrl) -> bool:
    return urlsplit(url.url).scheme == "https"


def authority(url: SafeUrl) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return host if url.port == (443 if is_https(url) else 80) else f"{host}:{url.port}"


def _connect(addresses: Sequence[Address], port: int, deadline: Deadline, at_most: float) -> socket.socket:
    failure: OSError = TimeoutError("no address to connect to")
    for address in addresses:
        try:
            return _connect_to(address, port, min(deadline.left(), at_most))
        except OSError as error:
            failure = error
    raise failure


def _connect_to(address: Address, port: int, seconds: float) -> socket.socket:
    """Not `create_connection`, which would ask the resolver again."""
    raw = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        raw.settimeout(seconds)
        raw.connect((str(address), port))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # the body follows the headers at once
    except OSError:
        raw.close()
        raise
    return raw


def _secure(raw: socket.socket, to: SafeUrl, tls: ssl.SSLContext, deadline: Deadline) -> socket.socket:
    """The certificate has to name the host of the URL, whatever the address."""
    if not is_https(to):
        return raw
    secured = tls.wrap_socket(raw, server_hostname=to.host, do_handshake_on_connect=False)
    try:
        secured.settimeout(deadline.left())
        secured.do_handshake()
    except OSError:
        secured.close()
        raise
    return secured


@dataclass(frozen=True, slots=True)
class _Timed:
    """What http.client asks of a socket. A socket's own timeout is for one wait, and whoever drips makes many: here
    each gets what the deadline leaves."""

    connection: socket.socket
    deadline: Deadline

    def sendall(self, sent: bytes) -> None:
        rest = memoryview(sent)
        while rest:
            self.connection.settimeout(self.deadline.left())
            rest = rest[self.connection.send(rest) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self.connection, self.deadline))

    def close(self) -> None:
        """The answer may still have to be read; who opened the connection closes it."""


class _Incoming(io.RawIOBase):
    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, into: WriteableBuffer) -> int:
        self._connection.settimeout(self._deadline.left())
        return self._connection.recv_into(into)
