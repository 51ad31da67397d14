from __future__ import annotations

from typing import Any

from hakiri_dagster.pipeline.passes import SLICES_A_PASS, passes


def sizes(slices: int, at_most: int | None) -> list[int]:
    some: list[Any] = [object()] * slices
    return [len(group) for group in passes(some, at_most)]


def test_a_source_says_how_many_slices_are_read_at_once() -> None:
    assert sizes(5, None) == [5]
    assert sizes(5, 2) == [2, 2, 1]


def test_no_source_makes_a_pass_larger_than_it_may_be() -> None:
    assert sizes(SLICES_A_PASS + 1, 10 * SLICES_A_PASS) == [SLICES_A_PASS, 1]
