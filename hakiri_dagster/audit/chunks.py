"""`pipeline_chunks`: the chunk ledger. A row's status is the state machine; every transition is one method here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row, case, func, null, or_, select, update

from hakiri_dagster.audit.chunk_rows import OF_A_STATE, Values, bounds_from_json, from_row, from_values, to_values
from hakiri_dagster.audit.claiming import ClaimRequest, HolderIsDead, claim_rows
from hakiri_dagster.audit.claims import BusyChunk, Claim, Claims, Failure, Outcome
from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.held_rows import holds, of_table, require_held, rows_of_claims, update_rows
from hakiri_dagster.audit.schema import PIPELINE_CHUNKS
from hakiri_dagster.audit.upserts import Proposed, upsert
from hakiri_dagster.planning.chunks import SourceFile
from hakiri_dagster.planning.states import ChunkState, DueSlice, published

_C: Final = PIPELINE_CHUNKS.c
_ROWS_AT_ONCE: Final = 5_000
"""A row is a few hundred bytes in the database, and some thousand on its way there."""
_TOLD: Final = ("completed_at", "bytes", "winning_attempt")
_FILE_STATES: Final = {
    "pending": "PENDING", "running": "PROCESSING", "done": "COMMITTED", "failed": "FAILED",
}  # fmt: skip


class ChunkReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def states(self, pipeline_id: str, table: str) -> tuple[ChunkState, ...]:
        """Of every plan the table ever had: older ones tell what is published."""
        query = select(*OF_A_STATE).where(*of_table(pipeline_id, table)).order_by(_C.chunk_id)
        return self._transactions.read(lambda c: tuple(map(from_values, c.execute(query))))

    def numbers(self) -> dict[tuple[str, str], int]:
        """Of all tables at once, with those of earlier plans."""
        query = select(_C.pipeline_id, _C.table_name, func.count()).group_by(_C.pipeline_id, _C.table_name)
        return {
            (pipeline, table): n for pipeline, table, n in self._transactions.read(lambda c: c.execute(query).all())
        }

    def reached(self, pipeline_id: str, table: str) -> int | None:
        """The highest cursor that is committed: one column of what may be a hundred thousand rows."""
        query = select(_C.cursor_committed).where(*of_table(pipeline_id, table), _C.cursor_committed.is_not(None))
        return self._transactions.read(lambda c: max(map(int, c.execute(query).scalars()), default=None))

    def held(self, pipeline_id: str, table: str, holder_is_dead: HolderIsDead) -> tuple[BusyChunk, ...]:
        """Chunks that somebody who lives works on."""
        query = select(_C.chunk_id, _C.holder_node, _C.leased_until).where(
            *of_table(pipeline_id, table), _C.leased_until.is_not(None)
        )

        def work(connection: Connection) -> tuple[BusyChunk, ...]:
            now = self._transactions.now(connection)
            rows = connection.execute(query.order_by(_C.chunk_id)).all()
            return tuple(BusyChunk(key, holder) for key, holder, until in rows if until and until > now)

        held = self._transactions.read(work)
        return tuple(chunk for chunk in held if chunk.holder is None or holder_is_dead(chunk.holder) is not True)

    def file_states(self, pipeline_id: str, table: str) -> tuple[tuple[SourceFile, str], ...]:
        """ADR-0004's PENDING, PROCESSING, COMMITTED, FAILED: the chunk's status by another name."""
        query = select(_C.predicate, _C.status).where(*of_table(pipeline_id, table), _C.status.in_(_FILE_STATES))
        rows = self._transactions.read(lambda c: c.execute(query.order_by(_C.chunk_id)).all())
        told = ((bounds_from_json(row.predicate), _FILE_STATES[row.status]) for row in rows)
        return tuple((bounds, state) for bounds, state in told if isinstance(bounds, SourceFile))


class ChunkStore(ChunkReader):
    def save(self, pipeline_id: str, table: str, states: Sequence[ChunkState]) -> None:
        """Writes a plan's states. A chunk that was tried since the states were read keeps what that try says."""
        self._transactions.write(lambda c: save_states(c, pipeline_id, table, states))

    def claim(
        self,
        pipeline_id: str,
        table: str,
        slices: Sequence[DueSlice],
        *,
        holder: str,
        run_id: str,
        ttl_seconds: float,
        holder_is_dead: HolderIsDead,
        seen_held: Collection[str] = (),
    ) -> Claims:
        """pending | done | failed | running and abandoned → running"""
        request = ClaimRequest(
            pipeline_id, table, slices, holder, run_id, timedelta(seconds=ttl_seconds), holder_is_dead, seen_held
        )
        return self._transactions.write(lambda c: claim_rows(c, request, self._transactions.moment()))

    def heartbeat(self, claims: Sequence[Claim], ttl_seconds: float) -> tuple[Claim, ...]:
        """running → running. Answers the claims that are lost; the others go on."""

        def work(connection: Connection) -> tuple[Claim, ...]:
            until = self._transactions.now(connection) + timedelta(seconds=ttl_seconds)
            pairs = rows_of_claims(connection, claims)
            update_rows(connection, [(c, {"leased_until": until}) for c, row in pairs if holds(c, row)])
            return tuple(claim for claim, row in pairs if not holds(claim, row))

        return self._transactions.write(work)

    def done(self, claim: Claim, outcome: Outcome) -> None:
        self.done_all([(claim, outcome)])

    def done_all(self, outcomes: Sequence[tuple[Claim, Outcome]]) -> None:
        """running → done, and what the chunk supersedes → superseded. Told twice, it is heard once."""
        outcome_of = dict(outcomes)

        def work(connection: Connection) -> None:
            now = self._transactions.now(connection)
            changes = []
            for claim, row in rows_of_claims(connection, outcome_of):
                if not _heard_already(row, outcome_of[claim]):
                    held = require_held(claim, row)
                    changes.append((claim, _done_values(claim, held, outcome_of[claim], now)))
            update_rows(connection, changes)
            for claim, _ in changes:
                _supersede(connection, claim)

        self._transactions.write(work)

    def failed(self, claim: Claim, failure: Failure) -> None:
        self.failed_all([(claim, failure)])

    def failed_all(self, failures: Sequence[tuple[Claim, Failure]]) -> None:
        """running → failed"""
        values = {
            claim: {"status": "failed", "error_kind": failure.kind, "error_msg": failure.message, **_free()}
            for claim, failure in failures
        }
        self._transactions.write(lambda c: _change_held(c, values))

    def release(self, claims: Sequence[Claim]) -> None:
        """running → pending, for attempts that end before they published anything. What somebody else has by now is
        left to him."""

        def work(connection: Connection) -> None:
            held = [claim for claim, row in rows_of_claims(connection, claims) if holds(claim, row)]
            update_rows(connection, [(claim, {"status": "pending", **_free()}) for claim in held])

        self._transactions.write(work)


def save_states(connection: Connection, pipeline_id: str, table: str, states: Sequence[ChunkState]) -> None:
    def also(proposed: Proposed) -> Values:
        kept = or_(proposed["status"] == "running", _C.status != "running")  # by an attempt, or by a replay
        freed = {name: case((kept, _C[name]), else_=null()) for name in _free()}
        same = _C.load_id == proposed["load_id"]  # who published it has told more of it meanwhile than the ledger does
        told = {name: case((same, func.coalesce(_C[name], proposed[name])), else_=proposed[name]) for name in _TOLD}
        return freed | told

    for start in range(0, len(states), _ROWS_AT_ONCE):
        upsert(
            connection,
            PIPELINE_CHUNKS,
            [to_values(pipeline_id, table, state) for state in states[start : start + _ROWS_AT_ONCE]],
            also=also,
            only_if=lambda proposed: _C.attempts <= proposed["attempts"],
        )


def _change_held(connection: Connection, values: dict[Claim, Values]) -> None:
    pairs = rows_of_claims(connection, values)
    for claim, row in pairs:
        require_held(claim, row)
    update_rows(connection, [(claim, values[claim]) for claim, _ in pairs])


def _free() -> Values:
    return {"holder_node": None, "leased_until": None}


def _heard_already(row: Row[Any] | None, outcome: Outcome) -> bool:
    return row is not None and row.status == "done" and row.load_id == outcome.load_id


def _done_values(claim: Claim, row: Row[Any], outcome: Outcome, now: datetime) -> Values:
    state = published(
        from_row(row),
        bounds=claim.due.slice.bounds,
        cursor_committed=outcome.cursor_committed,
        seen=claim.due.seen,
        rows=outcome.rows,
        load_id=outcome.load_id,
        token=outcome.token,
    )
    winner = f"{claim.holder}/attempt-{claim.attempt}"
    told = replace(state, bytes=outcome.bytes, completed_at=now, winner=winner)
    values = to_values(claim.pipeline_id, claim.table, told)
    for name in ("pipeline_id", "table_name", "chunk_id"):
        del values[name]
    return {**values, **_free()}


def _supersede(connection: Connection, claim: Claim) -> None:
    if claim.due.supersedes:
        connection.execute(
            update(PIPELINE_CHUNKS)
            .where(*of_table(claim.pipeline_id, claim.table), _C.chunk_id.in_(claim.due.supersedes))
            .values(status="superseded", **_free())
        )
