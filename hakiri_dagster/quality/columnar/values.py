"""What a part of an expression comes to over the rows of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.expressions.tree import Number, Text

Cells: TypeAlias = pa.Array | pa.Scalar
"""A scalar is the same in each row."""

Numbers = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class NotInArrow(Exception):
    """Nothing of Arrow's gives Spark's answer to the last bit. Said of types and of what is written out, never of
    values: an expression over columns of some types has one judge."""


@dataclass(frozen=True, slots=True)
class Value:
    """`failed` is never NULL: where it is true, the value could not be computed and is NULL. None: it always can.
    `written`: what stands there, if it is written out."""

    cells: Cells
    failed: Cells | None = None
    written: Text | Number | None = None

    @property
    def type(self) -> pa.DataType:
        return self.cells.type


def either(masks: Iterable[Cells | None]) -> Cells | None:
    found: Cells | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else pc.or_(found, mask)
    return found


def failed_of(values: Iterable[Value]) -> Cells | None:
    return either(value.failed for value in values)


def attempted(cells: Cells, of: Sequence[Value]) -> Value:
    """Cells that are NULL where they could not be computed; where a part of them is NULL they are rightly so."""
    missed = pc.is_null(cells)
    for part in of:
        missed = pc.and_(missed, pc.is_valid(part.cells))
    return Value(cells, either([failed_of(of), missed]))


def undecided(cells: Cells, of: Sequence[Value]) -> Value:
    """What could not be computed matters only where the rest does not decide: then the whole is NULL."""
    failed = failed_of(of)
    return Value(cells, None if failed is None else pc.and_(pc.is_null(cells), failed))


def spread(cells: Cells, rows: int) -> pa.Array:
    return pa.repeat(cells, rows) if isinstance(cells, pa.Scalar) else cells


def by_column(work: Callable[..., pa.Array], *given: Cells) -> Cells:
    """For work that takes columns only."""
    rows = next((len(cells) for cells in given if not isinstance(cells, pa.Scalar)), None)
    made = work(*(spread(cells, 1 if rows is None else rows) for cells in given))
    return made[0] if rows is None else made


def numbers(column: pa.Array) -> Numbers:
    """0 where there is none."""
    return np.asarray(column.fill_null(0) if column.null_count else column)


def nulls(*columns: pa.Array) -> Mask | None:
    """Where any of them has none."""
    found: Mask | None = None
    for column in columns:
        if column.null_count:
            mask = np.asarray(column.is_null())
            found = mask if found is None else found | mask
    return found


def column_of(values: Numbers, kind: pa.DataType, *without: Mask | None) -> pa.Array:
    """`without`: the rows that have no value."""
    masks = [mask for mask in without if mask is not None]
    return pa.array(values, kind, mask=np.logical_or.reduce(masks) if masks else None)
