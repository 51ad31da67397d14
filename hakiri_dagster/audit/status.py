"""The seed's `pipeline.status` document, from the audit DB alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypedDict

from sqlalchemy import Connection, Row, func, select

from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.rate_budgets import BudgetOf, RateBudgetReader
from hakiri_dagster.audit.schema import PIPELINE_CHUNKS, REWIND
from hakiri_dagster.manifest.rates import Rate

_C: Final = PIPELINE_CHUNKS.c
_RECENT_CHUNKS: Final = 50
_IN_PLAN: Final = ("pending", "running", "done", "failed")

_ChunkRow = Row[*tuple[Any, ...]]

Phase = Literal["planning", "backfilling", "streaming"]


class ChunkNumbers(TypedDict):
    done: int
    running: int
    pending: int
    failed: int
    total: int


class Throughput(TypedDict):
    rows_per_sec: int
    bytes_per_sec: int


class OpenRewind(TypedDict):
    """One of which chunks are still to be loaded: `chunks` of them."""

    rewind: int
    table: str
    asked_from: str
    asked_to: str
    reason: str
    rewound_by: str
    rewound_at: str
    chunks: int


class StatusDocument(TypedDict):
    pipeline_id: str
    phase: Phase
    chunks: ChunkNumbers
    throughput: Throughput
    eta_seconds: int | None
    started_at: str | None
    rate_budget: str | None
    rate_budget_consumed_pct: int | None
    rewinds: list[OpenRewind]


class StatusReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._budgets = RateBudgetReader(transactions)

    def __call__(self, pipeline_id: str, rate_budget: Rate | None = None) -> StatusDocument:
        """Counts chunks of the newest plan of each table; an earlier plan's no longer say anything about progress."""
        newest = (
            select(_C.table_name, func.max(_C.generation).label("generation"))
            .where(_C.pipeline_id == pipeline_id)
            .group_by(_C.table_name)
            .subquery()
        )
        query = (
            select(
                _C.status, _C.started_at, _C.completed_at, _C.rows, _C.bytes, _C.winning_attempt, _C.rewind_id, _C.gap
            )
            .join(newest, (_C.table_name == newest.c.table_name) & (_C.generation == newest.c.generation))
            .where(_C.pipeline_id == pipeline_id, _C.status.in_(_IN_PLAN))
        )

        consumed = None if rate_budget is None else self._budgets.consumed_pct(BudgetOf(pipeline_id), rate_budget)

        def work(connection: Connection) -> StatusDocument:
            rows = connection.execute(query).all()
            return _document(pipeline_id, rows, rate_budget, consumed, _open_rewinds(connection, pipeline_id))

        return self._transactions.read(work)


def _open_rewinds(connection: Connection, pipeline_id: str) -> list[OpenRewind]:
    waiting = (
        select(_C.rewind_id, func.count().label("chunks"))
        .where(_C.pipeline_id == pipeline_id, _C.rewind_id.is_not(None), _C.status.in_(_IN_PLAN))
        .group_by(_C.rewind_id)
        .subquery()
    )
    query = select(REWIND, waiting.c.chunks).join(waiting, waiting.c.rewind_id == REWIND.c.rewind_id)
    return [
        OpenRewind(
            rewind=row.rewind_id,
            table=row.table_name,
            asked_from=row.asked_from,
            asked_to=row.asked_to,
            reason=row.reason,
            rewound_by=row.asked_by,
            rewound_at=_told(row.asked_at),
            chunks=row.chunks,
        )
        for row in connection.execute(query.order_by(REWIND.c.rewind_id))
    ]


def _document(
    pipeline_id: str,
    rows: Sequence[_ChunkRow],
    rate_budget: Rate | None,
    consumed_pct: int | None,
    rewinds: list[OpenRewind],
) -> StatusDocument:
    counts = {status: sum(row.status == status for row in rows) for status in _IN_PLAN}
    gaps = sum(row.status != "done" and _leaves_a_gap(row) for row in rows)
    recent = sorted(filter(_timed, rows), key=lambda row: row.completed_at)[-_RECENT_CHUNKS:]
    seconds = _span(recent).total_seconds()
    left = counts["pending"] + counts["running"] + counts["failed"]
    started: datetime | None = min((row.started_at for row in rows if row.started_at), default=None)
    return StatusDocument(
        pipeline_id=pipeline_id,
        phase="planning" if not rows else "backfilling" if gaps else "streaming",
        chunks=ChunkNumbers(
            done=counts["done"],
            running=counts["running"],
            pending=counts["pending"],
            failed=counts["failed"],
            total=len(rows),
        ),
        throughput=Throughput(
            rows_per_sec=_rate(sum(row.rows or 0 for row in recent), seconds),
            bytes_per_sec=_rate(sum(row.bytes or 0 for row in recent), seconds),
        ),
        eta_seconds=round(left * seconds / len(recent)) if recent else 0 if not left else None,
        started_at=_told(started) if started else None,
        rate_budget=None if rate_budget is None else str(rate_budget),
        rate_budget_consumed_pct=consumed_pct,
        rewinds=rewinds,
    )


def _leaves_a_gap(row: _ChunkRow) -> bool:
    """What is owed of it is more than what is new."""
    return row.winning_attempt is None or row.rewind_id is not None or bool(row.gap)


def _told(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _timed(row: _ChunkRow) -> bool:
    """One that was begun anew says nothing of how long a load takes."""
    return bool(row.completed_at) and (row.started_at is None or row.started_at <= row.completed_at)


def _span(recent: Sequence[_ChunkRow]) -> timedelta:
    if not recent:
        return timedelta()
    begun = min((row.started_at for row in recent if row.started_at), default=recent[0].completed_at)
    span: timedelta = recent[-1].completed_at - begun
    return span


def _rate(amount: int, seconds: float) -> int:
    return round(amount / seconds) if seconds > 0 else 0
