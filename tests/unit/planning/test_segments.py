"""Segments of pages: one is planned ahead, and what comes after one that is walked again is walked again as well."""

from __future__ import annotations

from dataclasses import replace

from hakiri_dagster.planning.again import loaded_again
from hakiri_dagster.planning.chunks import Chunk, CursorRange, Interval, Segment
from hakiri_dagster.planning.repair import after_ledger
from hakiri_dagster.planning.segments import (
    END,
    due_segments,
    is_segment,
    leads_back,
    number_of,
    plan_segments,
    segment_key,
)
from hakiri_dagster.planning.states import ChunkState, published
from tests.unit.planning.ledger_rows import PublishedSlice


def walked(tokens: list[str], states: list[ChunkState] | None = None) -> list[ChunkState]:
    """As each segment that is due is published, and ends at the next of these."""
    known = {state.key: state for state in states or []}
    for number, token in enumerate(tokens, start=len(known) + 1):
        due = due_segments(known.values())
        known |= {state.key: state for state in due.states}
        (one,) = due.slices
        before = replace(known[one.key], attempts=known[one.key].attempts + 1)
        done = published(
            before, bounds=one.slice.bounds, cursor_committed=None, seen=None, rows=3, load_id=number, token=token
        )
        known[one.key] = done
        known |= {key: replace(known[key], status="superseded") for key in one.supersedes}
    return list(known.values())


def next_of(states: list[ChunkState]) -> Segment:
    (one,) = due_segments(states).slices
    assert isinstance(one.slice.bounds, Segment)
    return one.slice.bounds


def test_the_first_segment_begins_where_the_source_does() -> None:
    (one,) = due_segments([]).slices
    assert (one.key, one.slice.bounds) == ("segment-000001", Segment(1, None))
    assert is_segment(one.key)


def test_each_segment_begins_where_the_one_before_has_ended() -> None:
    states = walked(["b", "c"])
    assert next_of(states) == Segment(3, "c")
    assert [chunk.key for chunk in plan_segments(states)] == ["segment-000001", "segment-000002", "segment-000003"]
    assert len(due_segments(states).done) == 2


def test_where_the_source_had_no_more_the_last_segment_is_read_again() -> None:
    states = walked(["b", END])
    assert next_of(states) == Segment(2, "b")
    assert next_of(walked(["c"], states)) == Segment(3, "c"), "it goes on when there is more"


def test_a_segment_that_failed_is_the_next_one() -> None:
    states = walked(["b"])
    failed = [*states, ChunkState("segment-000002", Segment(2, "b"), "failed", attempts=2)]
    (one,) = due_segments(failed).slices
    assert (one.key, one.attempts) == ("segment-000002", 2)


def test_a_segment_that_somebody_holds_is_busy_and_none_is_planned_after_it() -> None:
    held = [*walked(["b"]), ChunkState("segment-000002", Segment(2, "b"), "running", attempts=1)]
    due = due_segments(held)
    assert due.slices == ()
    assert [one.key for one in due.busy] == ["segment-000002"]


def test_what_comes_after_a_segment_that_is_walked_again_goes_with_its_publish() -> None:
    states = walked(["b", "c", "d"])
    again = loaded_again(states, [Chunk("segment-000002", Segment(2, "b"))])
    (one,) = due_segments(again).slices
    assert (one.key, one.supersedes) == ("segment-000002", ("segment-000003",))
    anew = walked(["x"], list(again))
    assert next_of(anew) == Segment(3, "x")
    (third,) = due_segments(anew).slices
    assert third.supersedes == ()
    assert [s.status for s in due_segments(anew).states if s.key == "segment-000003"] == ["pending"]


def test_a_segment_that_the_ledger_has_lost_is_walked_again_with_all_after_it() -> None:
    states = walked(["b", "c", END])
    rows = [
        PublishedSlice(s.key, s.bounds, 3, None, s.load_id or 0, s.attempts, token=s.token)
        for s in states
        if s.key != "segment-000002"
    ]
    (one,) = due_segments(after_ledger(states, rows)).slices
    assert (one.key, one.supersedes) == ("segment-000002", ("segment-000003",))


def test_the_ledger_alone_tells_where_to_go_on() -> None:
    rows = [
        PublishedSlice(s.key, s.bounds, 3, None, s.load_id or 0, s.attempts, token=s.token) for s in walked(["b", "c"])
    ]
    assert next_of(list(after_ledger([], rows))) == Segment(3, "c")


def test_a_token_that_leads_back_is_noticed() -> None:
    chunks = plan_segments(walked(["b", "c"]))
    assert leads_back("b", Segment(3, "c"), chunks) == 2
    assert leads_back("c", Segment(3, "c"), chunks) == 3
    assert leads_back("d", Segment(3, "c"), chunks) is None
    assert leads_back("c", Segment(2, "b"), chunks) is None, "walked again, it may end where it did before"


def test_a_segment_that_began_elsewhere_than_the_one_before_has_ended_is_no_part_of_the_chain() -> None:
    first, second, third = walked(["b", "c", "d"])
    moved = [first, replace(second, token="x"), third]
    assert next_of(moved) == Segment(3, "x")


def test_segments_are_ordered_by_number_where_their_keys_get_longer() -> None:
    numbers = [1, 999_999, 1_000_000]
    assert [number_of(segment_key(number)) for number in numbers] == numbers
    assert number_of("2024-01") == 0, "of a table that was cut otherwise"
    states = [ChunkState(segment_key(n), Segment(n, str(n)), "done", load_id=n) for n in (1_000_000, 999_999)]
    (one,) = due_segments(states).slices
    assert (one.key, one.supersedes) == ("segment-000001", ("segment-999999", "segment-1000000"))


def test_a_table_that_had_windows_in_between_is_walked_from_the_beginning() -> None:
    """Rows of the segments have given way to those of the windows, which the first segment alone replaces."""
    states = walked(["b", END])
    window = ChunkState("id-0", CursorRange(Interval(0, 10)), "done", 1, 1, (Interval(0, 10),), 10, load_id=7)
    (one,) = due_segments([*states, window]).slices
    assert (one.key, one.slice.bounds, one.supersedes) == ("segment-000001", Segment(1), ("segment-000002",))
    lost = replace(window, status="pending", covered=(), cursor_committed=None)
    assert next_of([*states, lost]) == Segment(2, "b"), "of another target"
    begun = replace(states[0], load_id=8, token="x")
    assert next_of([begun, *states[1:], window]) == Segment(2, "x")
