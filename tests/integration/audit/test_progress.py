from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, update

from hakiri_dagster.audit.claims import Failure, Outcome
from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.audit.schema import PIPELINE_CHUNKS
from hakiri_dagster.planning.chunks import CursorRange, Interval, Slice
from hakiri_dagster.planning.states import ChunkState, DueSlice

OF = ("shop", "orders")


def test_what_is_done_and_left_of_a_table_is_counted_without_its_earlier_plans(audit: AuditDb) -> None:
    states = [ChunkState(f"c{n}", CursorRange(Interval(n, n + 1)), generation=2) for n in range(6)]
    old = ChunkState("old", CursorRange(Interval(0, 9)), "done", generation=1)
    audit.chunks.save(*OF, [*states, old, ChunkState("gone", CursorRange(Interval(9, 10)), "retired", generation=2)])
    assert audit.progress(*OF).eta_seconds is None, "nothing tells yet how long a chunk takes"
    slices = [DueSlice(Slice(state.chunk, state.bounds)) for state in states[:4]]
    claims = audit.chunks.claim(
        *OF, slices, holder="me", run_id="run", ttl_seconds=600, holder_is_dead=lambda _: False
    ).claimed
    for load_id, claim in enumerate(claims[:2]):
        audit.chunks.done(claim, Outcome(rows=1000, bytes=5000, cursor_committed=None, load_id=load_id))
    audit.chunks.failed(claims[2], Failure("transient", "a lost connection"))
    told = audit.progress(*OF)
    assert (told.done, told.running, told.pending, told.failed, told.left) == (2, 1, 2, 1, 4)
    assert told.recent.chunks == 2
    assert told.recent.bytes_per_sec > told.recent.rows_per_sec > 0
    assert told.eta_seconds == round(4 * told.recent.seconds / 2)


def test_chunks_that_a_run_has_claimed_together_tell_their_own_time_each(audit: AuditDb) -> None:
    """It waits a minute for its place, and publishes one a second then."""
    loads = [Timed(claimed=0, done=60 + n) for n in range(200)]
    _timed(audit, loads, left=100)
    told = audit.progress(*OF)
    assert (told.eta_seconds, told.recent.rows_per_sec, told.recent.bytes_per_sec) == (100, 1000, 5000)
    document = audit.status("shop")
    assert (document["eta_seconds"], document["throughput"]["rows_per_sec"]) == (100, 1000)


def test_the_time_between_two_runs_is_not_taken_for_work(audit: AuditDb) -> None:
    yesterday = [Timed(claimed=0, done=2 * n + 2) for n in range(10)]
    today = [Timed(claimed=86_400, done=86_400 + 2 * n + 2) for n in range(10)]
    _timed(audit, [*yesterday, *today], left=30)
    assert audit.progress(*OF).eta_seconds == 60


class Timed(NamedTuple):
    """Seconds after the first claim."""

    claimed: int
    done: int


def _timed(audit: AuditDb, loads: Sequence[Timed], *, left: int) -> None:
    """Published chunks of 1000 rows and 5000 bytes, and some that are owed."""
    states = [ChunkState(f"c{n:03}", CursorRange(Interval(n, n + 1))) for n in range(len(loads) + left)]
    audit.chunks.save(*OF, states)
    slices = [DueSlice(Slice(state.chunk, state.bounds)) for state in states[: len(loads)]]
    claims = audit.chunks.claim(*OF, slices, holder="me", run_id="run", ttl_seconds=600, holder_is_dead=lambda _: False)
    outcome = Outcome(rows=1000, bytes=5000, cursor_committed=None, load_id=1)
    audit.chunks.done_all([(claim, outcome) for claim in claims.claimed])
    begin = datetime(2026, 1, 1, tzinfo=UTC)

    def put(connection: Connection) -> None:
        for claim, load in zip(claims.claimed, loads, strict=True):
            began, ended = (begin + timedelta(seconds=seconds) for seconds in load)
            of_claim = update(PIPELINE_CHUNKS).where(PIPELINE_CHUNKS.c.chunk_id == claim.key)
            connection.execute(of_claim.values(started_at=began, completed_at=ended))

    audit._transactions.write(put)


def test_a_table_without_a_plan_has_nothing_to_do(audit: AuditDb) -> None:
    told = audit.progress("shop", "nothing")
    assert (told.done, told.left, told.eta_seconds) == (0, 0, 0)
