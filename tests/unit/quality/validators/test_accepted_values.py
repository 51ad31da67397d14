"""accepted_values"""

from __future__ import annotations

import pyarrow as pa

from hakiri_dagster.quality.measures import Rows, Strangers, Violations
from tests.unit.quality.validators.judging import declared, judged, misfits


def test_other_values_do_not_pass_and_are_shown() -> None:
    validator = declared("accepted_values", column="c", values=["A", "B"])
    question = Strangers("c", ("A", "B"))
    assert judged(validator, {Rows(): 5, question: Violations(0)}).passed
    verdict = judged(validator, {Rows(): 5, question: Violations(2, ("X",))})
    assert (verdict.passed, verdict.observed) == (False, "2 of 5 row(s) hold another c: X")


def test_values_are_of_the_column_s_kind() -> None:
    validator = declared("accepted_values", column="c", values=["A"])
    assert misfits(validator, c=pa.string()) == []
    assert misfits(validator, c=pa.int32()) == [
        "validator accepted_values_c: c is integer, which not all of the values are"
    ]
