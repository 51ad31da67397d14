"""When a table that is loaded whole is due."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from hakiri_dagster.planning.chunk_plan import plan_full
from hakiri_dagster.planning.chunks import FULL_KEY, Slice
from hakiri_dagster.planning.schedules import has_elapsed
from hakiri_dagster.planning.states import ChunkState, Due, DueSlice


def due_full(
    states: Iterable[ChunkState],
    *,
    fingerprint: str | None,
    schedule: str | None,
    timezone: str,
    now: datetime,
    generation: int = 1,
) -> Due:
    """`fingerprint` is the whole source's where it has one (files). Without one the schedule decides, if any."""
    (chunk,) = plan_full()
    known = {state.key: state for state in states}
    stored = known.get(FULL_KEY)
    state = replace(stored or ChunkState(FULL_KEY, chunk.bounds), generation=generation)
    gone = tuple(
        replace(s, status="retired") for s in known.values() if s.key != FULL_KEY and s.status in ("pending", "failed")
    )
    overtaken = tuple(s.key for s in known.values() if s.key != FULL_KEY and s.status == "running")
    if state.status == "done" and not _changed(state, fingerprint, schedule, timezone, now):
        return Due(done=(chunk,), states=_less(stored, state, gone), overtaken=overtaken)
    owed = DueSlice(Slice(chunk, chunk.bounds), state.attempts, seen=fingerprint)
    if state.status == "running":
        return Due(busy=(owed,), states=gone, overtaken=overtaken)
    wanted = state if state.status == "failed" else replace(state, status="pending")
    return Due(slices=(owed,), states=_less(stored, wanted, gone), overtaken=overtaken)


def _less(stored: ChunkState | None, wanted: ChunkState, others: tuple[ChunkState, ...]) -> tuple[ChunkState, ...]:
    return others if wanted == stored else (wanted, *others)


def _changed(state: ChunkState, fingerprint: str | None, schedule: str | None, timezone: str, now: datetime) -> bool:
    if fingerprint is not None:
        return state.seen != fingerprint
    if schedule is None or state.completed_at is None:
        return True
    return has_elapsed(schedule, timezone, since=state.completed_at, now=now)
