"""Why a table is not loaded, as `status` tells it until it is."""

from __future__ import annotations

from collections.abc import Callable

from hakiri_dagster.audit.status import TableError
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]


def errors(shop: ShopProject) -> list[TableError]:
    with shop.runtime() as runtime:
        return runtime.audit.status("shop")["errors"]


def test_a_source_that_cannot_be_looked_at_is_told_until_it_can(csv_shop: Declare) -> None:
    shop = csv_shop()
    for _ in range(2):
        assert shop.apply()["orders"]["error"] is not None
        (told,) = errors(shop)
        assert told["table"] == "orders"
        assert "orders.csv" in told["error"]
    with shop.runtime() as runtime:
        assert len(runtime.audit.runs.recent("shop")) == 1, "the same error is one entry"
    shop.file("data/orders.csv", "id\n1\n")
    shop.apply()
    assert errors(shop) == []


def test_a_load_that_failed_is_told_until_one_has_gone_well(csv_shop: Declare) -> None:
    shop = csv_shop(rowLevel=[{"type": "not_null", "field": "name", "onFail": "abort"}])
    shop.file("data/orders.csv", "id,name\n1,\n")
    shop.apply()
    (told,) = errors(shop)
    assert "not_null_name" in told["error"]
    shop.file("data/orders.csv", "id,name\n1,a\n")
    shop.apply()
    assert errors(shop) == []
