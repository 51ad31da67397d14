"""Which slice a row belongs to, for many slices read in one pass. Runs in Spark's workers, on Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hakiri_dagster.planning.chunks import (
    FIRST_POSITION,
    LAST_POSITION,
    Bounds,
    CursorRange,
    NullCursor,
    Segment,
    SourceFile,
    WholeTable,
)
from hakiri_dagster.planning.cursor_positions import Positions, cursor_positions

NO_SLICE = -1


@dataclass(frozen=True, slots=True)
class Splitter:
    """Gives each row of a batch the index of its slice, or NO_SLICE for a row of a chunk that is not being loaded."""

    single: bool
    lowers: tuple[int, ...] = ()
    uppers: tuple[int, ...] = ()
    range_slices: tuple[int, ...] = ()
    null_slice: int = NO_SLICE
    by_file: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, bounds: Sequence[Bounds], markers_by_path: dict[str, int]) -> Splitter:
        if len(bounds) == 1 and not isinstance(bounds[0], CursorRange | NullCursor):
            return cls(single=True)
        ranges: list[tuple[int, int, int]] = []
        files: list[tuple[int, int]] = []
        null_slice = NO_SLICE
        for index, bound in enumerate(bounds):
            match bound:
                case CursorRange(interval):
                    lower = FIRST_POSITION if interval.lower is None else max(interval.lower, FIRST_POSITION)
                    upper = LAST_POSITION if interval.upper is None else min(interval.upper, LAST_POSITION)
                    ranges.append((lower, upper, index))
                case NullCursor():
                    null_slice = index
                case SourceFile(path, _):
                    files.append((markers_by_path.get(path, 0), index))
                case WholeTable() | Segment():
                    raise ValueError("a whole table is read alone, and so is a segment")
        ranges.sort()
        return cls(
            single=False,
            lowers=tuple(r[0] for r in ranges),
            uppers=tuple(r[1] for r in ranges),
            range_slices=tuple(r[2] for r in ranges),
            null_slice=null_slice,
            by_file=tuple(files),
        )

    def assign(self, rows: int, cursor: pa.Array | None, file_markers: pa.Array | None) -> npt.NDArray[np.int32]:
        if self.single:
            return np.zeros(rows, dtype=np.int32)
        if file_markers is not None and self.by_file:
            return self._by_file(np.asarray(file_markers, dtype=np.int64))
        if cursor is None:
            raise ValueError("slices of a cursor need the cursor column")
        return self._by_cursor(cursor)

    def _by_file(self, markers: Positions) -> npt.NDArray[np.int32]:
        slices = np.full(len(markers), NO_SLICE, dtype=np.int32)
        for marker, index in self.by_file:
            slices[markers == marker] = index
        return slices

    def _by_cursor(self, cursor: pa.Array) -> npt.NDArray[np.int32]:
        positions, without = cursor_positions(cursor)
        slices = np.full(len(positions), NO_SLICE, dtype=np.int32)
        if self.lowers:
            place = np.searchsorted(np.array(self.lowers, dtype=np.int64), positions, side="right") - 1
            inside = (place >= 0) & ~without
            uppers = np.array(self.uppers, dtype=np.int64)[np.maximum(place, 0)]
            inside &= (positions < uppers) | (uppers == LAST_POSITION)
            slices[inside] = np.array(self.range_slices, dtype=np.int32)[place[inside]]
        slices[without] = self.null_slice
        return slices
