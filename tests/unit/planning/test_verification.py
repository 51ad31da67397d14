"""Which published rows are compared with the source, on ids in windows of ten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hakiri_dagster.planning.chunks import Chunk, CursorRange, Interval, NullCursor, WholeTable
from hakiri_dagster.planning.intervals import Intervals
from hakiri_dagster.planning.replays import ReadAgain
from hakiri_dagster.planning.rewind import reach, rewind
from hakiri_dagster.planning.states import ChunkState
from hakiri_dagster.planning.verification import (
    Buckets,
    ChunkDifference,
    ChunkTally,
    ComparableChunk,
    QuarantinedRows,
    comparable_chunks,
    count_quarantined,
    newest_windows,
    position_of,
    within_stretch,
)
from hakiri_dagster.planning.windows import DAY


def window(lower: int) -> Chunk:
    return Chunk(str(lower), CursorRange(Interval(lower, lower + 10)))


def done(lower: int, *covered: tuple[int, int], generation: int = 1) -> ChunkState:
    chunk = window(lower)
    intervals = tuple(Interval(*one) for one in covered)
    return ChunkState(chunk.key, chunk.bounds, "done", 1, generation, intervals, load_id=lower + 1)


def compared(*intervals: tuple[int | None, int | None], key: str = "c") -> ComparableChunk:
    return ComparableChunk(key, tuple(CursorRange(Interval(*one)) for one in intervals))


NULL, OUTSIDE = Chunk("null", NullCursor()), Chunk("outside", CursorRange(Interval(30, None)))
PLAN = (window(0), window(10), window(20), NULL, OUTSIDE)
STATES = (
    done(0, (0, 10)),
    done(20, (20, 23)),
    ChunkState("null", NullCursor(), "done", 1, 1, load_id=50, seen="1"),
    ChunkState("outside", OUTSIDE.bounds, "done", 1, 1, load_id=51),
)


def bounds(chunks: tuple[ComparableChunk, ...]) -> dict[str, Intervals]:
    return {chunk.key: chunk.intervals for chunk in chunks}


def test_a_window_is_compared_as_far_as_it_is_covered_and_others_when_they_are_done() -> None:
    assert bounds(comparable_chunks(PLAN, STATES, ())) == {
        "0": (Interval(0, 10),), "20": (Interval(20, 23),), "null": (), "outside": (Interval(30, None),),
    }  # fmt: skip
    assert list(bounds(comparable_chunks(PLAN, STATES, ("20", "null", "outside")))) == ["0", "20"]


def test_rows_that_may_still_come_late_are_not_compared() -> None:
    assert bounds(comparable_chunks(PLAN, STATES, (), 21)) == {
        "0": (Interval(0, 10),), "20": (Interval(20, 21),), "null": (), "outside": (Interval(30, None),),
    }  # fmt: skip
    assert list(bounds(comparable_chunks(PLAN, STATES, (), 20))) == ["0", "null", "outside"]


def test_what_earlier_windows_have_published_counts_and_what_is_rewound_does_not() -> None:
    wide = ChunkState("wide", CursorRange(Interval(0, 20)), "retired", 1, 1, (Interval(0, 14),), load_id=3)
    assert bounds(comparable_chunks(PLAN, [wide], ())) == {"0": (Interval(0, 10),), "10": (Interval(10, 14),)}
    again = rewind(STATES, Interval(None, None), 7, keys=("0", "null"))
    after = list(({s.key: s for s in STATES} | {s.key: s for s in again}).values())
    assert list(bounds(comparable_chunks(PLAN, after, ()))) == ["20", "outside"]


def test_a_window_that_the_source_has_emptied_is_compared_though_it_is_not_planned() -> None:
    assert bounds(comparable_chunks((window(0),), STATES[:2], ())) == {
        "0": (Interval(0, 10),),
        "20": (Interval(20, 23),),
    }


def test_a_whole_table_is_compared_though_it_is_due_again() -> None:
    full = ChunkState("full", WholeTable(), "done", 1, 1, load_id=1)
    plan = (Chunk("full", WholeTable()),)
    assert comparable_chunks(plan, [full], ("full",)) == (ComparableChunk("full", (WholeTable(),)),)
    assert comparable_chunks(plan, [replace(full, status="pending")], ("full",)) == ()


def test_the_newest_windows_are_those_at_the_end_of_the_cursor() -> None:
    chunks = comparable_chunks(PLAN, STATES, ())
    assert [chunk.key for chunk in newest_windows(chunks, 1)] == ["20"]
    assert [chunk.key for chunk in newest_windows(chunks, 9)] == ["0", "20"]
    assert [chunk.key for chunk in within_stretch(chunks, Interval(9, 20))] == ["0"]


def test_named_chunks_are_rewound_of_whatever_kind_and_no_other_is() -> None:
    assert [state.key for state in reach(STATES, Interval(None, None), keys=("20", "null")).published] == ["20", "null"]
    again = {state.key: state for state in rewind(STATES, Interval(None, None), 7, keys=("20", "null"))}
    assert {key: (state.status, state.rewind) for key, state in again.items()} == {
        "0": ("done", None), "20": ("pending", 7), "null": ("pending", 7), "outside": ("done", None),
    }  # fmt: skip


def test_buckets_tell_chunks_apart_that_touch_have_gaps_or_no_end() -> None:
    buckets = Buckets.of(
        [compared((None, 5), key="a"), compared((5, 7), (9, 10), key="b"), compared((10, None), key="c")]
    )
    assert buckets.edges == (5, 7, 9, 10)
    found = buckets.tallies([(0, 1, 1), (1, 10, 2), (2, 100, 4), (3, 1000, 8), (4, 10000, 16)])
    assert found == {"a": ChunkTally(1, 1), "b": ChunkTally(1010, 10), "c": ChunkTally(10000, 16)}
    assert buckets.hull == Interval(None, None)
    assert Buckets.of([compared((1, 2))]).tallies([]) == {"c": ChunkTally(0)}


def test_a_quarantined_row_counts_in_its_chunk_once_and_where_it_is_published() -> None:
    chunks = [compared((0, 10), key="a"), compared((10, 13), key="b"), ComparableChunk("null", (NullCursor(),))]
    rows = [
        QuarantinedRows(1, "a", "3", 2),
        QuarantinedRows(1, "a", "4.9", 1),
        QuarantinedRows(1, "b", "11", 5),  # load 2 has read it again
        QuarantinedRows(2, "b", "11", 5),
        QuarantinedRows(2, "b", "13", 7),  # behind the mark
        QuarantinedRows(3, "null", None, 4),
        QuarantinedRows(3, "null", "NaN", 1),
    ]
    later = {1: ReadAgain((Interval(10, 20),)), 2: ReadAgain(), 3: ReadAgain()}
    assert count_quarantined(rows, chunks, "numeric", later.__getitem__) == {"a": 3, "b": 5, "null": 5}


@pytest.mark.parametrize(
    ("text", "kind", "position"),
    [
        ("1970-01-02", "date", DAY),
        ("1970-01-01T01:00:00+01:00", "timestamp", 0),
        ("1970-01-01 00:00:01", "timestamp", 1_000_000),
        ("-1.5", "numeric", -2),
        ("Infinity", "numeric", None),
        ("soon", "timestamp", None),
        ("many", "numeric", None),
    ],
)
def test_the_text_of_a_cursor_is_its_position(text: str, kind: str, position: int | None) -> None:
    assert position_of(text, kind) == position  # type: ignore[arg-type]  # names of kinds


def test_only_lost_doubled_and_changed_rows_are_drift() -> None:
    same = ChunkDifference("c", 10, 9, accounted=1)
    assert (same.is_drift, same.is_different) == (False, False)
    assert all(replace(same, **{name: 1}).is_drift for name in ("missing", "extra", "changed"))
    told = [replace(same, **{name: 1}) for name in ("deleted_at_source", "moved", "not_loaded")]
    assert all(one.is_different and not one.is_drift for one in told)
