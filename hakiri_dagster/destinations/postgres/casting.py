"""Casts of Arrow columns that tell which values do not fit, instead of failing at the first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Convert = Callable[[pa.Array], pa.Array]


def convert_each(array: pa.Array, wanted: pa.DataType, convert: Convert) -> tuple[pa.Array, pa.BooleanArray | None]:
    """The converted values, NULL where one does not convert, and which ones those are (None: all convert).

    A column converts as a whole; only one that holds a bad value is searched for it, by halves.
    """
    try:
        return convert(array), None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
        bad = np.zeros(len(array), dtype=bool)
        pieces: list[pa.Array] = []
        _halve(array, 0, convert, wanted, bad, pieces)
        return pa.concat_arrays(pieces), pa.array(bad)


def _halve(
    array: pa.Array, start: int, convert: Convert, wanted: pa.DataType, bad: np.ndarray, pieces: list[pa.Array]
) -> None:
    try:
        pieces.append(convert(array))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
        if len(array) == 1:
            bad[start] = True
            pieces.append(pa.nulls(1, wanted))
            return
        middle = len(array) // 2
        _halve(array.slice(0, middle), start, convert, wanted, bad, pieces)
        _halve(array.slice(middle), start + middle, convert, wanted, bad, pieces)


def null_where(array: pa.Array, mask: pa.BooleanArray) -> pa.Array:
    return pc.if_else(mask, pa.scalar(None, array.type), array)


def judge(array: pa.Array, easy: pa.BooleanArray, accept: Callable[[str], bool]) -> pa.BooleanArray | None:
    """Which texts are refused: `easy` ones are fine by a vectorised test, only the rest are looked at one by one."""
    doubtful = np.flatnonzero(~np.asarray(pc.fill_null(easy, True)))
    bad = np.zeros(len(array), dtype=bool)
    for index in doubtful.tolist():
        bad[index] = not accept(array[index].as_py())
    return pa.array(bad) if bad.any() else None
