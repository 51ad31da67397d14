"""The destination's ledger is the commit point; what the audit DB missed of it is told here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from hakiri_dagster.planning.chunks import Bounds
from hakiri_dagster.planning.intervals import NOTHING
from hakiri_dagster.planning.states import ChunkState, published


class LedgerRow(Protocol):
    @property
    def chunk_key(self) -> str: ...
    @property
    def bounds(self) -> Bounds: ...
    @property
    def cursor_committed(self) -> int | None: ...
    @property
    def rows(self) -> int: ...
    @property
    def load_id(self) -> int: ...
    @property
    def attempt(self) -> int: ...


def after_ledger(states: Iterable[ChunkState], ledger: Sequence[LedgerRow]) -> tuple[ChunkState, ...]:
    """A crash between publish and the audit DB's word leaves a ledger row that is newer than the chunk's state.

    So does an audit DB that was lost: then this is all that is remembered.
    """
    known = {state.key: state for state in states}
    for row in sorted(ledger, key=lambda r: r.load_id):
        state = known.get(row.chunk_key, ChunkState(row.chunk_key, row.bounds, generation=1))
        if state.status == "superseded" or row.load_id <= (state.load_id or 0):
            continue
        known[row.chunk_key] = _told(state, row)
        for key in state.supersedes:
            if key in known:
                known[key] = replace(known[key], status="superseded", from_ledger=True)
    return tuple(known.values())


def _told(state: ChunkState, row: LedgerRow) -> ChunkState:
    """A later attempt that still holds the chunk goes on; what the earlier one published counts all the same."""
    of_last_attempt = row.attempt >= state.attempts
    told = published(
        state,
        bounds=row.bounds,
        cursor_committed=row.cursor_committed,
        seen=state.attempt_seen if of_last_attempt else None,
        rows=row.rows,
        load_id=row.load_id,
    )
    held_by_later = state.status == "running" and not of_last_attempt
    return replace(
        told,
        status="running" if held_by_later else "done",
        attempts=max(state.attempts, row.attempt),
        from_ledger=True,
    )


def without_target(states: Iterable[ChunkState]) -> tuple[ChunkState, ...]:
    """The target is gone, and with it whatever was published."""
    return tuple(
        replace(state, status="pending", covered=NOTHING, cursor_committed=None, seen=None, rows=None, carried_from=())
        if state.status == "done"
        else state
        for state in states
    )
