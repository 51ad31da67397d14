"""Leases that nobody living holds are found and closed, each once, whoever looks."""

from __future__ import annotations

import pytest

from hakiri_dagster.audit.claims import Claim, Failure, Outcome
from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.audit.leases import StaleLease
from hakiri_dagster.audit.pass_places import PassOf
from hakiri_dagster.errors import LeaseLost
from hakiri_dagster.planning.chunks import CursorRange, Interval, Slice
from hakiri_dagster.planning.states import ChunkState, DueSlice

OF = ("shop", "orders")


def is_dead(holder: str) -> bool | None:
    return {"dead": True, "elsewhere": None}.get(holder, False)


def claimed(audit: AuditDb, key: str, holder: str, ttl_seconds: float = 60) -> Claim:
    state = ChunkState(key, CursorRange(Interval(0, 1)))
    audit.chunks.save(*OF, [state])
    due = DueSlice(Slice(state.chunk, state.bounds))
    claims = audit.chunks.claim(
        *OF, [due], holder=holder, run_id="r", ttl_seconds=ttl_seconds, holder_is_dead=lambda _: False
    )
    return claims.claimed[0]


def take(audit: AuditDb, *stale: StaleLease) -> tuple[StaleLease, ...]:
    return audit.leases.take_over(stale, holder="sweeper", ttl_seconds=60, holder_is_dead=is_dead)


def state(audit: AuditDb, key: str) -> ChunkState:
    return {state.key: state for state in audit.chunks.states(*OF)}[key]


def test_the_dead_and_those_whose_lease_has_ended_are_found_and_nobody_else(audit: AuditDb) -> None:
    claimed(audit, "of-the-dead", "dead")
    claimed(audit, "of-the-living", "alive")
    claimed(audit, "elsewhere-and-working", "elsewhere")
    claimed(audit, "elsewhere-and-silent", "elsewhere", ttl_seconds=-1)
    assert [lease.key for lease in audit.leases.stale(is_dead)] == ["elsewhere-and-silent", "of-the-dead"]


def test_a_lease_that_is_closed_leaves_a_chunk_that_failed_and_may_be_claimed(audit: AuditDb) -> None:
    claimed(audit, "c1", "dead")
    taken = take(audit, *audit.leases.stale(is_dead))
    audit.leases.close(taken, holder="sweeper", message="it was killed")
    assert (state(audit, "c1").status, state(audit, "c1").attempts, state(audit, "c1").killed) == ("failed", 1, True)
    assert audit.leases.stale(is_dead) == audit.chunks.held(*OF, is_dead) == ()
    due = DueSlice(Slice(state(audit, "c1").chunk, CursorRange(Interval(0, 1))), attempts=1)
    again = audit.chunks.claim(*OF, [due], holder="w", run_id="r", ttl_seconds=60, holder_is_dead=is_dead)
    assert [claim.attempt for claim in again.claimed] == [2]
    audit.chunks.failed(again.claimed[0], Failure("permanent", "a broken row"))
    assert (state(audit, "c1").status, state(audit, "c1").killed) == ("failed", False)


def test_while_the_sweeper_is_at_it_nobody_claims_the_chunk_and_no_other_sweeper_takes_it(audit: AuditDb) -> None:
    claimed(audit, "c1", "dead")
    stale = audit.leases.stale(is_dead)
    assert take(audit, *stale) == stale
    assert take(audit, *stale) == ()
    due = DueSlice(Slice(state(audit, "c1").chunk, CursorRange(Interval(0, 1))), attempts=1)
    claims = audit.chunks.claim(*OF, [due], holder="w", run_id="r", ttl_seconds=60, holder_is_dead=is_dead)
    assert [busy.holder for busy in claims.busy] == ["sweeper"]


def test_the_sweeper_holds_on_to_what_is_still_its_own(audit: AuditDb) -> None:
    for key in ("c1", "c2"):
        claimed(audit, key, "dead")
    stale = audit.leases.stale(is_dead)
    assert len(audit.leases.take_over(stale, holder="sweeper", ttl_seconds=-1, holder_is_dead=is_dead)) == 2
    due = DueSlice(Slice(state(audit, "c2").chunk, CursorRange(Interval(0, 1))), attempts=1)
    audit.chunks.claim(*OF, [due], holder="w", run_id="r", ttl_seconds=-1, holder_is_dead=is_dead)
    audit.leases.keep(stale, holder="sweeper", ttl_seconds=60)
    assert [lease.key for lease in audit.leases.stale(is_dead)] == ["c2"]


def test_what_somebody_took_over_meanwhile_is_left_to_him(audit: AuditDb) -> None:
    claimed(audit, "c1", "dead")
    stale = audit.leases.stale(is_dead)
    due = DueSlice(Slice(state(audit, "c1").chunk, CursorRange(Interval(0, 1))), attempts=1)
    claims = audit.chunks.claim(*OF, [due], holder="w", run_id="r", ttl_seconds=60, holder_is_dead=is_dead)
    assert take(audit, *stale) == ()
    audit.leases.close(stale, holder="sweeper", message="it was killed")
    audit.chunks.done(claims.claimed[0], Outcome(rows=1, bytes=1, cursor_committed=1, load_id=7))
    assert state(audit, "c1").status == "done"


def test_an_attempt_that_died_after_they_were_looked_for_is_left_to_the_next_look(audit: AuditDb) -> None:
    claimed(audit, "c1", "dead")
    stale = audit.leases.stale(is_dead)
    due = DueSlice(Slice(state(audit, "c1").chunk, CursorRange(Interval(0, 1))), attempts=1)
    audit.chunks.claim(*OF, [due], holder="dead", run_id="r", ttl_seconds=60, holder_is_dead=is_dead)
    assert take(audit, *stale) == ()
    assert [lease.attempt for lease in audit.leases.stale(is_dead)] == [2]


def test_an_attempt_that_was_given_up_and_wakes_up_is_told_so(audit: AuditDb) -> None:
    asleep = claimed(audit, "c1", "elsewhere", ttl_seconds=-1)
    audit.leases.close(take(audit, *audit.leases.stale(is_dead)), holder="sweeper", message="its lease ended")
    with pytest.raises(LeaseLost):
        audit.chunks.done(asleep, Outcome(rows=1, bytes=1, cursor_committed=1, load_id=7))


def test_a_chunk_that_was_only_held_stays_what_it_is(audit: AuditDb) -> None:
    audit.chunks.save(*OF, [ChunkState("c1", CursorRange(Interval(0, 1)), "done", load_id=3)])
    audit.holds.take(*OF, ["c1"], holder="dead", ttl_seconds=60, holder_is_dead=is_dead)
    audit.leases.close(take(audit, *audit.leases.stale(is_dead)), holder="sweeper", message="it was killed")
    assert (state(audit, "c1").status, audit.chunks.held(*OF, is_dead)) == ("done", ())


def test_runs_of_the_dead_are_marked_and_their_places_among_the_passes_are_free(audit: AuditDb) -> None:
    for run_id, holder in (("killed", "dead"), ("at-work", "alive")):
        audit.runs.start(run_id, *OF, holder=holder, holder_is_dead=lambda _: False)
    for holder in ("dead", "alive"):
        audit.pass_places.ask(PassOf(*OF, holder, parallelism=2), is_dead, number=None, ttl_seconds=60)
    assert audit.leases.close_runs(is_dead) == ("killed",)
    ended = {run.run_id: (run.status, run.error_message) for run in audit.runs.recent("shop")}
    assert ended == {"killed": ("failed", "its process died"), "at-work": ("running", None)}
    turn = audit.pass_places.ask(PassOf(*OF, "alive", parallelism=2), lambda _: False, number=None, ttl_seconds=60)
    assert turn.begins
    assert audit.leases.close_runs(is_dead) == ()
