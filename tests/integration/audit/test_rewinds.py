"""Rewinds in the audit DB: all of a stretch or nothing, known to whoever looked before, and kept."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg

from hakiri_dagster.audit.claims import Outcome
from hakiri_dagster.audit.database import SQLITE_FILE, AuditDb, open_audit
from hakiri_dagster.audit.rewinds import RewindAnswer, RewindRequest
from hakiri_dagster.audit.tables import StoredPlan
from hakiri_dagster.planning.chunks import CursorRange, Interval, Slice
from hakiri_dagster.planning.states import ChunkState, Due, DueSlice
from tests.integration.audit.conftest import OpenAudit

OF = ("shop", "orders")
PLAN = StoredPlan("numeric 10", None)
REQUEST = RewindRequest(*OF, Interval(10, 30), ("10", "30"), "RT-481", "ada", frozenset({"10", "20"}), frozenset())


def _state(number: int, generation: int = 1) -> ChunkState:
    return ChunkState(str(number), CursorRange(Interval(number, number + 10)), generation=generation)


def _load(audit: AuditDb, *numbers: int) -> None:
    """Published, by the load of the chunk's own number."""
    states = {state.key: state for state in audit.chunks.states(*OF)}
    slices = [DueSlice(Slice(s.chunk, s.bounds), s.attempts) for s in (states[str(number)] for number in numbers)]
    claims = audit.chunks.claim(
        *OF, slices, holder="w", run_id="r", ttl_seconds=60, holder_is_dead=lambda _: False
    ).claimed
    audit.chunks.done_all([(c, Outcome(7, 70, int(c.key) + 10, int(c.key) + 1)) for c in claims])


def _planned(audit: AuditDb) -> None:
    audit.tables.sync(*OF, Due(states=(_state(0), _state(10), _state(20))), plan=PLAN)
    _load(audit, 0, 10, 20)


def _rewind(audit: AuditDb, request: RewindRequest = REQUEST, dead: bool | None = False) -> RewindAnswer:
    return audit.rewinds.rewind(request, lambda _: dead)


def _statuses(audit: AuditDb) -> dict[str, str]:
    return {state.key: state.status for state in audit.chunks.states(*OF)}


def test_what_a_chunk_was_is_kept_whatever_becomes_of_it(audit: AuditDb, open_again: OpenAudit) -> None:
    _planned(audit)
    first = _rewind(audit)
    assert _statuses(audit) == {"0": "done", "10": "pending", "20": "pending"}
    assert {key: chunk.reason for key, chunk in audit.rewinds.waiting(*OF).items()} == {"10": "RT-481", "20": "RT-481"}
    _load(audit, 10, 20)
    assert audit.rewinds.waiting(*OF) == {}
    second = _rewind(audit, replace(REQUEST, reason="once more"))
    kept = open_again().rewinds.history("shop")
    assert [(one.rewind_id, one.generation, one.reason) for one in kept] == [
        (first.rewind_id, 2, "RT-481"),
        (second.rewind_id, 3, "once more"),
    ]
    assert [(c.key, c.generation, c.attempts, c.load_ids, c.rows) for c in kept[0].chunks] == [
        ("10", 1, 1, (11,), 7),
        ("20", 1, 1, (21,), 7),
    ]
    assert [(c.key, c.generation, c.attempts) for c in kept[1].chunks] == [("10", 2, 3), ("20", 2, 3)]
    assert audit.rewinds.history("other") == ()


def test_a_chunk_that_somebody_holds_keeps_all_of_them_as_they_are(audit: AuditDb) -> None:
    _planned(audit)
    before = audit.chunks.states(*OF)
    held = audit.holds.take(*OF, ["20"], holder="w", ttl_seconds=60, holder_is_dead=lambda _: False)
    assert [busy.key for busy in _rewind(audit).busy] == ["20"]
    assert (audit.chunks.states(*OF), audit.rewinds.history("shop")) == (before, ())
    audit.holds.let_go(*OF, held.keys, holder="w")
    assert _rewind(audit).rewind_id is not None


def test_an_attempt_that_died_is_to_be_fenced_before(audit: AuditDb) -> None:
    _planned(audit)
    state = audit.chunks.states(*OF)[1]
    again = DueSlice(Slice(state.chunk, state.bounds), state.attempts)
    audit.chunks.claim(*OF, [again], holder="w", run_id="r", ttl_seconds=60, holder_is_dead=lambda _: False)
    answer = _rewind(audit, dead=True)
    assert (answer.unfenced, answer.rewind_id) == (("10",), None)
    assert _rewind(audit, replace(REQUEST, fenced=frozenset({"10"})), dead=True).rewind_id is not None
    assert _statuses(audit) == {"0": "done", "10": "pending", "20": "pending"}


def test_a_plan_that_does_not_know_of_it_stores_nothing(audit: AuditDb) -> None:
    """Not even of chunks that it does not name: what they cover may be what was taken back."""
    _planned(audit)
    seen = audit.rewinds.last(*OF)
    answer = _rewind(audit)
    carried = replace(_state(50, generation=2), status="done", covered=(Interval(10, 30),), carried_from=(11, 21))
    audit.tables.sync(*OF, Due(states=(carried,)), plan=StoredPlan("numeric 40", None), last_rewind=seen)
    assert "50" not in _statuses(audit)
    assert audit.tables.plan(*OF) == "numeric 10"
    audit.tables.sync(*OF, Due(states=(_state(60, 2),)), plan=PLAN, last_rewind=answer.rewind_id or 0)
    assert _statuses(audit)["60"] == "pending"


def test_of_many_at_once_one_takes_the_chunks_back(audit: AuditDb) -> None:
    _planned(audit)
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: _rewind(audit), range(6)))
    assert len([answer for answer in answers if answer.rewind_id is not None]) == 1
    assert {state.attempts for state in audit.chunks.states(*OF)} == {1, 2}


def test_an_audit_db_of_before_learns_it(audit: AuditDb, audit_url: str | None, tmp_path: Path) -> None:
    _planned(audit)
    place = "hakiri." if audit_url else ""
    back = [
        "DROP TABLE {}rewound_chunk", "DROP TABLE {}rewind", "ALTER TABLE {}pipeline_chunks DROP COLUMN rewind_id",
        "UPDATE {}audit_version SET version = 4",
    ]  # fmt: skip
    with (
        psycopg.connect(audit_url, autocommit=True)
        if audit_url
        else sqlite3.connect(tmp_path / SQLITE_FILE, isolation_level=None)
    ) as old:
        for statement in back:
            old.execute(statement.format(place))  # type: ignore[arg-type]  # of two drivers
    with open_audit(audit_url, tmp_path) as again:
        assert _statuses(again) == dict.fromkeys(("0", "10", "20"), "done")
        assert _rewind(again).rewind_id is not None


def test_its_chunks_are_backfilling_until_they_are_published(audit: AuditDb) -> None:
    _planned(audit)
    assert audit.status("shop")["phase"] == "streaming"
    _rewind(audit)
    told = audit.status("shop")
    assert (told["phase"], told["chunks"]["pending"], told["chunks"]["total"]) == ("backfilling", 2, 3)
    assert [(one["reason"], one["chunks"]) for one in told["rewinds"]] == [("RT-481", 2)]
    _load(audit, 10)
    assert audit.status("shop")["rewinds"][0]["chunks"] == 1
    _load(audit, 20)
    assert (audit.status("shop")["phase"], audit.status("shop")["rewinds"]) == ("streaming", [])
