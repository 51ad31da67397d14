"""Work on rows, by the tasks that read them where that can be: it spares the rows the JVM and the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from hakiri_dagster.connectors.contract import DirectRows
from hakiri_dagster.pipeline.positional import map_in_arrow

Batches = Iterator[pa.RecordBatch]


def map_rows(frame: DataFrame, direct: DirectRows | None, work: Callable[[Batches], Batches], schema: str) -> DataFrame:
    """`direct`: the rows of the frame, where they need not pass through it."""
    if direct is None:
        return map_in_arrow(frame, work, schema)
    numbers = frame.sparkSession.range(0, direct.parts, 1, direct.parts)
    return numbers.mapInArrow(_Direct(direct, work), schema)


@dataclass(frozen=True, slots=True)
class _Direct:
    """For `mapInArrow` over part numbers."""

    rows: DirectRows
    work: Callable[[Batches], Batches]

    def __call__(self, numbers: Batches) -> Batches:
        parts = (part for batch in numbers for part in batch.column(0).to_pylist())
        return self.work(batch for part in parts for batch in self.rows.read(part))
