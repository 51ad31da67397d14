"""How many rows there are, and how many of them break each rule. Runs in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from hakiri_dagster.manifest.rule_spec import RowRule
from hakiri_dagster.quality.columnar.conditions import Condition, with_answers
from hakiri_dagster.quality.numerics import marked
from hakiri_dagster.quality.row_rules import broken_by

COUNTS_SCHEMA = "rows bigint, broken array<bigint>"
_COUNTS_ARROW = pa.schema([("rows", pa.int64()), ("broken", pa.list_(pa.int64()))])


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """Pickled to the workers."""

    rules: tuple[RowRule, ...]
    conditions: tuple[Condition, ...]
    numerics: frozenset[str] = frozenset()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, broken = 0, [0] * len(self.rules)
        for batch in batches:
            rows += batch.num_rows
            answered = marked(with_answers(batch, self.conditions), self.numerics)
            for place, rule in enumerate(self.rules):
                found = broken_by(rule, answered)
                broken[place] += 0 if found is None else found.true_count
        yield pa.RecordBatch.from_pylist([{"rows": rows, "broken": broken}], schema=_COUNTS_ARROW)
