"""A window that cannot be read stops no other, though several are read at once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.connectors.rest.api_server import Asked, Said, said
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.test_rest import CURSOR, Tracker, ago, tracked

DAILY: dict[str, Any] = CURSOR | {"backfill": {"window": "1d", "start_from": f"{ago(days=3):%Y-%m-%d}"}}
"""Four windows, as many as are read at once."""
RETRIES = 1
"""Of a pass, as the fixture has them set."""


def of_two_days_ago(asked: Asked) -> bool:
    """It is asked for from a second before it on."""
    return asked.params.get("since", "").startswith(f"{ago(days=3):%Y-%m-%d}T23:59")


def with_a_poisoned_window(status: int) -> Tracker:
    tracker = Tracker(trouble=lambda asked, _: said({"message": "no"}, status) if of_two_days_ago(asked) else None)
    for day in range(4):
        tracker.put(day, min(ago(days=day), ago(minutes=1)))
    return tracker


@pytest.mark.parametrize(("status", "passes"), [(400, 1), (500, 1 + RETRIES)])
def test_its_neighbours_are_loaded_and_it_is_tried_by_itself_once(shop: ShopProject, status: int, passes: int) -> None:
    tracker = with_a_poisoned_window(status)
    with tracked(shop, tracker, config={"retry": {"retries": 0}}, **DAILY) as api:
        told = shop.apply()["issues"]
        tries = [asked for asked in api.asked if of_two_days_ago(asked)]
    assert (told["chunks"]["done"], told["chunks"]["failed"]) == (3, 1)
    assert f"chunk {ago(days=2):%Y-%m-%d}: " in told["error"]
    assert shop.column("issues", "id") == [0, 1, 3]
    assert len(tries) == passes + 1


def test_what_is_new_arrives_beside_it_and_it_is_caught_up_with(shop: ShopProject) -> None:
    tracker = with_a_poisoned_window(500)
    with tracked(shop, tracker, config={"retry": {"retries": 0}}, **DAILY):
        shop.apply()
        tracker.put(9, ago(seconds=1))
        assert shop.apply()["issues"]["chunks"]["failed"] == 1
        assert shop.column("issues", "id") == [0, 1, 3, 9]
        tracker.trouble = lambda _asked, _number: None
        assert shop.apply()["issues"]["error"] is None
        assert shop.column("issues", "id") == [0, 1, 2, 3, 9]


def test_one_that_can_be_read_the_second_time_fails_nothing(shop: ShopProject) -> None:
    refused: list[Asked] = []

    def once(asked: Asked, _number: int) -> Said | None:
        if not of_two_days_ago(asked) or len(refused) > RETRIES:
            return None
        refused.append(asked)
        return said({"message": "no"}, 500)

    tracker = with_a_poisoned_window(500)
    tracker.trouble = once
    with tracked(shop, tracker, config={"retry": {"retries": 0}}, **DAILY):
        assert shop.apply()["issues"]["error"] is None
    assert shop.column("issues", "id") == [0, 1, 2, 3]
