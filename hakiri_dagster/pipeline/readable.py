"""Which rows of a batch could be read, and which slices they belong to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.contract import FILE_COLUMN, KEPT_COLUMN, MALFORMED_COLUMN, SLICE_COLUMN
from hakiri_dagster.pipeline.slices import Splitter


def unreadable(batch: pa.RecordBatch, *, keeps_misfits: bool) -> pa.BooleanArray | None:
    """Lines that could not be parsed; None if there is none. `keeps_misfits`: a value that does not fit its column
    spoils no line."""
    if MALFORMED_COLUMN not in batch.schema.names:
        return None
    marks = batch.column(MALFORMED_COLUMN)
    if marks.null_count == batch.num_rows:
        return None
    broken = pc.is_valid(marks)
    if keeps_misfits:
        broken = pc.and_(broken, pc.invert(pc.fill_null(pc.struct_field(marks, "readable"), True)))
    return broken


def settled(batch: pa.RecordBatch) -> pa.BooleanArray | None:
    """Rows out of the quarantine of which there was nothing left to ask when they were read; None if there are none."""
    if KEPT_COLUMN not in batch.schema.names:
        return None
    done = pc.is_valid(pc.struct_field(batch.column(KEPT_COLUMN), "verdict"))
    return done if pc.any(done).as_py() else None


def slices_of(batch: pa.RecordBatch, splitter: Splitter, cursor: str | None) -> npt.NDArray[np.int32]:
    if KEPT_COLUMN in batch.schema.names:
        return np.asarray(pc.struct_field(batch.column(KEPT_COLUMN), "slice"), dtype=np.int32)
    if SLICE_COLUMN in batch.schema.names:
        return np.asarray(batch.column(SLICE_COLUMN), dtype=np.int32)
    markers = batch.column(FILE_COLUMN) if FILE_COLUMN in batch.schema.names else None
    return splitter.assign(batch.num_rows, batch.column(cursor) if cursor else None, markers)
