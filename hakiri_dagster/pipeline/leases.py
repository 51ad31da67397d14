"""Leases on chunks while they are worked on: taken in one go, kept alive by a heartbeat, given back at the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hakiri_dagster.audit.chunks import ChunkStore, Claim


@contextmanager
def kept_alive(store: ChunkStore, claims: Sequence[Claim], ttl_seconds: int) -> Iterator[None]:
    """Renews the leases until the block ends. A lease that was lost shows at publish, by the fence."""
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(ttl_seconds / 3):
            store.heartbeat(claims, ttl_seconds)

    thread = threading.Thread(target=renew, name="lease-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=5)
