"""Rows that break rules, counted by the workers."""

from __future__ import annotations

import pyarrow as pa

from hakiri_dagster.manifest.rule_spec import ExpressionRule, NotNullRule
from hakiri_dagster.pipeline.rule_counts import RuleCounts
from hakiri_dagster.quality.expression_rules import judges


def test_rows_and_those_that_break_each_rule_are_counted_over_all_batches() -> None:
    rules = (ExpressionRule(type="expression", expression="v > 1"), NotNullRule(type="not_null", field="v"))
    counts = RuleCounts(rules, judges(rules, {"v": pa.int64()}).workers)
    batches = [pa.record_batch({"v": [0, 1, 2, None]}), pa.record_batch({"v": [1]})]
    (found,) = counts(iter(batches))
    assert found.to_pylist() == [{"rows": 5, "broken": [3, 1]}]
