"""The seed's `pipeline.status` document, from the audit DB alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypedDict

from sqlalchemy import Connection, Row, Subquery, func, select

from hakiri_dagster.audit.chunk_rows import from_row, number_from_text
from hakiri_dagster.audit.claiming import HolderIsDead
from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.rate_budgets import BudgetOf, RateBudgetReader
from hakiri_dagster.audit.schema import PIPELINE_CHUNKS, PIPELINE_RUN, REWIND, TABLE_STATE
from hakiri_dagster.manifest.rates import Rate
from hakiri_dagster.planning.generations import parse_plan_text
from hakiri_dagster.planning.phases import Owed, Phase, Sla, Standing, pipeline_phase, table_phase

_C: Final = PIPELINE_CHUNKS.c
_RECENT_CHUNKS: Final = 50
_OWED: Final = ("pending", "running", "failed")
_IN_PLAN: Final = ("done", *_OWED)

_SHOWN: Final = (
    "table_name", "chunk_id", "status", "started_at", "completed_at", "rows", "bytes", "holder_node", "leased_until",
)  # fmt: skip

_ChunkRow = Row[*tuple[Any, ...]]


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


class TableError(TypedDict):
    """Why the last run of a table failed, or could not begin."""

    table: str
    at: str
    error: str


class StatusDocument(TypedDict):
    pipeline_id: str
    phase: Phase
    chunks: ChunkNumbers
    throughput: Throughput
    eta_seconds: int | None
    behind_seconds: int | None
    started_at: str | None
    rate_budget: str | None
    rate_budget_consumed_pct: int | None
    rewinds: list[OpenRewind]
    errors: list[TableError]


class StatusReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._budgets = RateBudgetReader(transactions)

    def __call__(
        self,
        pipeline_id: str,
        rate_budget: Rate | None = None,
        slas: Mapping[str, Sla | None] | None = None,
        *,
        holder_is_dead: HolderIsDead = lambda _: None,
    ) -> StatusDocument:
        """Counts chunks of the newest plan of each table; an earlier plan's no longer say anything about progress.
        `slas` are by table."""
        newest = (
            select(_C.table_name, func.max(_C.generation).label("generation"))
            .where(_C.pipeline_id == pipeline_id)
            .group_by(_C.table_name)
            .subquery()
        )
        query = (
            select(*(_C[name] for name in _SHOWN))
            .join(newest, (_C.table_name == newest.c.table_name) & (_C.generation == newest.c.generation))
            .where(_C.pipeline_id == pipeline_id, _C.status.in_(_IN_PLAN))
        )

        consumed = None if rate_budget is None else self._budgets.consumed_pct(BudgetOf(pipeline_id), rate_budget)

        def work(connection: Connection) -> StatusDocument:
            rows = connection.execute(query).all()
            standings = _standings(connection, pipeline_id, rows, newest)
            rewinds = _open_rewinds(connection, pipeline_id)
            errors = _open_errors(connection, pipeline_id, {row.table_name for row in rows if row.status == "failed"})
            counts = _counts(rows, self._transactions.now(connection), holder_is_dead)
            return _document(pipeline_id, rows, counts, rate_budget, consumed, rewinds, errors, standings, slas or {})

        return self._transactions.read(work)


def _counts(rows: Sequence[_ChunkRow], now: datetime, holder_is_dead: HolderIsDead) -> ChunkNumbers:
    """What a process that is dead has left behind waits for whoever comes next."""
    held = [row for row in rows if row.status == "running"]
    dead = {holder for holder in {row.holder_node for row in held} if holder and holder_is_dead(holder) is True}
    abandoned = sum(row.holder_node in dead or not row.leased_until or row.leased_until <= now for row in held)
    counts = Counter(row.status for row in rows)
    return ChunkNumbers(
        done=counts["done"],
        running=counts["running"] - abandoned,
        pending=counts["pending"] + abandoned,
        failed=counts["failed"],
        total=len(rows),
    )


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


def _open_errors(connection: Connection, pipeline_id: str, failed: Collection[str]) -> list[TableError]:
    """A later look that went well has settled an error, unless chunks of the table are still `failed`."""
    run = PIPELINE_RUN.c
    newest = (
        select(run.table_name, func.max(run.started_at).label("started_at"))
        .where(run.pipeline_id == pipeline_id)
        .group_by(run.table_name)
        .subquery()
    )
    query = (
        select(run.table_name, run.started_at, run.ended_at, run.error_msg, TABLE_STATE.c.planned_at)
        .join(newest, (run.table_name == newest.c.table_name) & (run.started_at == newest.c.started_at))
        .outerjoin(
            TABLE_STATE,
            (TABLE_STATE.c.pipeline_id == run.pipeline_id) & (TABLE_STATE.c.table_name == run.table_name),
        )
        .where(run.pipeline_id == pipeline_id, run.status.in_(("failed", "partial")))
        .order_by(run.table_name)
    )
    told = [(row, row.ended_at or row.started_at) for row in connection.execute(query)]
    return [
        TableError(table=row.table_name, at=_told(at), error=row.error_msg or "")
        for row, at in told
        if row.table_name in failed or row.planned_at is None or row.planned_at <= at
    ]


def _standings(
    connection: Connection, pipeline_id: str, rows: Sequence[_ChunkRow], newest: Subquery
) -> dict[str, Standing]:
    """By table, as it was last looked at."""
    owed_rows = (
        select(PIPELINE_CHUNKS)
        .join(newest, (_C.table_name == newest.c.table_name) & (_C.generation == newest.c.generation))
        .where(_C.pipeline_id == pipeline_id, _C.status.in_(_OWED))
    )
    owed: dict[str, list[Owed]] = {}
    for row in connection.execute(owed_rows):
        owed.setdefault(row.table_name, []).append(Owed.of(from_row(row)))
    looks = connection.execute(select(TABLE_STATE).where(TABLE_STATE.c.pipeline_id == pipeline_id)).all()
    known = {look.table_name: look for look in looks}
    chunks = Counter(row.table_name for row in rows)
    return {table: _standing(count, owed.get(table, []), known.get(table)) for table, count in chunks.items()}


def _standing(chunks: int, owed: Sequence[Owed], look: Row[Any] | None) -> Standing:
    if look is None:
        return Standing(chunks, owed)
    planned = parse_plan_text(look.plan)
    kind = None if planned is None else planned[0]
    return Standing(chunks, owed, kind, number_from_text(look.source_upper), look.planned_at)


def _document(
    pipeline_id: str,
    rows: Sequence[_ChunkRow],
    counts: ChunkNumbers,
    rate_budget: Rate | None,
    consumed_pct: int | None,
    rewinds: list[OpenRewind],
    errors: list[TableError],
    standings: Mapping[str, Standing],
    slas: Mapping[str, Sla | None],
) -> StatusDocument:
    recent = sorted(filter(_timed, rows), key=lambda row: row.completed_at)[-_RECENT_CHUNKS:]
    seconds = _span(recent).total_seconds()
    left = counts["pending"] + counts["running"] + counts["failed"]
    started: datetime | None = min((row.started_at for row in rows if row.started_at), default=None)
    return StatusDocument(
        pipeline_id=pipeline_id,
        phase=pipeline_phase(table_phase(standing, slas.get(table)) for table, standing in standings.items()),
        chunks=counts,
        throughput=Throughput(
            rows_per_sec=_rate(sum(row.rows or 0 for row in recent), seconds),
            bytes_per_sec=_rate(sum(row.bytes or 0 for row in recent), seconds),
        ),
        eta_seconds=round(left * seconds / len(recent)) if recent else 0 if not left else None,
        behind_seconds=_farthest_behind(standings.values()),
        started_at=_told(started) if started else None,
        rate_budget=None if rate_budget is None else str(rate_budget),
        rate_budget_consumed_pct=consumed_pct,
        rewinds=rewinds,
        errors=errors,
    )


def _farthest_behind(standings: Iterable[Standing]) -> int | None:
    told = [behind for standing in standings if (behind := standing.behind) is not None]
    return round(max(told).total_seconds()) if told else None


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
