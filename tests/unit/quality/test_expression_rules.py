"""Who is asked about rules that are expressions."""

from __future__ import annotations

import pyarrow as pa

from hakiri_dagster.manifest.rule_spec import ExpressionRule, NotNullRule
from hakiri_dagster.quality.expression_rules import judges
from hakiri_dagster.quality.verdicts import verdict_of

KINDS = {"t": pa.string(), "n": pa.int64(), "m": pa.decimal128(5, 2), "other": pa.int8()}


def expression(text: str) -> ExpressionRule:
    return ExpressionRule(type="expression", expression=text)


def test_each_expression_has_one_judge_and_other_rules_have_none() -> None:
    taken, left = expression("n > 0 AND t <> ''"), expression("upper(t) = t")
    found = judges([NotNullRule(type="not_null", field="n"), left, taken], KINDS)
    assert found.spark == (left,)
    assert [(one.kinds, one.verdict) for one in found.workers] == [
        ((("n", pa.int64()), ("t", pa.string())), verdict_of(taken))
    ]


def test_the_kinds_of_its_columns_decide_and_no_others() -> None:
    asked = expression("n / 2 > 1")
    assert judges([asked], KINDS).spark == ()
    assert judges([asked], KINDS | {"other": pa.string()}).spark == ()
    assert judges([asked], KINDS | {"n": pa.decimal128(5, 2)}).spark == (asked,)
