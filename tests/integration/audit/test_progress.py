from __future__ import annotations

from hakiri_dagster.audit.claims import Failure, Outcome
from hakiri_dagster.audit.database import AuditDb
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
    assert told.seconds_a_chunk is not None
    assert told.bytes_per_sec > told.rows_per_sec > 0
    assert told.eta_seconds == round(4 * told.seconds_a_chunk)


def test_a_table_without_a_plan_has_nothing_to_do(audit: AuditDb) -> None:
    told = audit.progress("shop", "nothing")
    assert (told.done, told.left, told.eta_seconds) == (0, 0, 0)
