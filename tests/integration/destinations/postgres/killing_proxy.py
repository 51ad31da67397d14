"""Stands between a worker and PostgreSQL, and kills the worker at a statement of its choice."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_BEFORE_STARTUP = (80877103, 80877104)  # may we speak TLS, may we speak GSS
_QUERY, _PARSE, _COPY_DATA, _COPY_DONE = b"Q", b"P", b"d", b"c"
_PASSES = re.compile(rb"[\s\0]*(BEGIN|ROLLBACK|SAVEPOINT|RELEASE|SET|RESET|SELECT|SHOW|WITH)\b", re.I)
_YET_DOES = re.compile(
    rb"\b(INSERT|UPDATE|DELETE|MERGE|setval|nextval|pg_terminate_backend|brin_\w+|pg_advisory_\w+)\b", re.I
)


@dataclass
class KillingProxy:
    """Passes everything on. Statement number `at`, of all connections together, still reaches the server; its answer
    reaches nobody. The beginning and the end of a COPY's rows count as statements too. What only reads, or sets the
    session, does not count: it leaves all as the statement before it did."""

    url: str
    at: int
    killed_at: str | None = None
    statements: int = 0
    _victim: int | None = None
    _known: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _listener: socket.socket = field(init=False)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @property
    def proxied_url(self) -> str:
        return make_conninfo(self.url, host="127.0.0.1", port=str(self._listener.getsockname()[1]))

    def kill(self, pid: int) -> None:
        """Says who is to be killed. Until then, statements wait."""
        self._victim = pid
        self._known.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                parts = conninfo_to_dict(self.url)
                server = socket.create_connection((str(parts["host"]), int(str(parts["port"]))))
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                unheard = threading.Event()
                threading.Thread(target=self._forward, args=[client, server, unheard], daemon=True).start()
                threading.Thread(target=_answer, args=[server, client, unheard], daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket, unheard: threading.Event) -> None:
        copying = False
        with suppress(OSError):
            for kind, message in _messages(client):
                begins = kind == _COPY_DATA and not copying
                copying = kind == _COPY_DATA
                counts = kind == _COPY_DONE or begins or (kind in (_QUERY, _PARSE) and _changes(message[5:]))
                if counts and self._is_the_one():
                    unheard.set()
                    server.sendall(message)
                    self._kill_at(message)
                else:
                    server.sendall(message)
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # closing alone would wait for the thread that still reads

    def _is_the_one(self) -> bool:
        self._known.wait()
        with self._lock:
            self.statements += 1
            return self.statements == self.at

    def _kill_at(self, message: bytes) -> None:
        assert self._victim is not None
        self.killed_at = message[5:300].decode(errors="replace")  # first: whoever awaits its end asks for it at once
        os.kill(self._victim, signal.SIGKILL)


def _changes(statement: bytes) -> bool:
    return not _PASSES.match(statement) or _YET_DOES.search(statement) is not None


def _messages(client: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    started = False
    while True:
        kind = _exactly(client, 1) if started else b""
        length = _exactly(client, 4)
        body = _exactly(client, struct.unpack("!I", length)[0] - 4)
        if not started:
            started = struct.unpack("!I", body[:4])[0] not in _BEFORE_STARTUP
        yield kind, kind + length + body


def _exactly(client: socket.socket, size: int) -> bytes:
    pieces = []
    while size:
        piece = client.recv(size)
        if not piece:
            raise ConnectionError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _answer(server: socket.socket, client: socket.socket, unheard: threading.Event) -> None:
    with suppress(OSError):
        while piece := server.recv(1 << 16):
            if not unheard.is_set():
                client.sendall(piece)
    server.close()
    client.close()
