from __future__ import annotations

from dataclasses import replace

import pytest

from hakiri_dagster.planning.chunks import CursorRange, Interval, SourceFile, WholeTable
from hakiri_dagster.planning.repair import after_ledger
from hakiri_dagster.planning.states import ChunkState, ChunkStatus
from tests.unit.planning.ledger_rows import PUBLISHED_AT, PublishedSlice

WINDOW = CursorRange(Interval(0, 10))
HELD = ChunkState("w", WINDOW, "running", attempts=2, generation=1, seen="old", attempt_seen="new", load_id=1)
ROW = PublishedSlice("w", WINDOW, rows=3, cursor_committed=10, load_id=2, attempt=2)
FIRST = replace(ROW, cursor_committed=4, load_id=1, attempt=1)
DONE = replace(HELD, status="done", covered=(Interval(0, 10),), seen="new", rows=3, load_id=2)
FILE = ChunkState("a-1", SourceFile("a", "1"), "done", attempts=1, generation=1, rows=1, load_id=1)


def test_a_publish_that_the_audit_db_missed_is_done() -> None:
    (state,) = after_ledger([HELD], [FIRST, ROW])
    assert (state.status, state.covered, state.seen, state.load_id) == ("done", (Interval(0, 10),), "new", 2)
    assert state.from_ledger
    assert (state.bytes, state.winner, state.completed_at) == (70, "run/attempt-2", PUBLISHED_AT)


def test_what_an_earlier_attempt_published_counts_while_a_later_one_goes_on() -> None:
    (state,) = after_ledger([replace(HELD, attempts=3)], [FIRST, ROW])
    assert (state.status, state.covered, state.seen) == ("running", (Interval(0, 10),), None)


def test_what_an_attempt_published_that_began_after_the_audit_db_was_read_was_planned_by_another_word() -> None:
    (state,) = after_ledger([replace(HELD, attempts=1)], [FIRST, ROW])
    assert (state.status, state.covered, state.seen) == ("done", (Interval(0, 10),), None)


def test_a_publish_that_is_known_changes_nothing() -> None:
    assert after_ledger([DONE], [ROW]) == (DONE,)
    assert after_ledger([DONE], [replace(ROW, rows=0)]) == (DONE,), "an empty chunk is published too"


def test_a_publish_whose_rows_later_ones_replaced_is_known() -> None:
    assert after_ledger([DONE], [replace(ROW, superseded=True)]) == (DONE,)


@pytest.mark.parametrize("status", ["done", "failed", "retired"])
def test_what_the_ledger_does_not_know_is_owed_again_and_stored_once(status: ChunkStatus) -> None:
    (state,) = after_ledger([replace(DONE, status=status)], [])
    assert (state.covered, state.cursor_committed, state.seen, state.from_ledger) == ((), None, None, True)
    assert state.status == ("pending" if status == "done" else status)
    stored = replace(state, from_ledger=False)
    assert after_ledger([stored], []) == (stored,)


def test_an_older_publish_that_a_restored_ledger_knows_does_not_stand_for_the_lost_one() -> None:
    (state,) = after_ledger([DONE], [FIRST])
    assert (state.status, state.covered) == ("pending", ())


def test_what_another_ledger_has_of_a_chunk_does_not_stand_for_what_it_lacks() -> None:
    (state,) = after_ledger([DONE], [replace(FIRST, load_id=9)])
    stored = replace(state, from_ledger=False)
    assert state.status == "pending"
    assert after_ledger([stored], [replace(FIRST, load_id=9)]) == (stored,), "nor the next time"


@pytest.mark.parametrize("other", [replace(ROW, chunk_key="x"), replace(ROW, attempt=1)])
def test_another_load_with_the_same_id_is_not_the_chunks_own(other: PublishedSlice) -> None:
    state = next(s for s in after_ledger([DONE], [other]) if s.key == "w")
    assert state.status == "pending"


def test_a_chunk_that_was_carried_over_stands_and_falls_with_the_loads_it_was_carried_from() -> None:
    carried = replace(DONE, key="v", attempts=0, load_id=None, carried_from=(2,))
    assert after_ledger([DONE, carried], [ROW]) == (DONE, carried)
    assert [state.status for state in after_ledger([DONE, carried], [])] == ["pending", "pending"]
    strange = replace(ROW, chunk_key="x")
    known = {state.key: state.status for state in after_ledger([DONE, carried], [strange])}
    assert (known["w"], known["v"]) == ("pending", "pending")


def test_a_file_is_done_as_long_as_its_content_is_there_whoever_loaded_it() -> None:
    twin = PublishedSlice("b-1", SourceFile("b", "1"), 1, None, 7, 1)
    assert FILE in after_ledger([FILE], [twin])
    (gone,) = after_ledger([FILE], [])
    assert gone.status == "pending"


def test_a_version_of_a_file_that_is_back_in_a_restored_target_is_known_there() -> None:
    (state,) = after_ledger([replace(FILE, status="superseded")], [PublishedSlice("a-1", FILE.bounds, 1, None, 1, 1)])
    assert state.status == "done"


def test_what_it_superseded_is_superseded() -> None:
    old = ChunkState("old", SourceFile("a", "1"), "done", attempts=1, load_id=1)
    new = ChunkState("new", SourceFile("a", "2"), "running", attempts=1, supersedes=("old",))
    states = after_ledger([old, new], [PublishedSlice("new", new.bounds, 1, None, 2, 1)])
    assert {state.key: state.status for state in states} == {"old": "superseded", "new": "done"}


def test_a_lost_audit_db_is_remembered_by_the_ledger() -> None:
    (state,) = after_ledger([], [PublishedSlice("full", WholeTable(), 5, None, 9, attempt=4)])
    assert (state.status, state.attempts, state.rows, state.generation) == ("done", 4, 5, 1)
