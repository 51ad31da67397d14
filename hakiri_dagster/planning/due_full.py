"""When a table that is loaded whole is due."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from hakiri_dagster.planning.chunk_plan import plan_full
from hakiri_dagster.planning.chunks import FULL_KEY, Slice
from hakiri_dagster.planning.schedules import has_elapsed
from hakiri_dagster.planning.states import ChunkState, Due, DueSlice, to_be_stored


def due_full(
    states: Iterable[ChunkState],
    *,
    fingerprint: str | None,
    schedule: str | None,
    timezone: str,
    now: datetime,
) -> Due:
    """`fingerprint` is the whole source's where it has one (files). Without one the schedule decides, if any."""
    (chunk,) = plan_full()
    known = {state.key: state for state in states}
    newest = max((state.generation for state in known.values()), default=1)
    state = known.get(FULL_KEY, ChunkState(FULL_KEY, chunk.bounds, generation=newest))
    others = [s for s in known.values() if s.key != FULL_KEY]
    gone = [replace(s, status="retired") if s.status in ("pending", "failed") else s for s in others]
    overtaken = tuple(s.key for s in others if s.status == "running")
    if state.status == "done" and not _changed(state, fingerprint, schedule, timezone, now):
        return Due(done=(chunk,), states=to_be_stored([state, *gone], known), overtaken=overtaken)
    owed = DueSlice(Slice(chunk, chunk.bounds), state.attempts, seen=fingerprint)
    if state.status == "running":
        return Due(busy=(owed,), states=to_be_stored(gone, known), overtaken=overtaken)
    wanted = state if state.status == "failed" else replace(state, status="pending")
    return Due(slices=(owed,), states=to_be_stored([wanted, *gone], known), overtaken=overtaken)


def _changed(state: ChunkState, fingerprint: str | None, schedule: str | None, timezone: str, now: datetime) -> bool:
    if fingerprint is not None:
        return state.seen != fingerprint
    if schedule is None or state.completed_at is None:
        return True
    return has_elapsed(schedule, timezone, since=state.completed_at, now=now)
