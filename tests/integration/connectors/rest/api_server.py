"""An API on this machine: a real HTTP server, whose answers a test writes."""

from __future__ import annotations

import json
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    path: str
    params: dict[str, str]
    headers: Message
    connection: int
    """Which of the connections it came over."""


@dataclass(frozen=True)
class Said:
    """`cut`: how many bytes of the body are sent before the connection is closed."""

    body: bytes = b""
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    cut: int | None = None
    stream: Iterator[bytes] | None = None
    """Sent behind the body, piece by piece as they are taken, and of no length that is told."""
    without_length: bool = False
    """The body ends where the connection does."""
    hangs_up: bool = False
    """Nothing is answered at all."""
    closes: bool = False
    """The connection is closed behind it, and nobody said so."""


def said(value: Any, status: int = 200, **headers: str) -> Said:
    pairs = [("Content-Type", "application/json"), *((name.replace("_", "-"), text) for name, text in headers.items())]
    return Said(json.dumps(value).encode(), status, pairs)


Answer = Callable[[Asked], Said]


@dataclass
class ApiServer:
    port: int
    scheme: str = "http"
    asked: list[Asked] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    """Set when the test has ended."""
    connections: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def params(self, name: str) -> list[str | None]:
        return [asked.params.get(name) for asked in self.asked]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    api: ApiServer
    answer: Answer

    def setup(self) -> None:
        super().setup()
        with self.api.lock:
            self.api.connections += 1
            self._connection = self.api.connections

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = Asked(parts.path, dict(parse_qsl(parts.query, keep_blank_values=True)), self.headers, self._connection)
        with self.api.lock:
            self.api.asked.append(asked)
        self._send(type(self).answer(asked))

    def _send(self, answer: Said) -> None:
        if answer.hangs_up:
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        if "Date" not in dict(answer.headers):
            self.send_header("Date", self.date_time_string())
        for name, value in answer.headers:
            self.send_header(name, value)
        if answer.without_length or answer.stream is not None:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body if answer.cut is None else answer.body[: answer.cut])
        for piece in answer.stream or ():
            self.wfile.write(piece)
        if answer.cut is not None or answer.without_length or answer.stream is not None or answer.closes:
            self.close_connection = True

    def log_message(self, *_: object) -> None: ...


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, *_: object) -> None:
        """That a client hangs up is what some of these tests are about."""


@contextmanager
def serving(answer: Answer, *, tls: ssl.SSLContext | None = None) -> Iterator[ApiServer]:
    handler = type("Handler", (_Handler,), {"answer": staticmethod(answer)})
    with _Server(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        api = ApiServer(server.server_address[1], "http" if tls is None else "https")
        handler.api = api  # type: ignore[attr-defined]  # made by type()
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield api
        finally:
            api.over.set()
            server.shutdown()
            thread.join()


def in_turn(*answers: Said) -> Answer:
    """One after the other; the last for all that follow."""
    left = list(answers)

    def answer(_asked: Asked) -> Said:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer
