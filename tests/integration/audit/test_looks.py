from __future__ import annotations

from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.planning.chunks import CursorRange, Interval, Slice
from hakiri_dagster.planning.states import ChunkState, DueSlice

OF = ("shop", "orders")


def test_a_look_is_a_failure_until_its_end_is_told(audit: AuditDb) -> None:
    assert audit.looks.all().known == {}
    audit.looks.begin(OF)
    audit.looks.begin(OF)
    looks = audit.looks.all()
    assert (looks.known[OF].failures, looks.known[OF].said, looks.known[OF].surveyed_at) == (2, None, None)
    assert looks.known[OF].looked_at <= looks.now


def test_what_a_survey_found_stays_until_the_next_one(audit: AuditDb) -> None:
    audit.looks.begin(OF)
    audit.looks.end(OF, said="a word", shown=3, surveyed=True)
    first = audit.looks.all().known[OF]
    assert (first.said, first.shown, first.failures) == ("a word", 3, 0)
    audit.looks.begin(OF)
    assert audit.looks.all().known[OF].shown == 3
    audit.looks.end(OF, said="a word", shown=4, surveyed=False)
    second = audit.looks.all().known[OF]
    assert second.surveyed_at == first.surveyed_at
    assert second.looked_at >= first.looked_at


def test_it_tells_which_of_the_pipelines_asked_for_have_something_pending(audit: AuditDb) -> None:
    for pipeline, table, status in (
        ("shop", "orders", "pending"),
        ("shop", "old", "failed"),
        ("shop", "killed", "pending"),
        ("other", "t", "pending"),
    ):
        state = ChunkState("c1", CursorRange(Interval(0, 1)), status)
        audit.chunks.save(pipeline, table, [state])
    due = DueSlice(Slice(state.chunk, state.bounds))
    audit.chunks.claim(
        "shop", "killed", [due], holder="dead", run_id="r", ttl_seconds=60, holder_is_dead=lambda _: True
    )
    assert audit.looks.all().pending == frozenset()
    assert audit.looks.all(["shop"]).pending == {OF}
    stale = audit.leases.stale(lambda _: True)
    taken = audit.leases.take_over(stale, holder="sweeper", ttl_seconds=60, holder_is_dead=lambda _: True)
    audit.leases.close(taken, holder="sweeper", message="it was killed")
    assert audit.looks.all(["shop"]).pending == {OF, ("shop", "killed")}
