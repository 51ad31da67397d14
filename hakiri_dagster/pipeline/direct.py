"""Work on rows, by the tasks that read them where that can be: it spares the rows the JVM and the way back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
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
class EmptyTextsAsNull:
    """`DirectRows` of a source whose empty texts are NULL (`projection.project` does the same to a frame). `names`: the
    columns that hold texts."""

    rows: DirectRows
    names: frozenset[str]

    @property
    def parts(self) -> int:
        return self.rows.parts

    @property
    def same_twice(self) -> bool:
        return self.rows.same_twice

    def read(self, part: int) -> Batches:
        for batch in self.rows.read(part):
            columns = [
                _without_empty(column) if name in self.names else column
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def only(self, names: Collection[str]) -> EmptyTextsAsNull:
        return replace(self, rows=self.rows.only(names))


def _without_empty(texts: pa.StringArray) -> pa.StringArray:
    empty = pc.equal(pc.binary_length(texts), 0)
    return pc.if_else(empty, pa.scalar(None, texts.type), texts) if pc.any(empty).as_py() else texts


@dataclass(frozen=True, slots=True)
class _Direct:
    """For `mapInArrow` over part numbers."""

    rows: DirectRows
    work: Callable[[Batches], Batches]

    def __call__(self, numbers: Batches) -> Batches:
        parts = (part for batch in numbers for part in batch.column(0).to_pylist())
        return self.work(batch for part in parts for batch in self.rows.read(part))
