"""Work on rows by the tasks that read them, which spares these the JVM and the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hakiri_dagster.connectors.contract import DirectRows

Batches = Iterator[pa.RecordBatch]


def map_direct(spark: SparkSession, rows: DirectRows, work: Callable[[Batches], Batches], schema: str) -> DataFrame:
    numbers = spark.range(0, rows.parts, 1, rows.parts)
    return numbers.mapInArrow(_Direct(rows, work), schema)


@dataclass(frozen=True, slots=True)
class _Direct:
    """For `mapInArrow` over part numbers."""

    rows: DirectRows
    work: Callable[[Batches], Batches]

    def __call__(self, numbers: Batches) -> Batches:
        parts = (part for batch in numbers for part in batch.column(0).to_pylist())
        return self.work(batch for part in parts for batch in self.rows.read(part))
