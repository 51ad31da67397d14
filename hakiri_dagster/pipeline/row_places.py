"""Where rows came from: which file, and how far into the part of it that this task reads. Runs in Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from hakiri_dagster.connectors.contract import FILE_COLUMN, RECORD_COLUMN, SPLIT_COLUMN, FileOrigin

Slices = np.ndarray[Any, np.dtype[np.int32]]

_ROWS_AT_ONCE = 1000

NO_MARKER = 0
"""Of the only file of a reading, and of rows of no file."""


class Place(NamedTuple):
    """`after` counts rows from the first one of the split, of those that the source lets through."""

    file: str | None = None
    split: int | None = None
    after: int | None = None


class Places:
    """Of one task, which meets the rows of a split one after the other."""

    def __init__(self, files: Sequence[FileOrigin]) -> None:
        self._paths = {origin.marker: origin.path for origin in files}
        self._only = files[0].path if len(files) == 1 else None
        self._firsts: dict[tuple[int, int], int] = {}

    def note(self, batch: pa.RecordBatch) -> None:
        """To be told of every batch, before a row of it is set aside."""
        if RECORD_COLUMN not in batch.schema.names or not batch.num_rows:
            return
        markers, splits = _markers(batch), batch.column(SPLIT_COLUMN).to_numpy()
        other = (splits[1:] != splits[:-1]) | (markers[1:] != markers[:-1])
        begins = np.concatenate(([0], np.flatnonzero(other) + 1))
        records = batch.column(RECORD_COLUMN).to_numpy()
        for marker, split, record in zip(markers[begins], splits[begins], records[begins], strict=True):
            self._firsts.setdefault((int(marker), int(split)), int(record))

    def runs(self, rows: pa.RecordBatch, slices: Slices) -> Iterator[tuple[int, int, Place]]:
        """From where up to where rows that follow one another have one slice and one place; not too many at once."""
        if RECORD_COLUMN in rows.schema.names:
            yield from ((row, row + 1, place) for row, place in enumerate(self.of(rows)))
            return
        markers = _markers(rows)
        other = (slices[1:] != slices[:-1]) | (markers[1:] != markers[:-1])
        begins = np.union1d(np.flatnonzero(other) + 1, np.arange(0, rows.num_rows, _ROWS_AT_ONCE)).tolist()
        for begin, end in pairwise([*begins, rows.num_rows]):
            file = self._only if FILE_COLUMN not in rows.schema.names else self._paths.get(int(markers[begin]))
            yield begin, end, Place(file)

    def of(self, rows: pa.RecordBatch) -> list[Place]:
        files = self._files(rows)
        if RECORD_COLUMN not in rows.schema.names:
            return [Place(file) for file in files]
        splits, records = rows.column(SPLIT_COLUMN).to_pylist(), rows.column(RECORD_COLUMN).to_pylist()
        return [
            Place(file, split, record - self._firsts[marker, split])
            for file, marker, split, record in zip(files, _markers(rows).tolist(), splits, records, strict=True)
        ]

    def _files(self, rows: pa.RecordBatch) -> list[str | None]:
        if FILE_COLUMN not in rows.schema.names:
            return [self._only] * rows.num_rows
        return [self._paths.get(marker) for marker in rows.column(FILE_COLUMN).to_pylist()]


def _markers(rows: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if FILE_COLUMN not in rows.schema.names:
        return np.full(rows.num_rows, NO_MARKER, dtype=np.int64)
    markers: np.ndarray[tuple[int], np.dtype[np.int64]] = rows.column(FILE_COLUMN).fill_null(NO_MARKER).to_numpy()
    return markers
