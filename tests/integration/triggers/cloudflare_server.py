"""Plays the queues of Cloudflare's API on loopback: pull, acknowledge, push."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread
from typing import Any

ACCOUNT = "a" * 32
QUEUE = "b" * 32
ASIDE = "c" * 32
TOKEN = "cf-token-of-some-length"

Trouble = tuple[int, dict[str, str], bytes]


@dataclass
class Kept:
    id: str
    body: str
    content_type: str
    leased_until: float = 0
    lease: str = ""
    attempts: int = 0


@dataclass
class Cloud:
    """`troubles` are answered first, one a request."""

    port: int = 0
    queues: dict[str, list[Kept]] = field(default_factory=lambda: {QUEUE: [], ASIDE: []})
    troubles: list[Trouble] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    _ids: Iterator[int] = field(default_factory=count)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/client/v4"

    def send(self, *bodies: Any, content_type: str = "json") -> None:
        for body in bodies:
            self.queues[QUEUE].append(Kept(f"m{next(self._ids)}", _encoded(body, content_type), content_type))

    def pull(self, queue: str, asked: dict[str, Any]) -> dict[str, Any]:
        now = time.monotonic()
        free = [kept for kept in self.queues[queue] if kept.leased_until <= now][: asked["batch_size"]]
        for kept in free:
            kept.leased_until = now + asked["visibility_timeout_ms"] / 1000
            kept.lease = f"lease-{next(self._ids)}"
            kept.attempts += 1
        return {"message_backlog_count": len(self.queues[queue]), "messages": [_shown(kept) for kept in free]}

    def ack(self, queue: str, asked: dict[str, Any]) -> dict[str, Any]:
        leases = {one["lease_id"] for one in asked["acks"]}
        before = len(self.queues[queue])
        self.queues[queue] = [kept for kept in self.queues[queue] if kept.lease not in leases]
        return {"ackCount": before - len(self.queues[queue]), "retryCount": 0, "warnings": {}}

    def push(self, queue: str, asked: dict[str, Any]) -> dict[str, Any]:
        self.queues[queue].append(Kept(f"m{next(self._ids)}", asked["body"], asked["content_type"]))
        return {}


def _encoded(body: Any, content_type: str) -> str:
    match content_type:
        case "text":
            return str(body)
        case "bytes":
            return base64.b64encode(body).decode()
        case _:
            return base64.b64encode(json.dumps(body).encode()).decode()


def _shown(kept: Kept) -> dict[str, Any]:
    return {
        "id": kept.id,
        "body": kept.body,
        "lease_id": kept.lease,
        "attempts": kept.attempts,
        "timestamp_ms": 1_689_615_013_586,
        "metadata": {"CF-sourceMessageSource": "dash", "CF-Content-Type": kept.content_type},
    }


@contextmanager
def cloud() -> Iterator[Cloud]:
    made = Cloud()

    class Request(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.asked.append(self.path)
            self._answer(*(made.troubles.pop(0) if made.troubles else self._judged(body)))

        def _judged(self, body: bytes) -> Trouble:
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                return _failure(401, 10000)
            _, account, rest = self.path.partition(f"/client/v4/accounts/{ACCOUNT}/queues/")
            queue, _, action = rest.partition("/")
            actions: dict[str, Callable[..., Any]] = {
                "messages/pull": made.pull,
                "messages/ack": made.ack,
                "messages": made.push,
            }
            if not account or queue not in made.queues or action not in actions:
                return _failure(404, 11000)
            result = actions[action](queue, json.loads(body))
            return 200, {}, json.dumps({"success": True, "errors": [], "messages": [], "result": result}).encode()

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Request) as server:
        made.port = server.server_port
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield made
        server.shutdown()
        thread.join()


def _failure(status: int, code: int) -> Trouble:
    errors = [{"code": code, "message": f"who sent {TOKEN}?"}]
    return status, {}, json.dumps({"success": False, "errors": errors, "messages": [], "result": None}).encode()
