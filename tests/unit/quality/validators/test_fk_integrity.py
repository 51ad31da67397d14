"""fk_integrity"""

from __future__ import annotations

from hakiri_dagster.quality.measures import Orphans, Rows, Unanswered, Violations
from hakiri_dagster.quality.validators.registry import asks
from tests.unit.quality.validators.judging import declared, judged

REFERS = declared("fk_integrity", column="customer", refTable="raw.customers", refColumn="id")
ORPHANS = Orphans("customer", "raw", "customers", "id")


def test_every_value_must_be_there() -> None:
    assert judged(REFERS, {Rows(): 3, ORPHANS: Violations(0)}).passed
    verdict = judged(REFERS, {Rows(): 3, ORPHANS: Violations(2, ("7", "8"))})
    assert (verdict.passed, verdict.numbers) == (False, {"violations": 2, "rows": 3})
    assert verdict.observed == "2 of 3 row(s) refer to what raw.customers does not hold: 7; 8"


def test_a_table_without_a_schema_is_in_the_target_s() -> None:
    validator = declared("fk_integrity", column="customer", ref_table="customers", ref_column="id")
    assert Orphans("customer", None, "customers", "id") in asks(validator)


def test_a_table_that_is_not_there_does_not_pass() -> None:
    verdict = judged(REFERS, {Rows(): 3, ORPHANS: Unanswered("raw.customers does not exist")})
    assert (verdict.passed, verdict.observed) == (False, "raw.customers does not exist")
