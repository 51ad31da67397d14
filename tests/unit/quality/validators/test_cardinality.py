"""cardinality"""

from __future__ import annotations

import pyarrow as pa

from hakiri_dagster.quality.measures import Distinct
from hakiri_dagster.quality.validators.registry import asks
from tests.unit.quality.validators.judging import declared, misfits, passes


def test_bounds_belong_to_what_passes() -> None:
    validator = declared("cardinality", column="c", minDistinct=2, maxDistinct=3)
    counts = ({Distinct("c", 3): count} for count in (1, 2, 3, 4))
    assert list(passes(validator, *counts)) == [False, True, True, False]


def test_the_count_is_asked_to_be_exact_up_to_the_bounds() -> None:
    assert asks(declared("cardinality", column="c", min_distinct=5)) == (Distinct("c", 5),)


def test_lists_have_no_distinct_values() -> None:
    (told,) = misfits(declared("cardinality", column="c", min_distinct=5), c=pa.list_(pa.int32()))
    assert "whose values are not told apart" in told
