"""How far one table is, counted where its chunks are: a hundred thousand take some hundredths of a second."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, func, select

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.held_rows import of_table
from hakiri_dagster.audit.recent_loads import RecentLoads, recent_loads
from hakiri_dagster.audit.schema import PIPELINE_CHUNKS

_C: Final = PIPELINE_CHUNKS.c
_IN_PLAN: Final = ("pending", "running", "done", "failed")


@dataclass(frozen=True, slots=True)
class TableProgress:
    """Of the newest plan. `recent`: the chunks that were published last."""

    done: int
    running: int
    pending: int
    failed: int
    recent: RecentLoads

    @property
    def left(self) -> int:
        return self.pending + self.running + self.failed

    @property
    def eta_seconds(self) -> int | None:
        return self.recent.eta_seconds(self.left)

    def after_publishing(self, chunks: int) -> TableProgress:
        """Of those that were running."""
        return replace(self, done=self.done + chunks, running=max(0, self.running - chunks))


class ProgressReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def __call__(self, pipeline_id: str, table: str) -> TableProgress:
        def work(connection: Connection) -> TableProgress:
            newest = select(func.max(_C.generation)).where(*of_table(pipeline_id, table)).scalar_subquery()
            planned = (*of_table(pipeline_id, table), _C.generation == newest, _C.status.in_(_IN_PLAN))
            counts = dict.fromkeys(_IN_PLAN, 0)
            counts |= {row.status: row.chunks for row in connection.execute(_counted(planned))}
            return TableProgress(**counts, recent=recent_loads(connection, planned))

        return self._transactions.read(work)


def _counted(planned: tuple[ColumnElement[bool], ...]) -> Select[Any]:
    return select(_C.status, func.count().label("chunks")).where(*planned).group_by(_C.status)
