"""`pipeline_run`: what ran, how it ended. Rows are added, and closed once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import uuid4

from sqlalchemy import Connection, delete, select, update

from hakiri_dagster.audit.claiming import HolderIsDead
from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.schema import BUDGET_USE, PIPELINE_RUN
from hakiri_dagster.audit.upserts import upsert
from hakiri_dagster.errors import ErrorKind

RunStatus = Literal["pending", "running", "success", "failed", "partial"]

WHOLE_PIPELINE: Final = ""
"""The `table_name` of a run that is not of one table."""

USES_KEPT_FOR: Final = timedelta(days=90)
_FORGOTTEN_WITHIN: Final = timedelta(days=30)
"""After a longer rest some are left: rows that nobody asks for, and no more come."""

_C: Final = PIPELINE_RUN.c
_RECORD: Final = [column for column in _C if column.name != "holder_node"]


@dataclass(frozen=True, slots=True)
class RunRecord:
    run_id: str
    pipeline_id: str
    table: str
    started_at: datetime
    ended_at: datetime | None
    status: RunStatus
    rows: int | None
    bytes: int | None
    error_kind: ErrorKind | None
    error_message: str | None
    trace_id: str | None


class RunReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def recent(self, pipeline_id: str, table: str | None = None, limit: int = 20) -> tuple[RunRecord, ...]:
        """The newest first."""
        query = select(*_RECORD).where(_C.pipeline_id == pipeline_id)
        if table is not None:
            query = query.where(_C.table_name == table)
        query = query.order_by(_C.started_at.desc()).limit(limit)
        return self._transactions.read(lambda c: tuple(RunRecord(*row) for row in c.execute(query)))

    def trace_id(self, run_id: str, pipeline_id: str, table: str) -> str | None:
        """Of the trace that the run is in, if it was traced."""
        query = select(_C.trace_id).where(_C.run_id == run_id, _C.pipeline_id == pipeline_id, _C.table_name == table)
        return self._transactions.read(lambda c: c.execute(query).scalar())

    def known(self, run_ids: Iterable[str]) -> frozenset[str]:
        """Those of these runs that this audit DB has recorded."""
        ids = sorted(set(run_ids))
        if not ids:
            return frozenset()
        query = select(_C.run_id).where(_C.run_id.in_(ids))
        return self._transactions.read(lambda c: frozenset(c.execute(query).scalars()))

    def row_counts(self, pipeline_id: str, table: str, last: int) -> tuple[int, ...]:
        """Of the newest runs that ended well and loaded something, the newest first."""
        query = (
            select(_C.row_count)
            .where(_C.pipeline_id == pipeline_id, _C.table_name == table, _C.status == "success", _C.row_count > 0)
            .order_by(_C.started_at.desc())
            .limit(last)
        )
        return self._transactions.read(lambda c: tuple(c.execute(query).scalars()))


class RunStore(RunReader):
    def start(
        self,
        run_id: str,
        pipeline_id: str,
        table: str = WHOLE_PIPELINE,
        *,
        holder: str,
        holder_is_dead: HolderIsDead,
        trace_id: str | None = None,
    ) -> None:
        """A run that is retried under its own id begins anew. Runs of this table whose process died are closed."""
        row = {
            "run_id": run_id,
            "pipeline_id": pipeline_id,
            "table_name": table,
            "status": "running",
            "trace_id": trace_id,
            "holder_node": holder,
            "ended_at": None,
            "error_kind": None,
            "error_msg": None,
        }

        def work(connection: Connection) -> None:
            now = self._transactions.now(connection)
            upsert(connection, PIPELINE_RUN, [row | {"started_at": now}])
            _close_dead(connection, pipeline_id, table, now, holder_is_dead)

        self._transactions.write(work)

    def refused(self, pipeline_id: str, table: str, error_kind: ErrorKind, message: str) -> None:
        """What keeps runs of the table from starting. It is one entry for as long as it is the same."""
        of_table = (_C.pipeline_id == pipeline_id) & (_C.table_name == table)
        newest = select(_C.run_id, _C.status, _C.error_msg).where(of_table).order_by(_C.started_at.desc()).limit(1)

        def work(connection: Connection) -> None:
            now = self._transactions.now(connection)
            last = connection.execute(newest).first()
            if last is not None and (last.status, last.error_msg) == ("failed", message):
                connection.execute(update(PIPELINE_RUN).where(of_table, _C.run_id == last.run_id).values(ended_at=now))
                return
            row = {"run_id": str(uuid4()), "pipeline_id": pipeline_id, "table_name": table, "status": "failed"}
            told = {"started_at": now, "ended_at": now, "error_kind": error_kind, "error_msg": message}
            upsert(connection, PIPELINE_RUN, [row | told])

        self._transactions.write(work)

    def finish(
        self,
        run_id: str,
        pipeline_id: str,
        table: str = WHOLE_PIPELINE,
        *,
        status: Literal["success", "failed", "partial"],
        rows: int,
        bytes_: int,
        error_kind: ErrorKind | None = None,
        error_message: str | None = None,
    ) -> None:
        """What earlier runs were given by budgets is forgotten after a while; the runs themselves are kept."""
        told = {"status": status, "row_count": rows, "bytes": bytes_}
        error = {"error_kind": error_kind, "error_msg": error_message}
        of_run = (_C.run_id == run_id, _C.pipeline_id == pipeline_id, _C.table_name == table)

        def work(connection: Connection) -> None:
            now = self._transactions.now(connection)
            connection.execute(update(PIPELINE_RUN).where(*of_run).values(**told, **error, ended_at=now))
            _forget_budget_uses(connection, pipeline_id, table, now)

        self._transactions.write(work)


def _forget_budget_uses(connection: Connection, pipeline_id: str, table: str, now: datetime) -> None:
    """There may be a row for each chunk of each run. Of a few runs at a time, found by their index: whoever has run
    since the last time is older by now."""
    of_table = (_C.pipeline_id == pipeline_id, _C.table_name == table)
    old = select(_C.run_id).where(
        *of_table, _C.started_at < now - USES_KEPT_FOR, _C.started_at > now - USES_KEPT_FOR - _FORGOTTEN_WITHIN
    )
    uses = BUDGET_USE.c
    connection.execute(
        delete(BUDGET_USE).where(uses.pipeline_id == pipeline_id, uses.table_name == table, uses.run_id.in_(old))
    )


def _close_dead(
    connection: Connection, pipeline_id: str, table: str, now: datetime, holder_is_dead: HolderIsDead
) -> None:
    of_table = (_C.pipeline_id == pipeline_id) & (_C.table_name == table) & (_C.status == "running")
    holders = connection.execute(select(_C.holder_node).where(of_table, _C.holder_node.is_not(None))).scalars()
    dead = [holder for holder in set(holders) if holder_is_dead(holder)]
    if dead:
        connection.execute(
            update(PIPELINE_RUN)
            .where(of_table, _C.holder_node.in_(dead))
            .values(ended_at=now, status="failed", error_kind="transient", error_msg="its process died")
        )
