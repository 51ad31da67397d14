from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hakiri_dagster.planning.chunks import Bounds, CursorRange, Interval, NullCursor, SourceFile, WholeTable
from hakiri_dagster.planning.replays import (
    KeptOfLoad,
    LeftAlone,
    LiveLoad,
    ReplayChunk,
    Shape,
    objection,
    plan_replay,
    read_again,
)
from tests.integration.destinations.postgres.scenario import make_table

TABLE = make_table("append")
JANUARY = CursorRange(Interval(0, 31))
KEPT = KeptOfLoad("january", 1, "skip", is_line=False, rows=2, standing="stands", bounds=JANUARY)


def left(kept: KeptOfLoad, shape: Shape = "cursor") -> str:
    chunks, (one,) = plan_replay(TABLE, [kept], shape)
    assert chunks == ()
    return one.reason


def test_rows_of_a_load_that_stands_are_replayed_into_their_chunk() -> None:
    later = replace(KEPT, load_id=7, bounds=CursorRange(Interval(20, 31)), on_fail=None, rows=1)
    assert plan_replay(TABLE, [KEPT, later], "cursor") == (
        (ReplayChunk("january", JANUARY, {1: JANUARY, 7: CursorRange(Interval(20, 31))}, 3),),
        (),
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"on_fail": "warn"}, "a rule only warns of them, and keeps none"),
        ({"on_fail": "abort"}, "the next apply loads it"),
        ({"load_id": None}, "nothing tells which load"),
        ({"chunk_key": None}, "nothing tells which load"),
        ({"standing": "unknown", "bounds": None}, "was not published: the next apply"),
        ({"standing": "replaced"}, "a later load has taken the place"),
        ({"standing": "gone"}, "the target was made anew"),
        ({"is_line": True}, "`hakiri run shop --table orders --chunk KEY`"),
        ({"bounds": WholeTable()}, "cut into other chunks"),
    ],
)
def test_others_are_left_alone_for_a_reason(changes: dict[str, Any], reason: str) -> None:
    assert reason in left(replace(KEPT, **changes))


def test_rows_that_are_left_for_one_reason_are_counted_together() -> None:
    warned = replace(KEPT, on_fail="warn")
    _, found = plan_replay(TABLE, [warned, replace(warned, load_id=9, rows=3)], "cursor")
    assert found == (LeftAlone("a rule only warns of them, and keeps none of them from the target", 5),)


@pytest.mark.parametrize(
    ("shape", "bounds"), [("cursor", NullCursor()), ("files", SourceFile("a", "0f")), ("full", WholeTable())]
)
def test_each_shape_has_its_chunks(shape: Shape, bounds: Bounds) -> None:
    (chunk,), found = plan_replay(TABLE, [replace(KEPT, bounds=bounds)], shape)
    assert (chunk.bounds, found) == (bounds, ())


def test_what_a_later_load_has_read_again_is_its_own_and_no_replays() -> None:
    beside = [
        LiveLoad(1, "january", JANUARY, is_replay=False),
        LiveLoad(3, "january", CursorRange(Interval(10, 31)), is_replay=False),
        LiveLoad(4, "january", JANUARY, is_replay=True),
        LiveLoad(5, "null", NullCursor(), is_replay=False),
    ]
    assert (read_again(1, beside).intervals, read_again(1, beside).nulls) == ((Interval(10, 31),), True)
    assert read_again(3, beside).intervals == ()


def test_a_table_that_is_loaded_whole_and_a_history_without_a_cursor_are_refused() -> None:
    assert objection(TABLE) is None
    assert "`hakiri run shop --table orders`" in (objection(make_table("truncate")) or "")
    history = make_table("scd2", cursor=None, load={"close_missing": False})
    assert "no time but that of its load" in (objection(history) or "")
    assert objection(make_table("scd2", load={"close_missing": False})) is None
