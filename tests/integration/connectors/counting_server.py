"""A source on loopback that notes when each request arrives, by a clock of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread


@dataclass
class CountingServer:
    arrivals: list[float] = field(default_factory=list)
    port: int = 0

    def most_in_a_window(self, seconds: float) -> int:
        times, first, most = sorted(self.arrivals), 0, 0
        for last, moment in enumerate(times):
            while moment - times[first] > seconds:
                first += 1
            most = max(most, last - first + 1)
        return most


@contextmanager
def counting_server(*, drops_each: int = 0, slow: bool = False) -> Iterator[CountingServer]:
    """`drops_each`: of so many requests one gets no answer. `slow`: it takes its time with some."""
    counted, numbers, rng = CountingServer(), count(1), random.Random(7)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            counted.arrivals.append(time.monotonic())
            if slow:
                time.sleep(rng.choice((0, 0, 0.05, 0.2)))
            if drops_each and next(numbers) % drops_each == 0:
                self.close_connection = True
                return
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_request(self, *_: object) -> None: ...

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that was killed."""

    with Server(("127.0.0.1", 0), Handler) as server:
        counted.port = server.server_address[1]
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield counted
        finally:
            server.shutdown()
            thread.join()
