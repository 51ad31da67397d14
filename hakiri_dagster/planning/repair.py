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


def after_ledger(states: Iterable[ChunkState], ledger: Sequence[LedgerRow]) -> tuple[ChunkState, ...]:
    """A crash between publish and the audit DB's word leaves a ledger row that is newer than the chunk's state."""
    known = {state.key: state for state in states}
    for row in sorted(ledger, key=lambda r: r.load_id):
        state = known.get(row.chunk_key, ChunkState(row.chunk_key, row.bounds))
        if state.status != "superseded" and row.load_id > (state.load_id or 0):
            known[row.chunk_key] = published(
                state,
                bounds=row.bounds,
                cursor_committed=row.cursor_committed,
                seen=state.attempt_seen,
                rows=row.rows,
                load_id=row.load_id,
            )
    return tuple(known.values())


def without_target(states: Iterable[ChunkState]) -> tuple[ChunkState, ...]:
    """The target is gone, and with it whatever was published."""
    return tuple(
        replace(state, status="pending", covered=NOTHING, cursor_committed=None, seen=None, rows=None, carried_from=())
        if state.status == "done"
        else state
        for state in states
    )
