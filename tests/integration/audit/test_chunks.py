from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from hakiri_dagster.audit.chunks import ChunkStore
from hakiri_dagster.audit.claims import Claim, Claims, DeadAttempt, Failure, Outcome
from hakiri_dagster.audit.database import AuditDb, open_audit
from hakiri_dagster.errors import LeaseLost
from hakiri_dagster.planning.chunks import (
    Chunk,
    CursorRange,
    Interval,
    NullCursor,
    Slice,
    SourceFile,
    WholeTable,
)
from hakiri_dagster.planning.repair import after_ledger
from hakiri_dagster.planning.states import ChunkState, DueSlice, to_be_stored
from tests.integration.audit.conftest import OpenAudit
from tests.unit.planning.ledger_rows import PUBLISHED_AT, PublishedSlice

OF = ("shop", "orders")


def _state(number: int, **changes: object) -> ChunkState:
    bounds = CursorRange(Interval(number * 10, number * 10 + 10))
    return ChunkState(f"c{number:03}", bounds, generation=1, **changes)  # type: ignore[arg-type]  # a test's shorthand


def _slices(states: Sequence[ChunkState], *, settles: bool = True, seen: str = "s1") -> list[DueSlice]:
    return [DueSlice(Slice(s.chunk, s.bounds), s.attempts, settles=settles, seen=seen) for s in states]


def _claim(
    store: ChunkStore,
    slices: Sequence[DueSlice],
    holder: str = "worker-1",
    *,
    ttl: float = 600,
    dead: bool | None = False,
    seen_held: Sequence[str] = (),
) -> Claims:
    return store.claim(
        *OF, slices, holder=holder, run_id="run", ttl_seconds=ttl, holder_is_dead=lambda _: dead, seen_held=seen_held
    )


def _planned(audit: AuditDb, count: int) -> list[DueSlice]:
    states = [_state(number) for number in range(count)]
    audit.chunks.save(*OF, states)
    return _slices(states)


def _published(load_id: int, committed: int | None = None) -> Outcome:
    return Outcome(rows=7, bytes=70, cursor_committed=committed, load_id=load_id)


def test_states_come_back_as_they_were_saved(audit: AuditDb) -> None:
    states = (
        _state(1, covered=(Interval(None, 3), Interval(5, 10**30)), cursor_committed=10**30, seen="x"),
        ChunkState("f", SourceFile("in/ü.csv", "ab" * 16), "done", 3, 2, load_id=2**60, supersedes=("e",)),
        ChunkState("full", WholeTable(), "failed", carried_from=(1, 2)),
        ChunkState("null", NullCursor()),
        ChunkState("outside", CursorRange(Interval(5, None)), rows=0),
    )
    audit.chunks.save(*OF, states)
    audit.chunks.save("shop", "customers", [_state(9)])
    assert audit.chunks.states(*OF) == states


def test_a_claim_is_for_one_worker_only(audit: AuditDb) -> None:
    slices = _planned(audit, 3)
    first = _claim(audit.chunks, slices[:2])
    second = _claim(audit.chunks, slices, "worker-2")
    assert [claim.key for claim in first.claimed] == ["c000", "c001"]
    assert [claim.key for claim in second.claimed] == ["c002"]
    assert [(busy.key, busy.holder) for busy in second.busy] == [("c000", "worker-1"), ("c001", "worker-1")]


def test_a_claim_does_not_wait_for_chunks_that_somebody_is_just_claiming(database_url: str, tmp_path: Path) -> None:
    with open_audit(database_url, tmp_path) as audit, psycopg.connect(database_url) as other:
        slices = _planned(audit, 2)
        other.execute("SELECT FROM hakiri.pipeline_chunks WHERE chunk_id = 'c000' FOR UPDATE")
        claims = _claim(audit.chunks, slices)
        assert [claim.key for claim in claims.claimed] == ["c001"]
        assert [busy.key for busy in claims.busy] == ["c000"]


def test_a_done_chunk_knows_what_is_covered_and_who_won(audit: AuditDb, open_again: OpenAudit) -> None:
    (claim, _) = _claim(audit.chunks, _planned(audit, 2)).claimed
    audit.chunks.done(claim, _published(5, committed=10))
    state = open_again().chunks.states(*OF)[0]
    assert (state.status, state.covered, state.cursor_committed) == ("done", (Interval(0, 10),), 10)
    assert (state.seen, state.rows, state.load_id, state.attempts) == ("s1", 7, 5, 1)
    assert state.completed_at is not None


def test_what_a_look_at_the_ledger_missed_of_a_publish_takes_nothing_of_it_back(audit: AuditDb) -> None:
    """It has read the chunks before the publish and the ledger after it, and writes down what it makes of that."""
    (claim,) = _claim(audit.chunks, _planned(audit, 1)).claimed
    seen = audit.chunks.states(*OF)
    audit.chunks.done(claim, _published(5, committed=10))
    (told,) = audit.chunks.states(*OF)
    row = PublishedSlice("c000", seen[0].bounds, 7, 10, 5, 1, bytes=70, published_at=PUBLISHED_AT)
    audit.chunks.save(*OF, to_be_stored(after_ledger(seen, [row]), {state.key: state for state in seen}))
    assert audit.chunks.states(*OF) == (told,)
    assert told.completed_at is not None
    assert (told.bytes, told.winner) == (70, "worker-1/attempt-1")


def test_a_publish_that_its_attempt_could_not_tell_is_told_by_the_ledger(audit: AuditDb) -> None:
    (first,) = _claim(audit.chunks, _planned(audit, 1)).claimed
    audit.chunks.done(first, _published(4))
    _claim(audit.chunks, _slices(audit.chunks.states(*OF)), "worker-2")
    seen = audit.chunks.states(*OF)
    row = PublishedSlice("c000", seen[0].bounds, 9, 10, 5, 2, bytes=90, run_id="run-2", published_at=PUBLISHED_AT)
    before = replace(row, rows=7, load_id=4, attempt=1, superseded=True)
    audit.chunks.save(*OF, to_be_stored(after_ledger(seen, [row, before]), {state.key: state for state in seen}))
    (told,) = audit.chunks.states(*OF)
    assert (told.rows, told.bytes, told.winner, told.completed_at) == (9, 90, "run-2/attempt-2", PUBLISHED_AT)


def test_done_told_twice_is_heard_once_and_a_stranger_is_not_heard(audit: AuditDb) -> None:
    (claim,) = _claim(audit.chunks, _planned(audit, 1)).claimed
    audit.chunks.done(claim, _published(5))
    audit.chunks.done(claim, _published(5))
    with pytest.raises(LeaseLost, match="no longer holds"):
        audit.chunks.done(claim, _published(6))


def test_what_a_chunk_supersedes_goes_with_its_publish(audit: AuditDb) -> None:
    old = ChunkState("old", SourceFile("a", "1" * 32), "done", 1, load_id=1)
    new = ChunkState("new", SourceFile("a", "2" * 32))
    audit.chunks.save(*OF, [old, new])
    (claim,) = _claim(audit.chunks, [DueSlice(Slice(new.chunk, new.bounds), supersedes=("old",))]).claimed
    assert audit.chunks.states(*OF)[0].supersedes == ("old",), "a crash must not forget what the publish replaced"
    assert dict(audit.chunks.file_states(*OF)) == {old.bounds: "COMMITTED", new.bounds: "PROCESSING"}
    audit.chunks.done(claim, _published(2))
    assert {state.key: state.status for state in audit.chunks.states(*OF)} == {"new": "done", "old": "superseded"}


def test_a_dead_holder_loses_its_chunk_at_once_and_its_attempt_is_named(audit: AuditDb) -> None:
    slices = _planned(audit, 1)
    (lost,) = _claim(audit.chunks, slices).claimed
    (again,) = _slices(audit.chunks.states(*OF))
    assert _claim(audit.chunks, [again], "worker-2", dead=None).busy
    (claim,) = _claim(audit.chunks, [again], "worker-2", dead=True).claimed
    assert claim.dead == DeadAttempt("worker-1", 1)
    assert claim.attempt == 2
    assert audit.chunks.heartbeat([lost, claim], 600) == (lost,)
    for tell in (
        lambda: audit.chunks.done(lost, _published(5)),
        lambda: audit.chunks.failed(lost, Failure("transient", "too late")),
    ):
        with pytest.raises(LeaseLost, match="shop/orders, chunk c000"):
            tell()
    audit.chunks.release([lost])
    assert audit.chunks.states(*OF)[0].status == "running"


def test_a_lease_that_ran_out_is_taken_over_and_a_renewed_one_is_not(audit: AuditDb) -> None:
    _planned(audit, 2)
    claimed = _claim(audit.chunks, _slices(audit.chunks.states(*OF)), ttl=0).claimed
    audit.chunks.heartbeat(claimed[:1], 600)
    found = _claim(audit.chunks, _slices(audit.chunks.states(*OF)), "worker-2", dead=None)
    assert [busy.key for busy in found.busy] == ["c000"]
    assert [claim.key for claim in found.claimed] == ["c001"]


def test_an_earlier_attempt_of_the_same_worker_is_not_heard_either(audit: AuditDb) -> None:
    (earlier,) = _claim(audit.chunks, _planned(audit, 1), ttl=0).claimed
    _claim(audit.chunks, _slices(audit.chunks.states(*OF)))
    with pytest.raises(LeaseLost, match="attempt 1 no longer holds"):
        audit.chunks.done(earlier, _published(5))


def test_a_plan_that_is_out_of_date_claims_nothing(audit: AuditDb) -> None:
    slices = _planned(audit, 1)
    (claim,) = _claim(audit.chunks, slices).claimed
    audit.chunks.done(claim, _published(5))
    assert _claim(audit.chunks, slices, "worker-2").overtaken == ("c000",)
    audit.chunks.save(*OF, [_state(0)])
    assert audit.chunks.states(*OF)[0].status == "done", "nor does it overwrite what was done since"


def test_a_failed_chunk_can_be_claimed_again_and_forgets_its_error(audit: AuditDb) -> None:
    (claim,) = _claim(audit.chunks, _planned(audit, 1)).claimed
    audit.chunks.failed(claim, Failure("permanent", "a wrong type"))
    (state,) = audit.chunks.states(*OF)
    assert state.status == "failed"
    (again,) = _claim(audit.chunks, _slices([state])).claimed
    assert (again.attempt, again.dead) == (2, None)


def test_released_chunks_are_pending_but_for_one_that_somebody_took_over(audit: AuditDb) -> None:
    claims = _claim(audit.chunks, _planned(audit, 3), ttl=0).claimed
    _claim(audit.chunks, _slices(audit.chunks.states(*OF))[1:2], "worker-2")
    audit.chunks.release(claims)
    assert [state.status for state in audit.chunks.states(*OF)] == ["pending", "running", "pending"]


def test_one_lost_lease_keeps_a_whole_batch_from_being_told(audit: AuditDb) -> None:
    held, lost = _claim(audit.chunks, _planned(audit, 2)).claimed
    stranger = Claim(*OF, lost.due, "worker-2", "run", lost.attempt)
    with pytest.raises(LeaseLost):
        audit.chunks.done_all([(held, _published(1)), (stranger, _published(2))])
    assert [state.status for state in audit.chunks.states(*OF)] == ["running", "running"]


def test_more_chunks_than_a_query_takes_are_claimed_and_told_together(audit: AuditDb) -> None:
    slices = _planned(audit, 1500)
    claims = _claim(audit.chunks, slices).claimed
    audit.chunks.done_all([(claim, _published(n)) for n, claim in enumerate(claims)])
    assert len(claims) == 1500
    assert {state.status for state in audit.chunks.states(*OF)} == {"done"}


def test_a_chunk_that_was_never_planned_is_not_handed_out(audit: AuditDb) -> None:
    unknown = DueSlice(Slice(Chunk("x", WholeTable()), WholeTable()))
    assert _claim(audit.chunks, [unknown]).claimed == ()


def test_a_chunk_that_came_to_its_end_since_it_was_seen_held_is_not_loaded_again(audit: AuditDb) -> None:
    (slice_,) = _planned(audit, 1)
    (claim,) = _claim(audit.chunks, [slice_]).claimed
    audit.chunks.done(claim, _published(1))
    judged_while_held = [replace(slice_, attempts=1)]
    assert _claim(audit.chunks, judged_while_held, seen_held=["c000"]).overtaken == ("c000",)
    assert len(_claim(audit.chunks, judged_while_held).claimed) == 1
