"""How far one table is, counted where its chunks are: a hundred thousand take some hundredths of a second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, func, or_, select

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.held_rows import of_table
from hakiri_dagster.audit.schema import PIPELINE_CHUNKS

_C: Final = PIPELINE_CHUNKS.c
_RECENT_CHUNKS: Final = 50
_IN_PLAN: Final = ("pending", "running", "done", "failed")


@dataclass(frozen=True, slots=True)
class TableProgress:
    """Of the newest plan. `seconds_a_chunk` and the rates are those of the chunks that were published last."""

    done: int
    running: int
    pending: int
    failed: int
    rows_per_sec: int
    bytes_per_sec: int
    seconds_a_chunk: float | None

    @property
    def left(self) -> int:
        return self.pending + self.running + self.failed

    @property
    def eta_seconds(self) -> int | None:
        if self.seconds_a_chunk is None:
            return None if self.left else 0
        return round(self.left * self.seconds_a_chunk)

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
            return _progress(counts, connection.execute(_recent(planned)).all())

        return self._transactions.read(work)


def _counted(planned: tuple[ColumnElement[bool], ...]) -> Select[Any]:
    return select(_C.status, func.count().label("chunks")).where(*planned).group_by(_C.status)


def _recent(planned: tuple[ColumnElement[bool], ...]) -> Select[Any]:
    """Newest first. One that was begun anew says nothing of how long a load takes."""
    timed = or_(_C.started_at.is_(None), _C.started_at <= _C.completed_at)
    columns = (_C.started_at, _C.completed_at, _C.rows, _C.bytes)
    query = select(*columns).where(*planned, _C.completed_at.is_not(None), timed)
    return query.order_by(_C.completed_at.desc()).limit(_RECENT_CHUNKS)


def _progress(counts: dict[str, int], recent: Sequence[Row[Any]]) -> TableProgress:
    seconds = 0.0
    if recent:
        began = min((row.started_at for row in recent if row.started_at), default=recent[0].completed_at)
        seconds = (recent[0].completed_at - began).total_seconds()
    return TableProgress(
        done=counts["done"],
        running=counts["running"],
        pending=counts["pending"],
        failed=counts["failed"],
        rows_per_sec=_rate(sum(row.rows or 0 for row in recent), seconds),
        bytes_per_sec=_rate(sum(row.bytes or 0 for row in recent), seconds),
        seconds_a_chunk=seconds / len(recent) if recent else None,
    )


def _rate(amount: int, seconds: float) -> int:
    return round(amount / seconds) if seconds > 0 else 0
