from __future__ import annotations

import pytest

from hakiri_dagster.errors import PlanError
from hakiri_dagster.planning.lag import refuse_misfit, width
from hakiri_dagster.planning.windows import DAY, HOUR


@pytest.mark.parametrize(
    ("lag", "positions"), [("1h", HOUR), ("2d", 2 * DAY), ("1mo", 31 * DAY), ("1q", 93 * DAY), (1000, 1000)]
)
def test_a_lag_is_a_width_in_positions_and_a_month_its_longest(lag: str | int, positions: int) -> None:
    assert width(lag) == positions


def test_a_lag_in_hours_does_not_fit_ids_nor_one_of_ids_a_time() -> None:
    with pytest.raises(PlanError, match="the watermark is a numeric") as told:
        refuse_misfit("1h", "numeric")
    assert told.value.hint == "write a number of ids, like 1000"
    with pytest.raises(PlanError, match="the watermark is a timestamp"):
        refuse_misfit(1000, "timestamp")
    refuse_misfit("1h", "timestamp")
    refuse_misfit(1000, "numeric")
    refuse_misfit(None, "date")
