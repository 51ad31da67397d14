"""`rewind` and `rewound_chunk`: what was asked for again, and what it was until then. Rows are only added."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, insert, select

from hakiri_dagster.audit.chunk_rows import from_row
from hakiri_dagster.audit.chunks import save_states
from hakiri_dagster.audit.claiming import HolderIsDead
from hakiri_dagster.audit.claims import BusyChunk
from hakiri_dagster.audit.engine import Transactions
from hakiri_dagster.audit.held_rows import of_table
from hakiri_dagster.audit.schema import AS_IT_WAS, PIPELINE_CHUNKS, REWIND, REWOUND_CHUNK
from hakiri_dagster.audit.tables import lock_plan, newest_rewind
from hakiri_dagster.planning.chunks import Interval
from hakiri_dagster.planning.rewind import Reach, RewoundChunk, reach, rewind

_C: Final = PIPELINE_CHUNKS.c
_R: Final = REWIND.c
_WAS: Final = REWOUND_CHUNK.c


@dataclass(frozen=True, slots=True)
class RewindRequest:
    """`written` is the stretch as it was asked for. `planned` are the chunks of the plan as the source makes it now;
    None: all of them are loaded again. `fenced` are those whose dead attempts cannot publish any more. `keys`: the
    chunks that are named, whatever the stretch."""

    pipeline_id: str
    table: str
    stretch: Interval
    written: tuple[str, str]
    reason: str
    asked_by: str
    planned: frozenset[str] | None
    fenced: frozenset[str]
    parts: frozenset[str] = frozenset()
    keys: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class RewindAnswer:
    """Where somebody is at work (`busy`) or has left an attempt that is not fenced (`unfenced`), nothing was changed.
    Without a `rewind_id` there was nothing to take back."""

    reach: Reach
    rewind_id: int | None = None
    generation: int = 0
    busy: tuple[BusyChunk, ...] = ()
    unfenced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkBefore:
    """What a chunk was when it was rewound. `load_ids`: where its rows came from."""

    key: str
    generation: int
    attempts: int
    load_ids: tuple[int, ...]
    rows: int | None
    completed_at: datetime | None
    winning_attempt: str | None


@dataclass(frozen=True, slots=True)
class RewindRecord:
    """`waiting`: how many of its chunks were not published since."""

    rewind_id: int
    table: str
    generation: int
    asked_from: str
    asked_to: str
    reason: str
    asked_by: str
    asked_at: datetime
    waiting: int
    chunks: tuple[ChunkBefore, ...]


class RewindReader:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def last(self, pipeline_id: str, table: str) -> int:
        return self._transactions.read(lambda c: newest_rewind(c, pipeline_id, table))

    def waiting(self, pipeline_id: str, table: str) -> dict[str, RewoundChunk]:
        """Chunks that were not published since somebody asked for them."""
        query = (
            select(_C.chunk_id, _R.rewind_id, _R.reason, _R.asked_by, _R.asked_at, _WAS.load_id, _WAS.carried_from)
            .join(REWIND, _R.rewind_id == _C.rewind_id)
            .join(REWOUND_CHUNK, (_WAS.rewind_id == _C.rewind_id) & (_WAS.chunk_id == _C.chunk_id))
            .where(*of_table(pipeline_id, table))
        )
        rows = self._transactions.read(lambda c: c.execute(query).all())
        return {row.chunk_id: _rewound(row) for row in rows}

    def history(self, pipeline_id: str) -> tuple[RewindRecord, ...]:
        """The oldest first."""

        def work(connection: Connection) -> tuple[RewindRecord, ...]:
            asked = connection.execute(select(REWIND).where(_R.pipeline_id == pipeline_id).order_by(_R.rewind_id)).all()
            was = select(REWOUND_CHUNK).join(REWIND, _R.rewind_id == _WAS.rewind_id)
            was = was.where(_R.pipeline_id == pipeline_id).order_by(_WAS.chunk_id)
            chunks = _by_rewind(connection.execute(was))
            waits = select(_C.rewind_id).where(_C.pipeline_id == pipeline_id, _C.rewind_id.is_not(None))
            waiting = Counter(connection.execute(waits).scalars())
            return tuple(_record(row, chunks, waiting) for row in asked)

        return self._transactions.read(work)


class RewindStore(RewindReader):
    def rewind(self, request: RewindRequest, holder_is_dead: HolderIsDead) -> RewindAnswer:
        """done | failed → pending, of a new generation, all of them or none; what they were is kept."""
        return self._transactions.write(lambda c: _rewind(c, request, holder_is_dead, self._transactions.now(c)))


def _rewind(connection: Connection, request: RewindRequest, is_dead: HolderIsDead, now: datetime) -> RewindAnswer:
    of = request.pipeline_id, request.table
    lock_plan(connection, *of)
    query = select(PIPELINE_CHUNKS).where(*of_table(*of)).order_by(_C.chunk_id).with_for_update()
    rows = {row.chunk_id: row for row in connection.execute(query)}
    states = [from_row(row) for row in rows.values()]
    touched = reach(states, request.stretch, request.parts, request.keys)
    mine = [rows[state.key] for state in touched.states]
    busy = tuple(BusyChunk(row.chunk_id, row.holder_node) for row in mine if _is_held(row, now, is_dead))
    left = {row.chunk_id for row in mine if row.status == "running"} - {chunk.key for chunk in busy}
    unfenced = tuple(sorted(left - request.fenced))
    if busy or unfenced or not touched.published:
        return RewindAnswer(touched, busy=busy, unfenced=unfenced)
    generation = max(state.generation for state in states) + 1
    rewind_id = _record_rewind(connection, request, generation, now)
    keep = [_as_it_was(rewind_id, rows[state.key]) for state in touched.published]
    connection.execute(insert(REWOUND_CHUNK), keep)
    again = rewind(states, request.stretch, rewind_id, request.planned, request.parts, request.keys)
    save_states(connection, *of, again)
    return RewindAnswer(touched, rewind_id, generation)


def _rewound(row: Row[*tuple[Any, ...]]) -> RewoundChunk:
    return RewoundChunk(row.chunk_id, row.rewind_id, row.reason, row.asked_by, row.asked_at, _load_ids(row))


def _record(row: Row[Any], chunks: Mapping[int, Sequence[Row[Any]]], waiting: Mapping[int, int]) -> RewindRecord:
    return RewindRecord(
        rewind_id=row.rewind_id,
        table=row.table_name,
        generation=row.generation,
        asked_from=row.asked_from,
        asked_to=row.asked_to,
        reason=row.reason,
        asked_by=row.asked_by,
        asked_at=row.asked_at,
        waiting=waiting.get(row.rewind_id, 0),
        chunks=tuple(map(_before, chunks.get(row.rewind_id, ()))),
    )


def _before(row: Row[Any]) -> ChunkBefore:
    return ChunkBefore(
        key=row.chunk_id,
        generation=row.generation,
        attempts=row.attempts,
        load_ids=_load_ids(row),
        rows=row.rows,
        completed_at=row.completed_at,
        winning_attempt=row.winning_attempt,
    )


def _load_ids(row: Row[*tuple[Any, ...]]) -> tuple[int, ...]:
    return tuple(sorted({*json.loads(row.carried_from), *(() if row.load_id is None else (row.load_id,))}))


def _by_rewind(rows: Iterable[Row[Any]]) -> Mapping[int, Sequence[Row[Any]]]:
    found: dict[int, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        found[row.rewind_id].append(row)
    return found


def _is_held(row: Row[Any], now: datetime, is_dead: HolderIsDead) -> bool:
    return row.leased_until is not None and row.leased_until > now and is_dead(row.holder_node) is not True


def _record_rewind(connection: Connection, request: RewindRequest, generation: int, now: datetime) -> int:
    asked_from, asked_to = request.written
    values = {
        "pipeline_id": request.pipeline_id,
        "table_name": request.table,
        "generation": generation,
        "lower": "" if request.stretch.lower is None else str(request.stretch.lower),
        "upper": "" if request.stretch.upper is None else str(request.stretch.upper),
        "asked_from": asked_from,
        "asked_to": asked_to,
        "reason": request.reason,
        "asked_by": request.asked_by,
        "asked_at": now,
    }
    rewind_id: int = connection.execute(insert(REWIND).values(values).returning(_R.rewind_id)).scalar_one()
    return rewind_id


def _as_it_was(rewind_id: int, row: Row[Any]) -> dict[str, Any]:
    kept = row._mapping
    return {"rewind_id": rewind_id, "chunk_id": row.chunk_id, **{name: kept[name] for name in AS_IT_WAS}}
