"""Keys of rows as digests of 128 bits: those of equal keys are equal, those of others are not in anybody's lifetime.

A digest is of the rule, the slice and the values, so that keys of all rules and slices of a pass lie in one heap. It is
seeded anew for each pass: nobody can prepare values that collide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
import xxhash

from hakiri_dagster.planning.arrow_types import is_bytes, is_text

Digests = npt.NDArray[np.uint64]
"""A row a key, of two halves."""

Slices = npt.NDArray[np.int32]


def keyed_rows(columns: Sequence[pa.Array]) -> npt.NDArray[np.bool_]:
    """Those without a NULL."""
    keyed = np.ones(len(columns[0]), dtype=bool)
    for column in columns:
        if column.null_count:
            keyed &= np.asarray(column.is_valid())
    return keyed


def digests_of(columns: Sequence[pa.Array], rule: int, slices: Slices, seed: int) -> Digests:
    """None of the values is NULL."""
    about = np.empty((len(slices), 2), dtype=np.uint64)
    about[:, 0] = rule
    about[:, 1] = slices
    table = np.ascontiguousarray(np.hstack([about, *(_fixed(column, seed) for column in columns)]))
    return _digests(_cells(table), seed)


def _fixed(column: pa.Array, seed: int) -> Digests:
    """Each value in two words. Zero has no sign here, and NaN is equal to itself, as in PostgreSQL."""
    kind = column.type
    if at.is_dictionary(kind):
        return _fixed(column.dictionary_decode(), seed)
    if is_text(kind) or is_bytes(kind):
        return _digests(column.cast(pa.large_binary()).to_pylist(), seed)
    if at.is_decimal(kind):
        wide = column.cast(pa.decimal128(38, kind.scale))
        return np.frombuffer(wide.buffers()[1], dtype=np.uint64)[2 * wide.offset :][: 2 * len(wide)].reshape(-1, 2)
    return _in_one_word(_word(column))


def _word(column: pa.Array) -> npt.NDArray[Any]:
    kind = column.type
    if at.is_floating(kind):
        numbers = np.asarray(column.cast(pa.float64())) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        return numbers
    if at.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif at.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz))
    elif at.is_time(kind):
        column = column.cast(pa.time64("us"))
    return np.asarray(pc.cast(column, pa.int64()))


def _in_one_word(numbers: npt.NDArray[Any]) -> Digests:
    words = np.zeros((len(numbers), 2), dtype=np.uint64)
    words[:, 0] = np.ascontiguousarray(numbers).view(np.uint64)
    return words


def _cells(table: Digests) -> list[memoryview]:
    rows = memoryview(table.tobytes())
    width = table.shape[1] * table.itemsize
    return [rows[start : start + width] for start in range(0, len(rows), width)]


def _digests(values: Sequence[bytes | memoryview], seed: int) -> Digests:
    digest = xxhash.xxh3_128_digest
    joined = b"".join([digest(value, seed) for value in values])
    return np.frombuffer(joined, dtype=np.uint64).reshape(-1, 2)


def checksums(digests: Digests, slices: Slices) -> dict[int, int]:
    """One number a slice, that is the same for the same keys in any order, and hardly for others."""
    found: dict[int, int] = {}
    for index in np.unique(slices).tolist():
        found[index] = int(digests[slices == index, 0].sum(dtype=np.uint64))
    return found


def added(one: int, other: int) -> int:
    return (one + other) % (1 << 64)


def signed(checksum: int) -> int:
    """As Spark and Arrow hold it."""
    return checksum - (1 << 64) if checksum >= 1 << 63 else checksum
