from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.planning.pass_places import PassPlace, may_begin


def place(number: int, pipeline_id: str = "shop", *, parallelism: int = 2, at_work: bool = False) -> PassPlace:
    return PassPlace(number, pipeline_id, parallelism, at_work)


def test_as_many_passes_of_a_pipeline_are_at_work_as_it_says() -> None:
    places = [place(1, at_work=True), place(2), place(3)]
    assert may_begin(places, 2, None)
    assert not may_begin(places, 3, None)


def test_who_waits_for_others_of_its_pipeline_holds_up_no_other_pipeline() -> None:
    places = [place(1, at_work=True, parallelism=1), place(2, parallelism=1), place(3, "other")]
    assert not may_begin(places, 2, 2)
    assert may_begin(places, 3, 2)


def test_all_pipelines_together_have_so_many_and_no_more() -> None:
    places = [place(1, "a", at_work=True), place(2, "b", at_work=True), place(3, "c")]
    assert not may_begin(places, 3, 2)
    assert may_begin(places, 3, 3)


def test_who_came_first_is_first() -> None:
    places = [place(1, "a", at_work=True), place(2, "b"), place(3, "c")]
    assert not may_begin(places, 3, 2)
    assert may_begin(places, 2, 2)


def test_who_is_not_known_may_not() -> None:
    assert not may_begin([], 1, None)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.booleans()), max_size=12),
    st.none() | st.integers(1, 5),
)
def test_nobody_waits_while_there_is_room(waiters: list[tuple[str, int, bool]], most: int | None) -> None:
    limits = {"a": 1, "b": 2, "c": 3}
    places = [place(number, name, parallelism=limits[name]) for number, (name, _, _) in enumerate(waiters)]
    while beginners := [one for one in places if not one.at_work and may_begin(places, one.number, most)]:
        first = beginners[-1]  # whoever asks first: the answers to the others stay right
        places = [replace(one, at_work=True) if one == first else one for one in places]
        working = [one for one in places if one.at_work]
        assert most is None or len(working) <= most
        assert all(sum(one.pipeline_id == name for one in working) <= limit for name, limit in limits.items())
    waiting = [one for one in places if not one.at_work]
    full = most is not None and len(places) - len(waiting) >= most
    for one in waiting:
        busy = sum(other.at_work and other.pipeline_id == one.pipeline_id for other in places)
        assert full or busy >= one.parallelism
