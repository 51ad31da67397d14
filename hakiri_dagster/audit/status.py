"""The seed's `pipeline.status` document, from the audit DB alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypedDict

from sqlalchemy import Connection, and_, exists, func, not_, select

from hakiri_dagster.audit.claiming import HolderIsDead
from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.rate_budgets import BudgetOf, RateBudgetReader
from hakiri_dagster.audit.recent_loads import recent_loads
from hakiri_dagster.audit.schema import PIPELINE_CHUNKS, PIPELINE_RENAME, PIPELINE_RUN, REWIND, TABLE_STATE, UtcTime
from hakiri_dagster.audit.standings import IN_PLAN, in_newest_plan, standings
from hakiri_dagster.manifest.rates import Rate
from hakiri_dagster.planning.phases import Phase, Sla, Standing, pipeline_phase, table_phase
from hakiri_dagster.planning.publishers import RENAME_COMMAND

_MOST_FAILED_CHUNKS: Final = 100
"""Of a pipeline; `chunks` counts all of them."""

_C: Final = PIPELINE_CHUNKS.c


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


class FailedChunk(TypedDict):
    """Why the last try of a chunk failed."""

    table: str
    chunk: str
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
    failed_chunks: list[FailedChunk]


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
        consumed = None if rate_budget is None else self._budgets.consumed_pct(BudgetOf(pipeline_id), rate_budget)

        def work(connection: Connection) -> StatusDocument:
            now = self._transactions.now(connection)
            counted = _counted(connection, pipeline_id)
            chunks = _numbers(connection, pipeline_id, counted, now, holder_is_dead)
            recent = recent_loads(connection, in_newest_plan(pipeline_id))
            found = standings(connection, pipeline_id, _by_table(counted))
            phases = (table_phase(standing, (slas or {}).get(table)) for table, standing in found.items())
            return StatusDocument(
                pipeline_id=pipeline_id,
                phase=pipeline_phase(phases),
                chunks=chunks,
                throughput=Throughput(rows_per_sec=recent.rows_per_sec, bytes_per_sec=recent.bytes_per_sec),
                eta_seconds=recent.eta_seconds(chunks["pending"] + chunks["running"] + chunks["failed"]),
                behind_seconds=_farthest_behind(found.values()),
                started_at=_begun(counted.values()),
                rate_budget=None if rate_budget is None else str(rate_budget),
                rate_budget_consumed_pct=consumed,
                rewinds=_open_rewinds(connection, pipeline_id),
                failed_chunks=_failed_chunks(connection, pipeline_id),
                errors=_open_errors(
                    connection, pipeline_id, {table for table, status in counted if status == "failed"}
                ),
            )

        return self._transactions.read(work)


@dataclass(frozen=True, slots=True)
class _Group:
    chunks: int
    started_at: datetime | None
    """When the first of them was claimed."""


_Counted = Mapping[tuple[str, str], _Group]
"""By table and status."""


def _counted(connection: Connection, pipeline_id: str) -> _Counted:
    query = (
        select(
            _C.table_name,
            _C.status,
            func.count().label("chunks"),
            func.min(_C.started_at, type_=UtcTime()).label("started_at"),
        )
        .where(*in_newest_plan(pipeline_id))
        .group_by(_C.table_name, _C.status)
    )
    return {(row.table_name, row.status): _Group(row.chunks, row.started_at) for row in connection.execute(query)}


def _by_table(counted: _Counted) -> Counter[str]:
    chunks: Counter[str] = Counter()
    for (table, _), group in counted.items():
        chunks[table] += group.chunks
    return chunks


def _numbers(
    connection: Connection, pipeline_id: str, counted: _Counted, now: datetime, holder_is_dead: HolderIsDead
) -> ChunkNumbers:
    """What a process that is dead has left behind waits for whoever comes next."""
    held = (
        select(_C.holder_node, _C.leased_until, func.count().label("chunks"))
        .where(*in_newest_plan(pipeline_id), _C.status == "running")
        .group_by(_C.holder_node, _C.leased_until)
    )
    rows = connection.execute(held).all()
    dead = {holder for holder in {row.holder_node for row in rows} if holder and holder_is_dead(holder) is True}
    gone = [row for row in rows if row.holder_node in dead or not row.leased_until or row.leased_until <= now]
    abandoned = sum(row.chunks for row in gone)
    counts: Counter[str] = Counter()
    for (_, status), group in counted.items():
        counts[status] += group.chunks
    return ChunkNumbers(
        done=counts["done"],
        running=counts["running"] - abandoned,
        pending=counts["pending"] + abandoned,
        failed=counts["failed"],
        total=counts.total(),
    )


def _begun(groups: Iterable[_Group]) -> str | None:
    started = [group.started_at for group in groups if group.started_at is not None]
    return _told(min(started)) if started else None


def _open_rewinds(connection: Connection, pipeline_id: str) -> list[OpenRewind]:
    waiting = (
        select(_C.rewind_id, func.count().label("chunks"))
        .where(_C.pipeline_id == pipeline_id, _C.rewind_id.is_not(None), _C.status.in_(IN_PLAN))
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
    """A later look that went well has settled an error, unless chunks of the table are still `failed`. A refusal
    that a rename was to mend is settled by the rename."""
    run = PIPELINE_RUN.c
    newest = (
        select(run.table_name, func.max(run.started_at).label("started_at"))
        .where(run.pipeline_id == pipeline_id)
        .group_by(run.table_name)
        .subquery()
    )
    rename = PIPELINE_RENAME.c
    mended = and_(
        func.coalesce(run.error_msg, "").contains(RENAME_COMMAND),
        exists().where(
            rename.new_pipeline == run.pipeline_id,
            rename.new_table.in_(("", run.table_name)),
            rename.finished_at >= func.coalesce(run.ended_at, run.started_at),
        ),
    )
    query = (
        select(run.table_name, run.started_at, run.ended_at, run.error_msg, TABLE_STATE.c.planned_at)
        .join(newest, (run.table_name == newest.c.table_name) & (run.started_at == newest.c.started_at))
        .outerjoin(
            TABLE_STATE,
            (TABLE_STATE.c.pipeline_id == run.pipeline_id) & (TABLE_STATE.c.table_name == run.table_name),
        )
        .where(run.pipeline_id == pipeline_id, run.status.in_(("failed", "partial")), not_(mended))
        .order_by(run.table_name)
    )
    told = [(row, row.ended_at or row.started_at) for row in connection.execute(query)]
    return [
        TableError(table=row.table_name, at=_told(at), error=row.error_msg or "")
        for row, at in told
        if row.table_name in failed or row.planned_at is None or row.planned_at <= at
    ]


def _failed_chunks(connection: Connection, pipeline_id: str) -> list[FailedChunk]:
    query = (
        select(_C.table_name, _C.chunk_id, _C.error_msg)
        .where(*in_newest_plan(pipeline_id), _C.status == "failed")
        .order_by(_C.table_name, _C.chunk_id)
        .limit(_MOST_FAILED_CHUNKS)
    )
    return [
        FailedChunk(table=row.table_name, chunk=row.chunk_id, error=row.error_msg or "")
        for row in connection.execute(query)
    ]


def _farthest_behind(standings: Iterable[Standing]) -> int | None:
    told = [behind for standing in standings if (behind := standing.behind) is not None]
    return round(max(told).total_seconds()) if told else None


def _told(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
