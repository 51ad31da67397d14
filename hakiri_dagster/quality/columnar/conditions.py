"""Rules that are expressions, for the workers: with the answers the rows go on to where the other rules are asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from hakiri_dagster.expressions.tree import Node
from hakiri_dagster.planning.arrow_types import is_scalar
from hakiri_dagster.quality.columnar.evaluating import passing
from hakiri_dagster.quality.columnar.types import settled


@dataclass(frozen=True, slots=True)
class Condition:
    """Pickled to the workers, as a tree, for these have no use for a parser. `kinds`: of the columns that it names, by
    which it was found that Arrow can compute it. `verdict`: the column for the answer."""

    node: Node
    kinds: tuple[tuple[str, pa.DataType], ...]
    verdict: str

    def passes(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        columns = {name: _settled(batch.column(name), kind) for name, kind in self.kinds}
        return passing(self.node, columns)


def _settled(column: pa.Array, kind: pa.DataType) -> pa.Array:
    wanted = settled(kind)
    return column.cast(wanted) if is_scalar(wanted) and column.type != wanted else column


def with_answers(batch: pa.RecordBatch, conditions: Iterable[Condition]) -> pa.RecordBatch:
    for condition in conditions:
        batch = batch.append_column(condition.verdict, condition.passes(batch))
    return batch
