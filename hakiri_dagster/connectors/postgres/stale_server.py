"""Behind one address there may be several servers, each of which has come another way with the log of the primary.

What was planned by one must not be read from another that knows less: its rows would be taken for complete.
"""

from __future__ import annotations

from typing import Final

from psycopg import Connection, sql
from psycopg.rows import TupleRow

from hakiri_dagster.errors import SourceUnavailable
from hakiri_dagster.planning.horizon import CursorHistory, SourceTransactions

_REACHED: Final = sql.SQL(
    "SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn() "
    "ELSE pg_catalog.pg_current_wal_insert_lsn() END >= {}::pg_lsn"
)

_ONE_SERVER: Final = "it is tried again; let the source's URL lead to one server only if this persists"


def reached(wal: str) -> str:
    """The query whether a server has come as far with its log. It has to be run before the snapshot is taken."""
    return _REACHED.format(sql.Literal(wal)).as_string()


def refuse_stale_survey(history: CursorHistory, now: SourceTransactions, where: str) -> None:
    """A replica that has come less far than the server of an earlier survey would show rows that were published as
    gone. A cluster that was built anew begins its log anew, but not its clock."""
    if not now.is_replica or now.wal is None or history.wal is None or history.wal_clock is None:
        return
    if history.place == now.place and _position(now.wal) < _position(history.wal) and now.clock < history.wal_clock:
        raise SourceUnavailable(
            "the server that answers now has replayed less of the log than the one that was looked at before",
            where=where,
            hint=_ONE_SERVER,
        )


def _position(wal: str) -> int:
    """In bytes. The server writes it as two hexadecimal numbers."""
    high, _, low = wal.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def refuse_stale_server(connection: Connection[TupleRow], wal: str, where: str) -> None:
    row = connection.execute(reached(wal).encode()).fetchone()
    connection.rollback()
    if row != (True,):
        raise stale_server(where)


def stale_server(where: str | None = None) -> SourceUnavailable:
    return SourceUnavailable(
        "the server that answers now has replayed less of the log than the one that the load was planned by",
        where=where,
        hint=_ONE_SERVER,
    )
