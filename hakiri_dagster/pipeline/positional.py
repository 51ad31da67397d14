"""Frames on their way to Python workers: by position there, by name again in the worker.

PySpark looks every column up by its name on that way, where dots, backticks and letter case mislead it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

Batches = Iterator[pa.RecordBatch]


def map_in_arrow(frame: DataFrame, work: Callable[[Batches], Batches], schema: str) -> DataFrame:
    names = frame.columns
    nameless = frame.toDF(*[f"c{position}" for position in range(len(names))])
    return nameless.mapInArrow(_Named(tuple(names), work), schema)


@dataclass(frozen=True, slots=True)
class _Named:
    names: tuple[str, ...]
    work: Callable[[Batches], Batches]

    def __call__(self, batches: Batches) -> Batches:
        return self.work(batch.rename_columns(list(self.names)) for batch in batches)
