"""The 96-bit timestamps of old Parquet files, which Spark reads to microseconds and cannot tell apart any further."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

_THREADS = min(8, 2 * (os.cpu_count() or 1))


def count_sub_microseconds(columns: Mapping[str, Sequence[str]]) -> Mapping[str, Counter[str]]:
    """Count the timestamps with digits beyond microseconds, by file and column. `columns` names each file's."""
    with ThreadPoolExecutor(_THREADS) as pool:
        counts = pool.map(_count_in_file, columns, columns.values())
        return {path: count for path, count in zip(columns, counts, strict=True) if count}


def _count_in_file(path: str, names: Sequence[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as whole, pq.ParquetFile(path) as exact:
        batches = (file.iter_batches(columns=list(names), use_threads=False) for file in (whole, exact))
        for micros, nanos in zip(*batches, strict=True):
            for name in names:
                # Before 1677 and after 2262 both overflow 64 bits alike, so the difference holds.
                rest = _numbers(nanos.column(name)) - _numbers(micros.column(name)) * 1000
                found[name] += int(np.count_nonzero(rest))
    return +found


def _numbers(timestamps: pa.Array) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = timestamps.drop_null().cast(pa.int64()).to_numpy()
    return numbers
