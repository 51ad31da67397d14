"""row_count"""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hakiri_dagster.quality.measures import Rows
from hakiri_dagster.quality.validators.registry import shown
from tests.unit.quality.validators.judging import declared, judged, passes


def test_both_bounds_belong_to_what_passes() -> None:
    validator = declared("row_count", min=2, max=3)
    assert list(passes(validator, *({Rows(): rows} for rows in (1, 2, 3, 4)))) == [False, True, True, False]


def test_it_tells_how_many_there_are() -> None:
    verdict = judged(declared("row_count", min=2000), {Rows(): 1500})
    assert (verdict.observed, verdict.numbers) == ("1,500 row(s)", {"rows": 1500})
    assert shown(declared("row_count", min=2000)) == "at least 2000 row(s)"
    assert shown(declared("row_count", min=1, max=2)) == "between 1 and 2 row(s)"


@pytest.mark.parametrize(
    ("settings", "told"),
    [({}, "would always pass"), ({"min": 3, "max": 2}, "nothing would pass"), ({"min": -1}, "greater than or equal")],
)
def test_bounds_that_make_no_sense_are_refused(settings: dict[str, int], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        declared("row_count", **settings)
