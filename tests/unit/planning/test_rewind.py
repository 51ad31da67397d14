"""What a rewind takes back, on ids in windows of ten."""

from __future__ import annotations

from dataclasses import replace

from hakiri_dagster.planning.chunks import CursorRange, Interval, NullCursor
from hakiri_dagster.planning.progress import is_rewound
from hakiri_dagster.planning.rewind import reach, rewind
from hakiri_dagster.planning.states import ChunkState, published


def done(key: int, *, upper: int | None = None, generation: int = 1) -> ChunkState:
    bounds = CursorRange(Interval(key, key + 10))
    mark = key + 10 if upper is None else upper
    return ChunkState(
        str(key), bounds, "done", 1, generation, (Interval(key, mark),), cursor_committed=mark, seen="s", rows=3,
        load_id=key + 1,
    )  # fmt: skip


STATES = [done(0), done(10), done(20, upper=25)]


def keys(states: tuple[ChunkState, ...]) -> list[str]:
    return [state.key for state in states]


def after(states: list[ChunkState], *changed: ChunkState) -> list[ChunkState]:
    return list(({state.key: state for state in states} | {state.key: state for state in changed}).values())


def test_chunks_that_overlap_are_pending_in_a_new_generation_and_the_others_stay_done() -> None:
    changed = {state.key: state for state in rewind(STATES, Interval(12, 20), 7)}
    assert {state.generation for state in changed.values()} == {2}
    assert {key: state.status for key, state in changed.items()} == {"0": "done", "10": "pending", "20": "done"}
    again = changed["10"]
    assert (again.covered, again.cursor_committed, again.seen) == ((), None, None)
    assert (again.load_id, again.rows, again.rewind) == (11, 3, 7), (
        "what it is and where its rows came from stays known"
    )
    assert again.attempts == 2, "so that whoever looked before claims nothing"


def test_the_end_of_the_stretch_is_not_part_of_it() -> None:
    assert keys(reach(STATES, Interval(0, 10)).published) == ["0"]
    assert keys(reach(STATES, Interval(-5, 11)).published) == ["0", "10"]
    assert reach(STATES, Interval(30, 40)).states == ()


def test_rows_without_a_cursor_are_left_alone_and_those_outside_the_plan_are_reached_by_their_dates() -> None:
    null = ChunkState("null", NullCursor(), "done", 1, 1, load_id=50, seen="1")
    outside = ChunkState("outside", CursorRange(Interval(30, None)), "done", 1, 1, load_id=51, seen="x")
    states = [*STATES, null, outside]
    assert keys(reach(states, Interval(0, 30)).published) == ["0", "10", "20"]
    assert keys(reach(states, Interval(25, 99)).published) == ["20", "outside"]
    assert {s.key: s.status for s in rewind(states, Interval(25, 99), 1)}["null"] == "done"


def test_a_second_rewind_before_the_load_takes_nothing_back() -> None:
    once = after(STATES, *rewind(STATES, Interval(0, 20), 1))
    again = reach(once, Interval(0, 20))
    assert (again.published, keys(again.owed)) == ((), ["0", "10"])
    assert rewind(once, Interval(0, 20), 2) == ()
    wider = after(once, *rewind(once, Interval(0, 30), 2))
    assert {state.key: state.rewind for state in wider} == {"0": 1, "10": 1, "20": 2}


def test_a_chunk_that_was_never_loaded_is_owed_anyway() -> None:
    fresh = ChunkState("30", CursorRange(Interval(30, 40)), generation=1)
    found = reach([*STATES, fresh], Interval(20, 40))
    assert (keys(found.published), keys(found.owed)) == (["20"], ["30"])
    assert rewind([*STATES, fresh], Interval(30, 40), 1) == ()


def test_what_an_earlier_plan_has_published_of_a_chunk_is_taken_back_with_it() -> None:
    wide = ChunkState("0..100", CursorRange(Interval(0, 100)), generation=2)
    changed = {state.key: state for state in rewind([*STATES, wide], Interval(5, 6), 1)}
    assert changed["0..100"].rewind == 1
    assert [changed[state.key].covered for state in STATES] == [(), (), ()]
    assert [changed[state.key].generation for state in STATES] == [1, 1, 1]


def test_a_chunk_that_the_source_has_no_rows_for_now_waits_for_them() -> None:
    changed = {state.key: state for state in rewind(STATES, Interval(0, 30), 1, planned={"0", "10"})}
    assert {key: state.status for key, state in changed.items()} == {"0": "pending", "10": "pending", "20": "retired"}
    assert changed["20"].is_owed_again


def test_a_publish_ends_it() -> None:
    (again,) = [state for state in rewind(STATES, Interval(0, 5), 4) if state.is_rewound]
    told = published(again, bounds=again.bounds, cursor_committed=10, seen="s", rows=2, load_id=90)
    assert (told.rewind, told.status) == (None, "done")


def test_a_mark_in_a_rewound_chunk_speaks_of_rows_that_are_to_come_again() -> None:
    def marked(lower: int, upper: int) -> bool:
        return is_rewound(25, after(STATES, *rewind(STATES, Interval(lower, upper), 1)))

    assert not is_rewound(25, STATES)
    assert marked(10, 30)
    assert marked(20, 21)
    assert not marked(0, 20), "the chunk that holds the mark is not among them"
    stale = replace(done(20), key="20..25", status="retired", rewind=1, covered=())
    assert not is_rewound(25, [*STATES, stale]), "other chunks have published it since"
