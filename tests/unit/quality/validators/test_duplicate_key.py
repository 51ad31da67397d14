"""duplicate_key"""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hakiri_dagster.manifest.validator_spec import id_of
from hakiri_dagster.quality.measures import Duplicates, Rows, Violations
from tests.unit.quality.validators.judging import declared, judged

KEY = declared("duplicate_key", columns=["a", "b"])


def test_no_two_rows_may_share_the_key() -> None:
    assert judged(KEY, {Rows(): 9, Duplicates(("a", "b")): Violations(0)}).passed
    verdict = judged(KEY, {Rows(): 9, Duplicates(("a", "b")): Violations(4, ("(1, x) 4 times",))})
    assert (verdict.passed, verdict.numbers) == (False, {"violations": 4, "rows": 9})
    assert verdict.observed == "4 of 9 row(s) share (a, b) with others: (1, x) 4 times"


def test_its_name_has_its_columns() -> None:
    assert id_of(KEY) == "duplicate_key_a_b"


def test_a_key_needs_a_column() -> None:
    with pytest.raises(ValidationError, match="empty"):
        declared("duplicate_key", columns=[])
