"""Calls of functions."""

from __future__ import annotations

import pytest

from hakiri_dagster.expressions.functions import ALIKE, PLAIN
from hakiri_dagster.quality.columnar.calling import FUNCTIONS
from hakiri_dagster.quality.columnar.values import NotInArrow
from tests.unit.quality.columnar.asking import cells_of

OF_SPARK = {
    "upper", "lower", "ucase", "lcase", "initcap", "reverse", "translate", "replace", "ascii", "instr", "locate",
    "position", "sign", "signum", "sqrt", "cbrt", "exp", "ln", "log2", "log10", "power", "pow", "round",
}  # fmt: skip


def test_the_functions_that_only_spark_computes_are_these() -> None:
    """`docs/concepts.md` lists them."""
    assert {*PLAIN, *ALIKE} - set(FUNCTIONS) == OF_SPARK
    assert set(FUNCTIONS) <= {*PLAIN, *ALIKE}


def test_such_a_function_is_not_in_arrow() -> None:
    with pytest.raises(NotInArrow, match="upper"):
        cells_of("upper(v)", v=["a"])


def test_nan_is_asked_of_known_numbers() -> None:
    assert cells_of("isnan(v)", v=[float("nan"), 1.0, None]) == [True, False, False]


def test_mod_is_the_sign() -> None:
    assert cells_of("mod(v, 3)", v=[-7, 7, None]) == [-1, 1, None]
