from __future__ import annotations

from dataclasses import replace

from hakiri_dagster.planning.chunks import CursorRange, Interval, SourceFile, WholeTable
from hakiri_dagster.planning.repair import after_ledger
from hakiri_dagster.planning.states import ChunkState
from tests.unit.planning.ledger_rows import PublishedSlice

WINDOW = CursorRange(Interval(0, 10))
HELD = ChunkState("w", WINDOW, "running", attempts=2, generation=1, seen="old", attempt_seen="new", load_id=1)
ROW = PublishedSlice("w", WINDOW, rows=3, cursor_committed=10, load_id=2, attempt=2)


def test_a_publish_that_the_audit_db_missed_is_done() -> None:
    (state,) = after_ledger([HELD], [ROW])
    assert (state.status, state.covered, state.seen, state.load_id) == ("done", (Interval(0, 10),), "new", 2)
    assert state.from_ledger


def test_what_an_earlier_attempt_published_counts_while_a_later_one_goes_on() -> None:
    (state,) = after_ledger([replace(HELD, attempts=3)], [ROW])
    assert (state.status, state.covered, state.seen) == ("running", (Interval(0, 10),), None)


def test_a_publish_that_is_known_changes_nothing() -> None:
    known = replace(HELD, status="done", load_id=2)
    assert after_ledger([known], [ROW]) == (known,)


def test_what_it_superseded_is_superseded() -> None:
    old = ChunkState("old", SourceFile("a", "1"), "done", attempts=1, load_id=1)
    new = ChunkState("new", SourceFile("a", "2"), "running", attempts=1, supersedes=("old",))
    states = after_ledger([old, new], [PublishedSlice("new", new.bounds, 1, None, 2, 1)])
    assert {state.key: state.status for state in states} == {"old": "superseded", "new": "done"}


def test_a_lost_audit_db_is_remembered_by_the_ledger() -> None:
    (state,) = after_ledger([], [PublishedSlice("full", WholeTable(), 5, None, 9, attempt=4)])
    assert (state.status, state.attempts, state.rows, state.generation) == ("done", 4, 5, 1)
