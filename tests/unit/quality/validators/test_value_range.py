"""range"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pydantic import ValidationError

from hakiri_dagster.manifest.validator_spec import id_of
from hakiri_dagster.quality.measures import Highest, Instant, Lowest, Nulls, Rows, Single, Total
from tests.unit.quality.validators.judging import declared, judged, misfits


def test_all_values_lie_between_the_bounds() -> None:
    validator = declared("range", column="c", min=0, max=10)
    assert judged(validator, {Lowest("c"): 0, Highest("c"): 10}).passed
    assert not judged(validator, {Lowest("c"): -1, Highest("c"): 10}).passed
    verdict = judged(validator, {Lowest("c"): 0, Highest("c"): 11})
    assert (verdict.passed, verdict.observed, verdict.numbers) == (False, "min 0, max 11 of c", {"min": 0, "max": 11})


def test_decimals_are_compared_as_they_are_written() -> None:
    validator = declared("range", column="c", max=0.1)
    assert judged(validator, {Lowest("c"): Decimal("0.1"), Highest("c"): Decimal("0.10")}).passed
    above = {Lowest("c"): Decimal("0.1"), Highest("c"): Decimal("0.1000000000000000001")}
    assert not judged(validator, above).passed


def test_nan_lies_between_no_bounds() -> None:
    validator = declared("range", column="c", of="max", min=0)
    verdict = judged(validator, {Highest("c"): float("nan")})
    assert (verdict.passed, verdict.numbers) == (False, {})


@pytest.mark.parametrize(("low", "passed"), [(4, True), (4.1, False)])
def test_a_mean_is_that_of_the_values_that_are_there(low: float, passed: bool) -> None:
    validator = declared("range", column="c", of="mean", min=low)
    assert judged(validator, {Rows(): 4, Nulls("c"): 1, Total("c"): 12}).passed is passed


def test_a_sum_has_bounds_too() -> None:
    validator = declared("range", column="c", of="sum", min=10, max=20)
    assert judged(validator, {Total("c"): Decimal("20.00")}).passed
    assert not judged(validator, {Total("c"): Decimal("20.01")}).passed


def test_dates_have_bounds_too() -> None:
    validator = declared("range", column="c", of="min", min="2024-01-01")
    assert judged(validator, {Lowest("c"): Instant.of(datetime(2024, 1, 1, tzinfo=UTC))}).passed
    assert not judged(validator, {Lowest("c"): Instant.of(datetime(2023, 12, 31, tzinfo=UTC))}).passed


@pytest.mark.parametrize("of", ["values", "min", "max", "mean", "sum"])
def test_where_there_is_no_value_none_lies_outside(of: str) -> None:
    nothing = {Rows(): 2, Nulls("c"): 2, Lowest("c"): None, Highest("c"): None, Total("c"): None}
    verdict = judged(declared("range", column="c", of=of, min=1), nothing)
    assert (verdict.passed, verdict.observed) == (True, "no row has a value in c")


def test_each_number_has_a_check_of_its_own() -> None:
    ids = [id_of(declared("range", column="c", of=of, min=1)) for of in ("values", "mean", "sum")]
    assert ids == ["values_range_c", "mean_range_c", "sum_range_c"]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "would always pass"),
        ({"min": 2, "max": 1}, "nothing would pass"),
        ({"min": "2024-01-01", "max": 3}, "both be numbers, or both dates"),
        ({"min": "2024-01-01", "of": "mean"}, "dates have no mean"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(settings: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        declared("range", column="c", **settings)


def test_bounds_are_of_the_column_s_kind() -> None:
    assert misfits(declared("range", column="c", min=1), c=pa.date32()) == [
        "validator values_range_c: c is date, and the bounds are numbers"
    ]
    assert misfits(declared("range", column="c", min="2024-01-01"), c=pa.int8()) == [
        "validator values_range_c: c is smallint, and the bounds are dates"
    ]


def test_a_number_of_32_bits_has_bounds_of_32_bits() -> None:
    tenth = {Highest("c"): Single(0.1)}
    verdict = judged(declared("range", column="c", of="max", min=0.1, max=0.1), tenth)
    assert (verdict.passed, verdict.observed, verdict.numbers) == (True, "max 0.1 of c", {"max": 0.1})
    assert judged(declared("range", column="c", of="max", max=0.0999999999), tenth).passed
    assert not judged(declared("range", column="c", of="max", max=0.09999), tenth).passed
    assert not judged(declared("range", column="c", of="max", max=1e300), {Highest("c"): Single(math.inf)}).passed
