"""A connection to one of the addresses that were judged, and to no other; whatever is done with it ends at a deadline.

Below http.client, which with a socket of ours neither resolves nor connects. It knows no proxy, no cookie, no netrc and
no redirect, and unlike the libraries above it logs neither the URL, in which there often is a token, nor the headers.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.security.url_guard import Address, SafeUrl, resolve

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@dataclass(frozen=True, slots=True)
class Deadline:
    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    def left(self) -> float:
        left = self.at - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time is over")
        return left


def is_https(url: SafeUrl) -> bool:
    return urlsplit(url.url).scheme == "https"


def authority(url: SafeUrl) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return host if url.port == (443 if is_https(url) else 80) else f"{host}:{url.port}"


def origin(url: SafeUrl) -> str:
    """Without the path, in which there often is a token."""
    return f"{'https' if is_https(url) else 'http'}://{authority(url)}"


def resolved(to: SafeUrl, deadline: Deadline) -> tuple[Address, ...]:
    """In a thread, as the C library takes its time and cannot be interrupted; as a daemon it keeps no process alive.
    Raises what `resolve` raises, and TimeoutError."""
    found: Future[tuple[Address, ...]] = Future()

    def look_up() -> None:
        try:
            found.set_result(resolve(to))
        except HakiriError as error:
            found.set_exception(error)

    Thread(target=look_up, name="resolver", daemon=True).start()
    return found.result(deadline.left())


def connect(
    to: SafeUrl, addresses: Sequence[Address], *, tls: ssl.SSLContext, deadline: Deadline, at_most: float
) -> socket.socket:
    """`at_most` seconds for each address. Raises OSError."""
    raw = _connect_to_any(addresses, to.port, deadline, at_most)
    try:
        return _secure(raw, to, tls, deadline)
    except OSError:
        raw.close()
        raise


def _connect_to_any(addresses: Sequence[Address], port: int, deadline: Deadline, at_most: float) -> socket.socket:
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
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a body follows its headers at once
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
class Timed:
    """What http.client asks of a socket. A socket's own timeout is for one wait, and whoever drips makes many: here
    each gets what the deadline leaves, and no more than `at_most` seconds."""

    connection: socket.socket
    deadline: Deadline
    at_most: float = float("inf")

    def sendall(self, sent: bytes) -> None:
        rest = memoryview(sent)
        while rest:
            self.connection.settimeout(self._patience())
            rest = rest[self.connection.send(rest) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self))

    def receive_into(self, into: WriteableBuffer) -> int:
        self.connection.settimeout(self._patience())
        return self.connection.recv_into(into)

    def close(self) -> None:
        """The answer may still have to be read; who opened the connection closes it."""

    def _patience(self) -> float:
        return min(self.deadline.left(), self.at_most)


class _Incoming(io.RawIOBase):
    def __init__(self, timed: Timed) -> None:
        self._timed = timed

    def readable(self) -> bool:
        return True

    def readinto(self, into: WriteableBuffer) -> int:
        return self._timed.receive_into(into)
