from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.destinations.postgres.replacement import (
    Earlier,
    bounds_from_json,
    bounds_to_json,
    covers,
    replacement,
)
from hakiri_dagster.planning.chunks import Bounds, CursorRange, Interval, NullCursor, SourceFile, WholeTable


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
