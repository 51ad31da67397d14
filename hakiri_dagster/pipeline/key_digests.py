"""Keys of rows as digests of 128 bits: those of equal keys are equal, those of others are not in anybody's lifetime.

A digest is of the rule, the slice and the values, so that keys of all rules and slices of a pass lie in one heap. It is
seeded anew for each pass: nobody can prepare values that collide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hakiri_dagster.quality.hashing import hashed, words_of

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
    about = slices.astype(np.uint64) | np.uint64(rule << 32)
    return hashed([[about], *(words_of(column, seed) for column in columns)], len(slices), seed, words=2)


def checksums(digests: Digests, slices: Slices) -> dict[int, int]:
    """One number a slice, that is the same for the same keys in any order, and hardly for others."""
    if len(slices) and (slices == slices[0]).all():  # mostly so, and told much sooner
        return {int(slices[0]): int(digests[:, 0].sum(dtype=np.uint64))}
    found: dict[int, int] = {}
    for index in np.unique(slices).tolist():
        found[index] = int(digests[slices == index, 0].sum(dtype=np.uint64))
    return found


def added(one: int, other: int) -> int:
    return (one + other) % (1 << 64)


def signed(checksum: int) -> int:
    """As Spark and Arrow hold it."""
    return checksum - (1 << 64) if checksum >= 1 << 63 else checksum
