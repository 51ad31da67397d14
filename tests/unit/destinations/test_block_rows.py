"""Where the rows of a block lie, whatever they hold."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from hakiri_dagster.destinations.postgres.block_rows import row_bounds
from hakiri_dagster.destinations.postgres.column_plan import ColumnPlan
from hakiri_dagster.destinations.postgres.encoding import PostgresEncoderPlan
from hakiri_dagster.destinations.postgres.types import PgType

VALUES = ["", None, "\n", "\\.\n", "a\tb\r\n", "\x01", "\x02\x03", "é😀", "x" * 70_000]


@pytest.mark.parametrize("binary", [True, False])
def test_each_row_is_what_it_is_encoded_to_alone(binary: bool) -> None:
    text = ColumnPlan("t", PgType("text"), pa.string(), binary=binary)
    number = ColumnPlan("n", PgType("bigint"), pa.int64(), binary=True)
    plan = PostgresEncoderPlan((text, number))
    batch = pa.RecordBatch.from_arrays([pa.array(VALUES), pa.array(range(len(VALUES)))], names=["t", "n"])

    def encoded(rows: pa.RecordBatch) -> bytes:
        encoder = plan.encoder()
        return encoder.write(rows) + encoder.finish()

    block = encoded(batch)
    bounds = row_bounds(block)
    assert bounds[0] == 0
    assert bounds[-1] == len(block)
    rows = [block[start:end] for start, end in itertools.pairwise(bounds)]
    assert rows == [encoded(batch.slice(index, 1)) for index in range(len(VALUES))]
