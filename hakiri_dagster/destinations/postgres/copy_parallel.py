"""A candidate's blocks into one table through several connections at once. Each commits for itself, so the table must
be one that nobody reads yet."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from psycopg import sql

from hakiri_dagster.destinations.contract import Load
from hakiri_dagster.destinations.postgres import fence
from hakiri_dagster.destinations.postgres.connection import Connections
from hakiri_dagster.destinations.postgres.copy import Blocks, copy_blocks

_STREAMS = 2
"""What encodes the rows needs the other cores."""


def copy_in_parallel(connections: Connections, load: Load, blocks: Blocks, place: sql.Identifier) -> int:
    shared = _Shared(blocks.all())

    def feed() -> int:
        try:
            with connections.transaction(load.table.label) as connection:
                fence.name_attempt(connection, load)
                return copy_blocks(connection, place, load.columns, iter(shared))
        finally:
            shared.close()

    with ThreadPoolExecutor(_STREAMS, thread_name_prefix="copy") as pool:
        streams = [pool.submit(feed) for _ in range(_STREAMS)]
        fed = sum(stream.result() for stream in streams)
    return blocks.checked(fed)


class _Shared:
    """Each block goes to whoever asks first. Once one stream has ended, by the blocks' end or by an error, no other
    gets any more: what was not fed shows in the count."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._lock = threading.Lock()
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        while (block := self._next()) is not None:
            yield block

    def close(self) -> None:
        self._closed = True

    def _next(self) -> bytes | None:
        with self._lock:
            return None if self._closed else next(self._blocks, None)
