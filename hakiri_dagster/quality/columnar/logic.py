"""AND, OR, NOT: of three truths, as SQL has them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Literal

import pyarrow.compute as pc

from hakiri_dagster.quality.columnar.types import BOOLEAN
from hakiri_dagster.quality.columnar.values import Cells, Value, undecided


def truths(value: Value) -> Cells:
    """Of NULL itself, too, which is of no type."""
    return value.cells.cast(BOOLEAN)


def combined(word: Literal["and", "or"], values: Sequence[Value]) -> Value:
    combine = pc.and_kleene if word == "and" else pc.or_kleene
    return undecided(reduce(combine, map(truths, values)), values)


def negated(value: Value) -> Value:
    return Value(pc.invert(truths(value)), value.failed)


def is_true(value: Value) -> Value:
    return Value(pc.fill_null(truths(value), False), value.failed)
