"""AND, OR, NOT of columns."""

from __future__ import annotations

from itertools import product

import pytest

from tests.unit.quality.columnar.asking import cells_of, failing

TRUTHS = [True, False, None]
ONE, OTHER = zip(*product(TRUTHS, TRUTHS), strict=True)


def test_two_of_three_truths() -> None:
    columns = {"v": list(ONE), "w": list(OTHER)}
    assert cells_of("v AND w", **columns) == [True, False, None, False, False, False, None, False, None]
    assert cells_of("v OR w", **columns) == [True, True, True, True, False, None, True, None, None]


def test_one_of_three_truths() -> None:
    assert cells_of("NOT v", v=TRUTHS) == [False, True, None]
    assert cells_of("v IS TRUE", v=TRUTHS) == [True, False, False]
    assert cells_of("v IS FALSE", v=TRUTHS) == [False, True, False]
    assert cells_of("v IS NOT TRUE", v=TRUTHS) == [False, True, True]
    assert cells_of("v AND NULL", v=TRUTHS) == [None, False, None]


@pytest.mark.parametrize("text", ["{} AND v", "v AND {}", "NOT (NOT v OR NOT ({}))"])
def test_what_cannot_be_computed_matters_only_where_the_rest_does_not_decide(text: str) -> None:
    assert failing(text.format("(1 / w > 0)"), v=[True, False, None], w=[0, 0, 0]) == [0, 2]
