"""The inbox: a small HTTP server that takes signed POSTs, and nothing else.

It speaks plain HTTP and listens on this machine alone unless told otherwise: TLS is for the proxy in front of it. Each
connection is for one request, which is over after some seconds, however slowly it drips.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any, Final

from hakiri_dagster.errors import AuditError
from hakiri_dagster.security.pinned_connection import Deadline, Timed
from hakiri_dagster.triggers.proving import Refused, require_signature
from hakiri_dagster.triggers.receiving import NotStored, Reception
from hakiri_dagster.triggers.room import Room

_PIECE: Final = 1 << 16
_RETRY_AFTER: Final = {"Retry-After": "10"}
_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 10\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Limits:
    """`seconds` are for a whole request; `at_once` is how many are read at the same time, `bytes_at_once` how much of
    their bodies."""

    seconds: float = 10
    at_once: int = 64
    bytes_at_once: int = 64 << 20
    backlog: int = 128


class Inbox(ThreadingHTTPServer):
    """`tell` gets a line for each delivery and each refusal, without anything that a sender has made up."""

    daemon_threads = True

    def __init__(
        self,
        host: str,
        port: int,
        reception: Reception,
        tell: Callable[[str], None],
        limits: Limits = Limits(),
    ) -> None:
        self.reception = reception
        self.tell = tell
        self.limits = limits
        self.request_queue_size = limits.backlog
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.room = Room(limits.bytes_at_once)
        self._places = BoundedSemaphore(limits.at_once)
        super().__init__((host, port), _Request)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            try:
                super().process_request(request, client_address)
            except BaseException:  # no thread could be started
                self._places.release()
                raise
            return
        with suppress(OSError):
            request.settimeout(0.1)
            request.sendall(_FULL)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Of a sender that has gone away there is nothing to tell."""


class _Request(BaseHTTPRequestHandler):
    server: Inbox
    protocol_version = "HTTP/1.1"
    server_version = "hakiri"
    sys_version = ""
    error_content_type = "application/json"
    error_message_format = '{"error": "%(code)d"}'

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._deadline = Deadline.after(self.server.limits.seconds)
        self.rfile = Timed(self.connection, self._deadline).makefile("rb")

    def do_POST(self) -> None:
        whose = "-"
        try:
            door = self.server.reception.door(self.path)
            whose = door.pipeline_id
            length = self._length(door.most_bytes)
            require_signature(door.triggers, self.headers)
            with self.server.room.hold() as take:
                receipt = self.server.reception.take_in(door, self.headers, self._body(length, take))
        except Refused as refused:
            self._refuse(whose, refused)
            return
        status = HTTPStatus.ACCEPTED if receipt["state"] == "accepted" else HTTPStatus.OK
        self.server.tell(f"{whose}: {receipt['state']}, delivery {receipt['delivery']}")
        self._answer(status, dict(receipt))

    def _only_post(self) -> None:
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "only POST is taken"}, {"Allow": "POST"})

    do_GET = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _only_post  # noqa: N815

    def handle_expect_100(self) -> bool:
        """Whoever asks first whether it may send is told so only where it may."""
        try:
            door = self.server.reception.door(self.path)
            self._length(door.most_bytes)
            require_signature(door.triggers, self.headers)
        except Refused as refused:
            self._refuse("-", refused)
            return False
        return super().handle_expect_100()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # http.server's own name
        """What is told, `tell` gets: these lines hold the sender's own words."""

    def _body(self, length: int, take: Callable[[int], None]) -> bytes:
        body = bytearray()
        try:
            while len(body) < length and (piece := self.rfile.read(min(_PIECE, length - len(body)))):
                take(len(piece))
                body += piece
        except TimeoutError:
            raise Refused(408, "it did not come in time") from None
        except OSError:
            raise Refused(400, "it broke off") from None
        if len(body) < length:
            raise Refused(400, "it is shorter than its Content-Length says")
        return bytes(body)

    def _length(self, most_bytes: int) -> int:
        lengths = self.headers.get_all("Content-Length", [])
        if not lengths or "Transfer-Encoding" in self.headers:
            raise Refused(411, "it has to say how long it is, in a Content-Length")
        text = str(lengths[0]).strip()
        if len(lengths) > 1 or not (text.isascii() and text.isdigit()) or len(text) > 18:
            raise Refused(400, "its Content-Length is no number")
        if int(text) > most_bytes:
            raise Refused(413, f"it is longer than {most_bytes} bytes")
        return int(text)

    def _refuse(self, whose: str, refused: Refused) -> None:
        reason = _told(refused.error) if isinstance(refused, NotStored) else refused.message
        self.server.tell(f"{whose}: refused with {refused.status}: {reason}")
        self._answer(
            HTTPStatus(refused.status), {"error": refused.message}, _RETRY_AFTER if refused.status == 503 else {}
        )

    def _answer(self, status: HTTPStatus, document: Mapping[str, Any], headers: Mapping[str, str] = {}) -> None:
        body = json.dumps(dict(document)).encode()
        self.close_connection = True
        self.connection.settimeout(self.server.limits.seconds)
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        if status >= 400:
            self._let_it_be_read()

    def _let_it_be_read(self) -> None:
        """Closing over what is unread resets the connection, and the answer with it."""
        with suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            rest = Timed(self.connection, Deadline.after(1)).makefile("rb")
            for _ in range(64):
                if not rest.read1(1 << 16):
                    break


def _told(error: AuditError) -> str:
    return error.what if error.where is None else f"{error.where}: {error.what}"
