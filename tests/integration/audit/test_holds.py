"""Chunks that a replay holds: nobody else takes them, and they stay what they are."""

from __future__ import annotations

from hakiri_dagster.audit.claims import Claims
from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.audit.holds import Held
from hakiri_dagster.planning.chunks import Chunk, CursorRange, Interval, Slice
from hakiri_dagster.planning.states import ChunkState, DueSlice

BOUNDS = CursorRange(Interval(0, 10))
DONE = ChunkState("c", BOUNDS, "done", attempts=1, generation=1, rows=7, load_id=3)


def take(audit: AuditDb, holder: str = "one", *, dead: bool = False, ttl: float = 600) -> Held:
    return audit.holds.take("shop", "orders", ["c"], holder=holder, ttl_seconds=ttl, holder_is_dead=lambda _: dead)


def claim(audit: AuditDb, *, dead: bool = False, attempts: int = 1) -> Claims:
    due = DueSlice(Slice(Chunk("c", BOUNDS), BOUNDS), attempts)
    return audit.chunks.claim(
        "shop", "orders", [due], holder="loader", run_id="r", ttl_seconds=600, holder_is_dead=lambda _: dead
    )


def states(audit: AuditDb) -> tuple[ChunkState, ...]:
    return audit.chunks.states("shop", "orders")


def test_a_held_chunk_is_busy_for_all_others_and_stays_done(audit: AuditDb) -> None:
    audit.chunks.save("shop", "orders", [DONE])
    assert take(audit).keys == ("c",)
    assert states(audit) == (DONE,)
    assert [busy.holder for busy in take(audit, "two").busy] == ["one"]
    assert [busy.holder for busy in claim(audit).busy] == ["one"]
    assert [busy.key for busy in audit.chunks.held("shop", "orders", lambda _: False)] == ["c"]
    audit.chunks.save("shop", "orders", [DONE])  # whoever plans meanwhile
    assert [busy.holder for busy in claim(audit).busy] == ["one"]
    audit.holds.let_go("shop", "orders", ["c"], holder="one")
    assert claim(audit).busy == ()


def test_what_a_dead_holder_held_is_free_at_once_and_owes_nothing(audit: AuditDb) -> None:
    audit.chunks.save("shop", "orders", [DONE])
    take(audit)
    assert states(audit) == (DONE,)
    assert take(audit, "two", dead=True).keys == ("c",)
    assert len(claim(audit, dead=True).claimed) == 1


def test_a_lease_that_ended_is_nobodys_and_its_holder_frees_nothing_of_others(audit: AuditDb) -> None:
    audit.chunks.save("shop", "orders", [DONE])
    take(audit, ttl=-1)
    assert len(claim(audit).claimed) == 1
    audit.holds.heartbeat("shop", "orders", ["c"], holder="one", ttl_seconds=600)
    audit.holds.let_go("shop", "orders", ["c"], holder="one")
    assert [busy.holder for busy in take(audit, "two").busy] == ["loader"]


def test_a_chunk_whose_last_attempt_was_killed_is_left_to_the_next_apply(audit: AuditDb) -> None:
    audit.chunks.save("shop", "orders", [DONE])
    assert len(claim(audit).claimed) == 1
    assert take(audit, dead=True).unfinished == ("c",)


def test_a_chunk_that_the_audit_db_does_not_know_is_not_held(audit: AuditDb) -> None:
    held = take(audit)
    assert (held.keys, [busy.holder for busy in held.busy]) == ((), [None])
