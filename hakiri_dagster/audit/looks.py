"""`source_look`: what sensors remember of sources, so that a tick with nothing to do asks nobody but the audit DB."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, or_, select, update

from hakiri_dagster.audit.chunk_rows import WAS_KILLED
from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import PIPELINE_CHUNKS, SOURCE_LOOK
from hakiri_dagster.audit.upserts import upsert
from hakiri_dagster.planning.looks import OF_TABLE, Look

_C: Final = SOURCE_LOOK.c
_CHUNK: Final = PIPELINE_CHUNKS.c


@dataclass(frozen=True, slots=True)
class Looks:
    """`now` is the audit DB's own clock."""

    now: datetime
    known: Mapping[OF_TABLE, Look]
    pending: frozenset[OF_TABLE]
    """Tables with chunks that wait for somebody to load them, also after they were killed, of the pipelines that were
    asked for."""


class LookStore:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def all(self, pending_of: Collection[str] = ()) -> Looks:
        def work(connection: Connection) -> Looks:
            rows = connection.execute(select(SOURCE_LOOK)).all()
            known = {
                (row.pipeline_id, row.table_name): Look(
                    row.looked_at, row.surveyed_at, row.said, row.shown, row.failures
                )
                for row in rows
            }
            return Looks(self._transactions.now(connection), known, _pending(connection, pending_of))

        return self._transactions.read(work)

    def begin(self, table: OF_TABLE) -> None:
        """Counts as a failure until its end is told: of a look that never ends nobody could tell any more."""

        def work(connection: Connection) -> None:
            now = self._transactions.now(connection)
            row = _of(table) | {"looked_at": now, "shown": 0, "failures": 1}
            upsert(connection, SOURCE_LOOK, [row], also=lambda _: {"shown": _C.shown, "failures": _C.failures + 1})

        self._transactions.write(work, kept="perhaps")

    def end(self, table: OF_TABLE, *, said: str | None, shown: int, surveyed: bool) -> None:
        def work(connection: Connection) -> None:
            at = {"surveyed_at": self._transactions.now(connection)} if surveyed else {}
            values: dict[str, Any] = {"said": said, "shown": shown, "failures": 0, **at}
            mine = (_C.pipeline_id == table[0], _C.table_name == table[1])
            connection.execute(update(SOURCE_LOOK).where(*mine).values(values))

        self._transactions.write(work, kept="perhaps")


def _pending(connection: Connection, pipelines: Collection[str]) -> frozenset[OF_TABLE]:
    if not pipelines:
        return frozenset()
    query = (
        select(_CHUNK.pipeline_id, _CHUNK.table_name)
        .where(_CHUNK.pipeline_id.in_(pipelines), or_(_CHUNK.status == "pending", WAS_KILLED))
        .distinct()
    )
    return frozenset((pipeline_id, table) for pipeline_id, table in connection.execute(query))


def _of(table: OF_TABLE) -> dict[str, Any]:
    return {"pipeline_id": table[0], "table_name": table[1]}
