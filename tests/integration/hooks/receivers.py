"""Receivers of webhooks on this machine, each with an answer of its own."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler


@dataclass(frozen=True)
class Received:
    path: str
    headers: Message
    body: bytes


@dataclass
class Receiver:
    """`name` is what its URL calls it; `over` is set when the test has ended."""

    port: int
    scheme: str
    name: str
    received: list[Received] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/hook") -> str:
        return f"{self.scheme}://{self.name}:{self.port}{path}"


Respond = Callable[["Asked"], None]


class Asked(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    receiver: Receiver
    respond: Respond

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.receiver.received.append(Received(self.path, self.headers, body))
        type(self).respond(self)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """That a client hangs up is what many of these tests are about."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def answer(status: int, *headers: str, body: bytes = b"") -> Respond:
    def respond(asked: Asked) -> None:
        lines = (f"HTTP/1.1 {status} So", *headers, f"Content-Length: {len(body)}", "", "")
        asked.wfile.write("\r\n".join(lines).encode("latin-1") + body)

    return respond


@contextmanager
def receiving(
    respond: Respond, *, name: str = "127.0.0.1", address: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> Iterator[Receiver]:
    handler = type("Asked", (Asked,), {"respond": staticmethod(respond)})
    with (_Server6 if ":" in address else _Server)((address, 0), handler) as server:
        if tls is not None:
            # The handshake is made by the thread that serves the connection, at its first read.
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        receiver = Receiver(server.server_address[1], "http" if tls is None else "https", name)
        handler.receiver = receiver  # type: ignore[attr-defined]  # made by type()
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            receiver.over.set()
            server.shutdown()
            thread.join()
