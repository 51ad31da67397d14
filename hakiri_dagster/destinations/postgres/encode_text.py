"""Rows as blocks of text COPY, for tables with a column that binary COPY cannot carry from a string."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.destinations.postgres.column_plan import ColumnPlan
from hakiri_dagster.destinations.postgres.text_form import text_of
from hakiri_dagster.planning.arrow_types import is_bytes, is_list

_TEXT = pa.large_string()  # a block may be larger than the 2 GiB that a string array holds
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
_BINARY_LOOK = r"\A([\x01-\x06])"


@dataclass(frozen=True, slots=True)
class TextRowEncoder:
    plans: tuple[ColumnPlan, ...]

    def write(self, batch: pa.RecordBatch) -> bytes:
        if not batch.num_rows:
            return b""
        columns = [_escaped(column) for column in batch.columns]
        # a block's first byte tells binary rows (0 to 6, of the column count) from text rows
        columns[0] = pc.replace_substring_regex(columns[0], _BINARY_LOOK, r"\\\1")
        rows = pc.binary_join_element_wise(
            *columns, pa.scalar("\t", _TEXT), null_handling="replace", null_replacement="\\N"
        )
        lines = pc.binary_join_element_wise(rows, pa.scalar("", _TEXT), pa.scalar("\n", _TEXT))
        return _bytes_of(lines)

    def finish(self) -> bytes:
        return b""


def _escaped(column: pa.Array) -> pa.Array:
    texts = text_of(column).cast(_TEXT)
    if at.is_string(column.type) or is_bytes(column.type) or is_list(column.type):
        for plain, escaped in _ESCAPES:
            texts = pc.replace_substring(texts, plain, escaped)
    return texts


def _bytes_of(lines: pa.Array) -> bytes:
    """The array's own buffer is the block: the values lie in it end to end."""
    _, offsets, text = lines.buffers()
    ends = memoryview(offsets).cast("q")[lines.offset : lines.offset + len(lines) + 1]
    return bytes(memoryview(text)[ends[0] : ends[-1]])
