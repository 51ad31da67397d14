"""Tables in parts: each is planned, owed, rewound and counted as a table of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.manifest.part_names import name_of
from hakiri_dagster.planning.again import loaded_again
from hakiri_dagster.planning.away_parts import kept_chunks
from hakiri_dagster.planning.chunk_plan import WindowSettings, plan_chunks
from hakiri_dagster.planning.chunks import Chunk, CursorRange, Extent, Interval, Part
from hakiri_dagster.planning.due import due_slices
from hakiri_dagster.planning.due_parts import due_as_one, due_by_part
from hakiri_dagster.planning.earlier_parts import renamed_key
from hakiri_dagster.planning.gaps import stretches
from hakiri_dagster.planning.parts import part_of, planned_by_part, within_part
from hakiri_dagster.planning.rewind import reach, rewind
from hakiri_dagster.planning.states import ChunkState, Due, published
from hakiri_dagster.planning.windows import IdWindow

A, B = Part("repo", "a/x"), Part("repo", "b")
NOW = datetime(2026, 11, 18, tzinfo=UTC)
SETTINGS = WindowSettings(IdWindow(10))
WHOLE = Extent(0, 12, 0, rows_at_upper=1)
"""Of the table without parts."""


def extent(lower: int, upper: int) -> Extent:
    return Extent(lower, upper, 0, rows_at_upper=1)


def chunks(parts: dict[Part, Extent]) -> tuple[Chunk, ...]:
    return planned_by_part(parts, lambda one: plan_chunks("numeric", one, SETTINGS, NOW))


def due(parts: dict[Part, Extent], states: Sequence[ChunkState] = (), away: Collection[Part] = ()) -> Due:
    def of_one(planned: Sequence[Chunk], known: Sequence[ChunkState], one: Extent) -> Due:
        return due_slices(planned, known, one, kind="numeric", now=NOW)

    if not parts:
        return due_as_one(chunks_as_one(), states, WHOLE, of_one)
    return due_by_part(chunks(parts), states, parts, away, of_one)


def chunks_as_one() -> tuple[Chunk, ...]:
    return plan_chunks("numeric", WHOLE, SETTINGS, NOW)


def loaded(parts: dict[Part, Extent], states: Sequence[ChunkState] = ()) -> list[ChunkState]:
    """As everything is published that is owed."""
    found = due(parts, states)
    known = {state.key: state for state in (*states, *found.states)}
    for number, one in enumerate(found.slices, start=len(states) + 1):
        bounds = one.slice.bounds
        assert isinstance(bounds, CursorRange)
        upper = bounds.interval.upper if one.settles else (parts[bounds.part] if bounds.part else WHOLE).upper
        before = replace(known[one.key], attempts=1)
        known[one.key] = published(before, bounds=bounds, cursor_committed=upper, seen=one.seen, rows=1, load_id=number)
    return list(known.values())


def forgotten(state: ChunkState) -> ChunkState:
    """As of a load that the ledger does not know."""
    return replace(state, status="pending", covered=(), rows=None, cursor_committed=None, seen=None)


def test_each_part_has_windows_of_its_own_extent_under_keys_of_its_own() -> None:
    keys = [chunk.key for chunk in chunks({A: extent(0, 12), B: extent(25, 27)})]
    assert keys == [
        "a~2Fx|id-0000000000..0000000010",
        "a~2Fx|id-0000000010..0000000020",
        "b|id-0000000020..0000000030",
    ]


def test_what_is_published_of_one_part_says_nothing_of_another() -> None:
    states = loaded({A: extent(0, 12)})
    owed = due({A: extent(0, 12), B: extent(0, 12)}, states)
    assert [one.key.split("|")[0] for one in owed.slices] == ["b", "b"], "a key that is added plans its own chunks only"
    assert all(isinstance(one.slice.bounds, CursorRange) and one.slice.bounds.part == B for one in owed.slices)


def test_each_part_goes_on_from_its_own_mark() -> None:
    states = loaded({A: extent(0, 12), B: extent(0, 4)})
    (one,) = due({A: extent(0, 12), B: extent(0, 7)}, states).slices
    assert (one.key, one.slice.bounds) == ("b|id-0000000000..0000000010", CursorRange(Interval(4, 10), B))


def test_a_part_that_left_the_manifest_keeps_its_rows_owes_nothing_and_is_told() -> None:
    states = loaded({A: extent(0, 12), B: extent(0, 4)})
    left = due({A: extent(0, 12)}, states)
    assert (left.slices, left.busy) == ((), ())
    assert [state.status for state in left.states if state.bounds.part == B] == []  # type: ignore[union-attr]  # ranges
    assert left.warnings == ("b left the partition keys: rows that are there stay, and nothing more of it is loaded",)
    assert due({A: extent(0, 12), B: extent(0, 4)}, states).slices == (), "nor is it loaded again when it comes back"


def test_what_is_known_of_a_part_that_is_away_stays_as_it_is() -> None:
    parts = {A: extent(0, 12), B: extent(0, 12)}
    published = loaded({A: extent(0, 12)})
    states = [*published, *due({B: extent(0, 12)}).states]
    found = due({A: extent(0, 12)}, states, away=[B])
    assert (found.slices, found.overtaken, found.warnings) == ((), (), ())
    assert not any(part_of(state.bounds) == B for state in found.states)
    assert {chunk.key for chunk in kept_chunks(states, [B])} == {c.key for c in chunks(parts) if part_of(c.bounds) == B}
    retired = [replace(state, status="retired") for state in states]
    assert kept_chunks(retired, [B]) == ()
    of_an_earlier_cut = [replace(s, generation=s.generation + (part_of(s.bounds) == A)) for s in states]
    assert kept_chunks(of_an_earlier_cut, [B]) == ()


def test_chunks_of_a_part_that_left_before_they_were_loaded_are_retired() -> None:
    planned = due({A: extent(0, 12), B: extent(0, 4)}).states
    left = due({A: extent(0, 12)}, planned)
    assert {s.key: s.status for s in left.states} == {"b|id-0000000000..0000000010": "retired"}


def test_what_was_published_of_parts_says_nothing_of_a_table_that_has_none_any_more() -> None:
    states = loaded({A: extent(0, 12), B: extent(0, 4)})
    states += [state for state in due({A: extent(0, 32)}, states).states if state.status == "pending"]
    owed = due({}, states)
    assert [one.slice.bounds for one in owed.slices] == [CursorRange(Interval(0, 10)), CursorRange(Interval(10, 20))]
    assert (owed.done, owed.carried_over) == ((), ())
    assert all(not state.carried_from for state in owed.states)
    assert {state.key for state in owed.states if state.status == "retired"} == {
        "a~2Fx|id-0000000010..0000000020",
        "a~2Fx|id-0000000020..0000000030",
        "a~2Fx|id-0000000030..0000000040",
    }
    (told,) = owed.warnings
    assert "the table has no partition keys any more: what was published of a/x, b is loaded once more" in told
    assert due({}, loaded({}, states)).warnings == (), "until it is loaded"


def test_an_attempt_at_a_part_that_is_no_more_may_not_publish() -> None:
    held = [replace(state, status="running") for state in due({A: extent(0, 4)}).states]
    assert due({}, held).overtaken == ("a~2Fx|id-0000000000..0000000010",)


def test_what_was_published_without_parts_says_nothing_of_any() -> None:
    states = loaded({})
    owed = due({A: extent(0, 12)}, states)
    assert [one.key.split("|")[0] for one in owed.slices] == ["a~2Fx", "a~2Fx"]
    assert all(not state.carried_from for state in owed.states)
    assert "2 chunk(s) were published before the table had partition keys" in owed.warnings[0]
    assert due({A: extent(0, 12)}, loaded({A: extent(0, 12)}, states)).slices == ()


def test_parts_that_come_back_are_owed_what_has_given_way_to_the_table_without_them() -> None:
    states = loaded({}, loaded({A: extent(0, 32), B: extent(0, 4)}))
    parts = {A: extent(0, 32), B: extent(0, 4)}
    owed = due(parts, states)
    assert [one.key for one in owed.slices] == [
        "a~2Fx|id-0000000000..0000000010",
        "a~2Fx|id-0000000010..0000000020",
        "b|id-0000000000..0000000010",
    ], "of what lay behind its end, rows are still there"
    assert due(parts, loaded(parts, states)).slices == ()
    lost = [forgotten(state) if part_of(state.bounds) is None else state for state in states]
    assert due(parts, lost).slices == (), "those loads were of another target"


def test_a_partition_key_that_was_renamed_is_refused_until_its_rows_are_gone() -> None:
    states = loaded({A: extent(0, 4)})
    other = Part("repository", A.value)
    told = renamed_key(states, [other]) or ""
    assert "the partition key was repo when the table was loaded and is repository now" in told
    assert "call it repo" in told
    assert renamed_key(states, [A, B]) is None
    assert renamed_key(states, []) is None
    assert [state.key for state in due({other: extent(0, 4)}, states).states] == [], "what is known is left as it is"

    dropped = [forgotten(state) for state in states]
    assert renamed_key(dropped, [other]) is None
    owed = due({other: extent(0, 4)}, dropped)
    (one,), (state,) = owed.slices, owed.states
    assert (one.attempts, state.attempts, state.status) == (1, 1, "pending"), "so that it can be claimed"
    assert state.bounds == within_part(states[0].bounds, other)


def test_a_rewind_takes_a_stretch_back_in_every_part_by_what_that_part_has_published() -> None:
    states = loaded({A: extent(0, 12)})
    states += [state for state in due({A: extent(0, 12), B: extent(0, 12)}, states).states if state not in states]
    touched = reach(states, Interval(0, 5))
    assert [state.key for state in touched.published] == ["a~2Fx|id-0000000000..0000000010"]
    assert [state.key for state in touched.owed] == ["b|id-0000000000..0000000010"]
    after = {state.key: state for state in states} | {s.key: s for s in rewind(states, Interval(0, 5), 1)}
    owed = due({A: extent(0, 12)}, list(after.values()))
    assert [one.key for one in owed.slices] == ["a~2Fx|id-0000000000..0000000010"]


def test_a_rewind_of_one_part_leaves_the_others_alone() -> None:
    states = loaded({A: extent(0, 12), B: extent(0, 12)})
    first = "id-0000000000..0000000010"
    assert [state.key for state in reach(states, Interval(0, 5), {"b"}).states] == [f"b|{first}"]
    after = {state.key: state for state in states}
    after |= {state.key: state for state in rewind(states, Interval(0, 5), 1, parts={"b"})}
    owed = due({A: extent(0, 12), B: extent(0, 12)}, list(after.values()))
    assert [one.key for one in owed.slices] == [f"b|{first}"]
    assert reach(states, Interval(0, 5), {"c"}).states == ()
    whole = [replace(state, bounds=within_part(state.bounds, None)) for state in states]
    assert reach(whole, Interval(0, 5), {"b"}).states == ()


def test_a_chunk_that_is_loaded_again_leaves_the_same_window_of_other_parts_alone() -> None:
    parts = {A: extent(0, 12), B: extent(0, 12)}
    states = loaded(parts)
    again = loaded_again(states, [chunk for chunk in chunks(parts) if chunk.key == "b|id-0000000000..0000000010"])
    assert [one.key for one in due(parts, again).slices] == ["b|id-0000000000..0000000010"]


def test_windows_that_vanished_are_told_together_within_a_part_only() -> None:
    found = stretches(chunks({A: extent(0, 12), B: extent(20, 22)}))
    assert [(len(one.keys), one.part) for one in found] == [(2, A), (1, B)]


@given(st.lists(st.text(min_size=1, max_size=12), min_size=2, max_size=2, unique=True))
def test_no_two_values_have_one_name_and_none_has_a_sign_that_keys_refuse(values: list[str]) -> None:
    names = [name_of(value) for value in values if not any("\ud800" <= c <= "\udfff" for c in value)]
    assert len(set(names)) == len(names)
    for name in names:
        assert not set(name) & set("|,/[]\"'% \n")
        assert "..." not in name
