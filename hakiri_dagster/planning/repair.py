"""The destination's ledger is the commit point: what the audit DB missed of it is told here, and what it believes
without the ledger's word is forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from hakiri_dagster.planning.chunks import Bounds, SourceFile
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
    def bytes(self) -> int: ...
    @property
    def run_id(self) -> str: ...
    @property
    def published_at(self) -> datetime: ...
    @property
    def load_id(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def superseded(self) -> bool: ...
    @property
    def token(self) -> str | None: ...


def relied_on(states: Iterable[ChunkState]) -> frozenset[int]:
    """The loads that the ledger is to be asked for. Files need none: their content says what is there."""
    by_load = (state for state in states if not isinstance(state.bounds, SourceFile))
    return frozenset(load_id for s in by_load for load_id in (*s.carried_from, s.load_id) if load_id is not None)


def published_since(states: Iterable[ChunkState], ledger: Iterable[LedgerRow]) -> frozenset[str]:
    """Chunks with a load in the ledger by an attempt that these states do not know of yet."""
    attempts = {state.key: state.attempts for state in states}
    ahead = (row for row in ledger if not row.superseded and row.attempt > attempts.get(row.chunk_key, 0))
    return frozenset(row.chunk_key for row in ahead)


def after_ledger(states: Sequence[ChunkState], ledger: Sequence[LedgerRow]) -> tuple[ChunkState, ...]:
    """`ledger` has the newest row of each chunk key that is not superseded, and what it knows of `relied_on`.

    A crash between publish and the audit DB's word leaves a ledger row that is newer than the chunk's state. So does an
    audit DB that was lost: then this is all that is remembered. A target that was restored, emptied or exchanged for
    another leaves states that the ledger knows nothing of.
    """
    live = sorted((row for row in ledger if not row.superseded), key=lambda row: row.load_id)
    known = {state.key: state for state in _proven(states, ledger, {row.chunk_key: row.load_id for row in live})}
    for row in live:
        state = known.get(row.chunk_key, ChunkState(row.chunk_key, row.bounds, generation=1))
        if state.status != "superseded" and row.load_id <= (state.load_id or 0):
            continue
        known[row.chunk_key] = _told(state, row)
        for key in state.supersedes:
            if key in known:
                known[key] = replace(known[key], status="superseded", from_ledger=True)
    return tuple(known.values())


def _told(state: ChunkState, row: LedgerRow) -> ChunkState:
    """A later attempt that still holds the chunk goes on; what the earlier one published counts all the same. The
    ledger knows of the winner its run, not its process."""
    of_last_attempt = row.attempt >= state.attempts
    told = published(
        state,
        bounds=row.bounds,
        cursor_committed=row.cursor_committed,
        seen=state.attempt_seen if row.attempt == state.attempts else None,
        rows=row.rows,
        load_id=row.load_id,
        token=row.token,
    )
    held_by_later = state.status == "running" and not of_last_attempt
    return replace(
        told,
        status="running" if held_by_later else "done",
        attempts=max(state.attempts, row.attempt),
        bytes=row.bytes,
        completed_at=row.published_at,
        winner=f"{row.run_id}/attempt-{row.attempt}",
        from_ledger=True,
    )


def _proven(
    states: Sequence[ChunkState], ledger: Sequence[LedgerRow], newest: Mapping[str, int]
) -> Iterator[ChunkState]:
    proof = _Proof.of(states, ledger)
    return (s if proof.holds(s) else _forgotten(s, newest.get(s.key, 0)) for s in states)


@dataclass(frozen=True, slots=True)
class _Proof:
    """What the ledger knows. A ledger that was restored, or another one, may give an id of ours to another load, so a
    chunk's own load is to be its own there too; `strange` are the ids that are not."""

    contents: AbstractSet[str]
    rows: Mapping[int, LedgerRow]
    strange: AbstractSet[int]

    @classmethod
    def of(cls, states: Sequence[ChunkState], ledger: Sequence[LedgerRow]) -> _Proof:
        rows = {row.load_id: row for row in ledger}
        loaded = [state for state in states if state.load_id is not None and not state.carried_from]
        own = {state.load_id for state in loaded if _is_own(state, rows)}
        return cls(
            contents={r.bounds.content_hash for r in ledger if isinstance(r.bounds, SourceFile) and not r.superseded},
            rows=rows,
            strange={state.load_id for state in loaded if state.load_id is not None} - own,
        )

    def holds(self, state: ChunkState) -> bool:
        if isinstance(state.bounds, SourceFile):
            return state.status != "done" or state.bounds.content_hash in self.contents
        if state.load_id is None and not state.carried_from:
            return state.status != "done"
        if state.carried_from:
            return all(load_id in self.rows and load_id not in self.strange for load_id in state.carried_from)
        return _is_own(state, self.rows)


def _is_own(state: ChunkState, rows: Mapping[int, LedgerRow]) -> bool:
    row = rows.get(state.load_id or 0)
    if row is None or row.chunk_key != state.key:
        return False
    return row.attempt == state.attempts if state.status == "done" else row.attempt <= state.attempts


def _forgotten(state: ChunkState, newest: int) -> ChunkState:
    """Nothing that the chunk published counts, nor do the loads that the ledger knows of it: they may be older than
    what the audit DB has seen of the source since."""
    forgotten = replace(
        state,
        status="pending" if state.status == "done" else state.status,
        covered=NOTHING,
        cursor_committed=None,
        seen=None,
        rows=None,
        load_id=max(newest, state.load_id or 0) or None,
        carried_from=(),
        token=None,
    )
    return state if forgotten == state else replace(forgotten, gap=True, from_ledger=True)
