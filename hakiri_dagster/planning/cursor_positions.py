"""Values of a cursor column as the integers that bounds of slices are (`planning/chunks.py`), on Arrow columns."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.errors import SourceError

_MICROSECONDS_A_DAY = 86_400_000_000
_MOST_DIGITS = 20

Positions = npt.NDArray[np.int64]


def cursor_positions(column: pa.Array) -> tuple[Positions, npt.NDArray[np.bool_]]:
    """Cursor values as integers (`planning/chunks.py`) and which of them have no position."""
    try:
        numbers = _numbers(column)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise SourceError(
            f"the cursor of a row has no position within 64 bits: {error}",
            hint="set it to NULL in that row, or choose another cursor",
        ) from error
    return np.asarray(numbers.fill_null(0), dtype=np.int64), np.asarray(numbers.is_null())


def _numbers(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", tz=kind.tz), safe=False).cast(pa.int64())
    if pa.types.is_date(kind):
        days = column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
        return pc.multiply_checked(days, _MICROSECONDS_A_DAY)
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_string(kind):
        return _floors_of_texts(column)
    if pa.types.is_floating(kind):
        column = pc.if_else(pc.is_finite(column), column, None)
    return pc.floor(column).cast(pa.int64())


def _floors_of_texts(column: pa.Array) -> pa.Array:
    """Numbers that no decimal of Spark's holds come as PostgreSQL writes them."""
    return pa.array([None if text is None else _floor(Decimal(text)) for text in column.to_pylist()], pa.int64())


def _floor(number: Decimal) -> int | None:
    if not number.is_finite():
        return None
    if number.adjusted() > _MOST_DIGITS:  # written out, a short text may be a billion digits
        raise OverflowError(f"{number:.3e}")
    return math.floor(number)
