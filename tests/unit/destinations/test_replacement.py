from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.destinations.postgres.replacement import (
    Earlier,
    bounds_from_json,
    bounds_to_json,
    covers,
    replacement,
)
from hakiri_dagster.planning.chunks import (
    Bounds,
    CursorRange,
    Interval,
    NullCursor,
    Part,
    Segment,
    SourceFile,
    WholeTable,
)


def span(lower: int | None, upper: int | None) -> CursorRange:
    return CursorRange(Interval(lower, upper))


def earlier(load_id: int, bounds: Bounds, cursor_max: int | None = None) -> Earlier:
    return Earlier(load_id, f"key-{load_id}", bounds, cursor_max)


INTERVALS = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda p: span(min(p), max(p) + 1))
BOUNDS = st.one_of(
    INTERVALS,
    st.just(NullCursor()),
    st.just(WholeTable()),
    st.builds(SourceFile, st.sampled_from(["a", "b"]), st.sampled_from(["00" * 16, "11" * 16])),
    st.builds(Segment, st.integers(1, 3), st.sampled_from([None, "/page?after=2"])),
    st.builds(CursorRange, st.just(Interval(0, 10)), st.builds(Part, st.just("repo"), st.sampled_from("ab"))),
    st.builds(NullCursor, st.builds(Part, st.just("repo"), st.sampled_from("ab"))),
)


@given(BOUNDS)
def test_bounds_survive_the_ledger(bounds: Bounds) -> None:
    assert bounds_from_json(bounds_to_json(bounds)) == bounds


@given(INTERVALS, st.lists(INTERVALS, max_size=6))
def test_every_overlapping_load_is_asked_for_its_rows(new: CursorRange, old: list[CursorRange]) -> None:
    entries = [earlier(index, bounds) for index, bounds in enumerate(old)]
    asked = set(replacement(new, entries).load_ids)
    for index, bounds in enumerate(old):
        points = range(bounds.interval.lower or 0, bounds.interval.upper or 0)
        shared = any((new.interval.lower or 0) <= point < (new.interval.upper or 0) for point in points)
        assert (index in asked) == shared


@given(BOUNDS, st.lists(BOUNDS, max_size=6))
def test_what_is_superseded_is_covered(new: Bounds, old: list[Bounds]) -> None:
    entries = [earlier(index, bounds) for index, bounds in enumerate(old)]
    assert set(replacement(new, entries).superseded) == {e.load_id for e in entries if covers(new, e.bounds)}


def test_a_load_whose_rows_all_lie_before_the_new_slice_is_left_alone() -> None:
    entries = [earlier(1, span(0, 100), cursor_max=9), earlier(2, span(0, 100), cursor_max=10)]
    assert replacement(span(10, 100), entries).load_ids == (2,)


def test_a_first_load_replaces_nothing() -> None:
    assert replacement(WholeTable(), []).load_ids == ()


def test_a_range_leaves_rows_without_a_cursor_alone() -> None:
    assert replacement(span(None, None), [earlier(1, NullCursor())]).load_ids == ()
    assert replacement(NullCursor(), [earlier(1, span(0, 5))]).load_ids == ()


def test_a_file_replaces_its_own_content_and_what_it_is_said_to_supersede_but_nothing_by_path() -> None:
    entries = [
        earlier(1, SourceFile("moved.csv", "11" * 16)),
        earlier(2, SourceFile("a.csv", "22" * 16)),
        earlier(3, SourceFile("a.csv", "33" * 16)),
    ]
    found = replacement(SourceFile("a.csv", "11" * 16), entries, supersedes=("key-3",))
    assert (found.wholly, found.superseded) == ((1, 3), (1, 3))


def test_rows_of_a_whole_load_give_way_to_a_range_within_it() -> None:
    found = replacement(span(0, 5), [earlier(1, WholeTable())])
    assert (found.partly, found.wholly, found.superseded) == ((1,), (), ())


def test_a_load_of_one_part_replaces_nothing_of_another() -> None:
    one, other = Part("repo", "a"), Part("repo", "b")
    of_other = [
        earlier(1, CursorRange(Interval(0, 10), other), 5),
        earlier(2, NullCursor(other)),
        earlier(3, CursorRange(Interval(0, 10), one), 5),
    ]
    found = replacement(CursorRange(Interval(0, 10), one), of_other)
    assert (found.load_ids, found.superseded) == ((3,), (3,))
    assert replacement(NullCursor(one), of_other).load_ids == ()


def test_what_was_loaded_before_a_table_had_parts_loses_the_rows_of_the_part() -> None:
    found = replacement(CursorRange(Interval(0, 10), Part("repo", "a")), [earlier(1, span(0, 10), 5)])
    assert (found.partly, found.superseded) == ((1,), ())


def test_a_segment_replaces_the_loads_of_its_own_number_whatever_token_they_began_with() -> None:
    loads = [earlier(1, Segment(1)), earlier(2, Segment(2, "x")), earlier(3, Segment(3, "y"))]
    found = replacement(Segment(2, "z"), loads)
    assert (found.wholly, found.superseded) == ((2,), (2,))
    both = replacement(Segment(2, "z"), loads, supersedes=["key-3"])
    assert (both.wholly, both.superseded) == ((2, 3), (2, 3))


def test_a_walk_that_begins_anew_replaces_what_was_loaded_before_there_were_segments() -> None:
    part = Part("repo", "a")
    loads = [
        earlier(1, span(0, 10), cursor_max=5),
        earlier(2, NullCursor()),
        earlier(3, SourceFile("a", "11" * 16)),
        earlier(4, WholeTable()),
        earlier(5, CursorRange(Interval(0, 10), part)),
    ]
    found = replacement(Segment(1), loads)
    assert (found.wholly, found.superseded) == ((1, 2, 3, 4, 5), (1, 2, 3, 4, 5))
    assert replacement(Segment(2, "x"), loads).load_ids == (), "they went with the first one"


@pytest.mark.parametrize("new", [span(0, 10), NullCursor(), SourceFile("a", "11" * 16)])
def test_rows_of_segments_give_way_to_whatever_the_table_is_cut_into_since(new: Bounds) -> None:
    assert replacement(new, [earlier(1, Segment(1)), earlier(2, Segment(2, "x"))]).partly == (1, 2)
    assert replacement(WholeTable(), [earlier(1, Segment(1))]).wholly == (1,)
