"""A candidate's blocks into one table through several connections at once. Each commits for itself, so the table must
be one that nobody reads yet, and that this attempt made: a later one makes another of the same name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from psycopg import sql

from hakiri_dagster.destinations.contract import Load
from hakiri_dagster.destinations.postgres import fence
from hakiri_dagster.destinations.postgres.connection import Connection, Connections
from hakiri_dagster.destinations.postgres.copy import Blocks, copy_blocks
from hakiri_dagster.destinations.postgres.row_errors import rows_at_stake
from hakiri_dagster.errors import DestinationUnavailable

_STREAMS = 2
"""What encodes the rows needs the other cores."""

_FLUSHES_WHEN_ASKED = 150000


def copy_in_parallel(connections: Connections, load: Load, blocks: Blocks, place: sql.Identifier, made: int) -> int:
    if blocks.refused is not None:
        with connections.transaction(load.table.label) as connection:
            fence.name_attempt(connection, load)
            _hold(connection, load, place, made)
            blocks.judge(connection, place, load.columns)
    shared = _Shared(blocks.all())

    def feed() -> int:
        try:
            with connections.transaction(load.table.label) as connection:
                fence.name_attempt(connection, load)
                _hold(connection, load, place, made)
                with rows_at_stake(place.as_string(connection)):
                    copied = copy_blocks(connection, place, load.columns, iter(shared))
                _tell_statistics(connection)
                return copied
        finally:
            shared.close()

    with ThreadPoolExecutor(_STREAMS, thread_name_prefix="copy") as pool:
        streams = [pool.submit(feed) for _ in range(_STREAMS)]
        fed = sum(stream.result() for stream in streams)
    return blocks.checked(fed)


def _hold(connection: Connection, load: Load, place: sql.Identifier, made: int) -> None:
    """Whoever took the chunk over ends the attempts that it sees, and one that opens its connection later sees it. Once
    locked, the name goes on meaning this table."""
    fence.check_fence(connection, load, lock=False)
    connection.execute(sql.SQL("LOCK TABLE {} IN ROW EXCLUSIVE MODE").format(place))
    fence.check_fence(connection, load, lock=False)
    now = connection.execute("SELECT to_regclass(%s)::oid::bigint", (place.as_string(connection),)).fetchone()
    if now != (made,):
        raise DestinationUnavailable(
            f"{place.as_string(connection)}, which was made for the rows, was replaced by another table",
            where=load.table.label,
            hint="the load is tried again",
        )


def _tell_statistics(connection: Connection) -> None:
    """With the commit. Told later, the rows would be counted once more than the ANALYZE that comes first has found."""
    if connection.info.server_version >= _FLUSHES_WHEN_ASKED:
        connection.execute("SELECT pg_stat_force_next_flush()")


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
