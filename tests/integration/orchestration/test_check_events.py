"""Checks of chunks that share a partition: those of the open window, and of rows that have no window."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

THIS_MONTH = datetime.now(UTC).strftime("%Y-%m")
DAY = f"{THIS_MONTH}-01"
CHEAP = {"type": "range", "field": "price", "max": 9, "on_fail": "warn"}
OF_THE_WINDOW = (("violations", 1), ("rows", 2))
OF_NO_CURSOR = (("null/violations", 2), ("null/rows", 3))
OUTSIDE = (("outside/violations", 1), ("outside/rows", 1))


@pytest.fixture
def priced(csv_shop: Declare) -> Callable[..., ShopProject]:
    """Rows that have a day of this month, of the far future, or none."""
    columns = {"price": "int", "day": "timestamp"}
    asked: dict[str, Any] = {"row_level": [CHEAP], "dataset_level": {"row_count": {"max": 3}}}

    def load(rows: str, *, file: str = "a") -> ShopProject:
        shop = csv_shop(path="data/orders/", incremental="day", columns=columns, **asked)
        shop.file(f"data/orders/{file}.csv", f"price,day\n{rows}")
        shop.apply()
        return shop

    return load


def newest(shop: ShopProject, check: str, partition: str | None = THIS_MONTH) -> tuple[bool, dict[str, Any]]:
    key = dg.AssetCheckKey(dg.AssetKey(["shop", "orders"]), check)
    records = shop.instance.event_log_storage.get_asset_check_execution_history(key, limit=20)
    events = [record.event.dagster_event for record in records if record.event is not None]
    told = [event.asset_check_evaluation_data for event in events if event is not None]
    found = next(one for one in told if one.partition == partition)
    return found.passed, {name: value.value for name, value in found.metadata.items()}


def test_each_tells_its_own_numbers(priced: Callable[..., ShopProject]) -> None:
    shop = priced(f"10,{DAY}\n1,{DAY}\n10,\n10,\n1,\n10,2999-01-01\n")
    passed, told = newest(shop, "range_price")
    assert not passed
    assert {*OF_THE_WINDOW, *OF_NO_CURSOR, *OUTSIDE} <= {(name, value) for name, value in told.items()}
    assert told["null/observed"] == "2 of 3 row(s) break it"


def test_a_window_that_passes_does_not_hide_rows_without_one(priced: Callable[..., ShopProject]) -> None:
    shop = priced(f"1,{DAY}\n10,\n1,\n")
    passed, told = newest(shop, "range_price")
    assert (passed, told["violations"], told["null/violations"]) == (False, 0, 1)


def test_rows_without_a_window_that_pass_add_nothing(priced: Callable[..., ShopProject]) -> None:
    shop = priced(f"10,{DAY}\n1,{DAY}\n1,\n")
    passed, told = newest(shop, "range_price")
    assert (passed, told["violations"]) == (False, 1)
    assert not [name for name in told if "/" in name]


def test_the_numbers_of_rows_that_come_alone_are_not_those_of_the_window(priced: Callable[..., ShopProject]) -> None:
    priced(f"1,{DAY}\n")
    shop = priced("10,\n", file="b")
    passed, told = newest(shop, "range_price")
    assert (passed, told["null/violations"]) == (False, 1)
    assert "violations" not in told


def test_what_did_not_pass_is_summed_up_with_all_its_chunks(priced: Callable[..., ShopProject]) -> None:
    shop = priced(f"1,{DAY}\n" + "1,\n" * 4)
    assert newest(shop, "row_count") == newest(shop, "row_count", partition=None)
    assert newest(shop, "row_count")[1]["null/rows"] == 4


def states(shop: ShopProject, check: str) -> dict[str | None, tuple[str, bool]]:
    """By partition: what the check said last, and whether the UI takes it for an answer about what is there."""
    key = dg.AssetCheckKey(dg.AssetKey(["shop", "orders"]), check)
    found = shop.instance.event_log_storage.get_asset_check_partition_info([key])
    return {one.partition_key: (one.latest_execution_status.value, one.is_current) for one in found}


def test_each_partition_shows_what_its_own_check_said(csv_shop: Declare) -> None:
    """In the UI a check that was told before the rows it speaks of is missing."""
    shop = csv_shop(
        path="data/orders/", incremental="day", columns={"day": "timestamp"}, dataset_level={"row_count": {"max": 1}}
    )
    shop.file("data/orders/a.csv", "day\n2026-01-01\n2026-01-02\n2026-02-01\n2026-03-01\n")
    shop.apply()
    assert states(shop, "row_count") == {
        "2026-01": ("FAILED", True),
        "2026-02": ("SUCCEEDED", True),
        "2026-03": ("SUCCEEDED", True),
        None: ("FAILED", True),
    }
    shop.file("data/orders/a.csv", "day\n2026-01-01\n2026-02-01\n2026-02-02\n2026-03-01\n")
    shop.apply()
    assert states(shop, "row_count")["2026-01"] == ("SUCCEEDED", True)
    assert states(shop, "row_count")["2026-02"] == ("FAILED", True)
