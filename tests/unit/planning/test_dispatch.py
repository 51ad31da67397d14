from __future__ import annotations

from hakiri_dagster.planning.dispatch import to_dispatch

DUE = ("2024-01", "2024-02", "2024-03", "2024-04")


def test_no_more_chunks_are_taken_than_a_tick_may() -> None:
    assert to_dispatch(DUE, at_most=3) == DUE[:3]


def test_what_somebody_holds_is_left_to_him_and_makes_room_for_others() -> None:
    assert to_dispatch(DUE, at_most=2, leave={"2024-01"}) == ("2024-02", "2024-03")


def test_of_a_table_in_order_nothing_is_taken_that_comes_after_a_held_chunk() -> None:
    assert to_dispatch(DUE, at_most=9, leave={"2024-03"}, in_order=True) == DUE[:2]
    assert to_dispatch(DUE, at_most=9, leave={"2024-01"}, in_order=True) == ()
