"""One GET after the other over one connection to one API, which stays open between them.

Each connection is made to an address that was judged a moment before, and to no other (`pinned_connection`).
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPMessage, HTTPResponse, RemoteDisconnected
from pathlib import Path

from hakiri_dagster.connectors.rest.api import Timeouts
from hakiri_dagster.connectors.rest.bodies import beginning_of_body, ends_with_its_connection, read_body
from hakiri_dagster.security.pinned_connection import Deadline, Timed, authority, connect, resolved
from hakiri_dagster.security.url_guard import SafeUrl

_CLOSED = (RemoteDisconnected, BrokenPipeError, ConnectionResetError, ConnectionAbortedError)
_OF_A_REFUSAL = 64 << 10
"""What is read of an answer that holds no records, only what is wrong; and what is unpacked of that."""


class ClosedMeanwhile(Exception):
    """An open connection turned out to be closed when it was used again: nobody has answered, and nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`may_be_cut`: nothing said how long the body is."""

    status: int
    reason: str
    headers: HTTPMessage
    body: bytes = field(repr=False)
    may_be_cut: bool = False

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300


def _has_something_to_say(idle: socket.socket) -> bool:
    """Of a connection that nobody has asked anything on, that is mostly that it was closed: while a permit was waited
    for, for one. It is noticed before a request is sent in vain, which would cost its permit."""
    looking = select.poll()
    looking.register(idle, select.POLLIN)
    return bool(looking.poll(0))


class Line:
    """A connection that is opened when it is needed."""

    def __init__(self, timeouts: Timeouts, authorities: Path | None, most_bytes: int) -> None:
        self._timeouts = timeouts
        self._most_bytes = most_bytes
        self._tls = ssl.create_default_context(cafile=authorities)
        self._raw: socket.socket | None = None

    def get(self, at: SafeUrl, headers: Mapping[str, str]) -> Answer:
        """Raises OSError, HTTPException, ClosedMeanwhile, what `read_body` raises, and what resolving a host raises."""
        deadline = Deadline.after(self._timeouts.total)
        if self._raw is not None and _has_something_to_say(self._raw):
            self.close()
        used_before = self._raw is not None
        if self._raw is None:
            self._raw = self._connected(at, deadline)
        stays_open = False
        try:
            with self._answered(self._raw, at, headers, deadline, used_before=used_before) as response:
                answer = self._read(response)
                stays_open = response.isclosed() and not response.will_close  # closed: it was read to its end
                return answer
        finally:
            if not stays_open:
                self.close()

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()
            self._raw = None

    def _connected(self, at: SafeUrl, deadline: Deadline) -> socket.socket:
        addresses = resolved(at, deadline)
        return connect(at, addresses, tls=self._tls, deadline=deadline, at_most=self._timeouts.connect)

    def _answered(
        self, raw: socket.socket, at: SafeUrl, headers: Mapping[str, str], deadline: Deadline, *, used_before: bool
    ) -> HTTPResponse:
        http = HTTPConnection(at.host, at.port)
        http.sock = Timed(raw, deadline, self._timeouts.read)
        try:
            http.request("GET", at.target, headers={**headers, "Host": authority(at)})
            return http.getresponse()
        except _CLOSED as error:
            if used_before:
                raise ClosedMeanwhile from error
            raise

    def _read(self, response: HTTPResponse) -> Answer:
        if not 200 <= response.status < 300:
            body = beginning_of_body(response, _OF_A_REFUSAL)
            return Answer(response.status, response.reason, response.headers, body)
        may_be_cut = ends_with_its_connection(response)
        body = read_body(response, self._most_bytes)
        return Answer(response.status, response.reason, response.headers, body, may_be_cut)
