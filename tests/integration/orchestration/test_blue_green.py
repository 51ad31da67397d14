"""A table that is loaded in blue_green, from the manifest to the warehouse."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]


@pytest.fixture
def orders(csv_shop: Declare) -> ShopProject:
    shop = csv_shop(primary_key=["id"], load={"mode": "blue_green"})
    shop.file("data/orders.csv", "id,amount\n1,10\n2,20\n")
    assert shop.apply()["orders"]["rows"] == 2
    return shop


def test_the_new_rows_take_the_place_of_the_old_ones_below_a_view(orders: ShopProject) -> None:
    orders.execute("CREATE VIEW raw.total AS SELECT sum(amount) AS amount FROM raw.orders")
    orders.execute("COMMENT ON TABLE raw.orders IS 'all of them'")
    orders.file("data/orders.csv", "id,amount\n2,25\n3,30\n")
    told = orders.apply()["orders"]
    assert (told["rows"], told["error"]) == (2, None)
    assert orders.rows("SELECT amount FROM raw.total") == [(55,)]
    assert orders.rows("SELECT obj_description('raw.orders'::regclass), to_regclass('raw.orders_new')") == [
        ("all of them", None)
    ]
    assert orders.apply()["orders"]["chunks"]["done"] == 0


def test_a_source_that_lost_its_rows_leaves_the_target_as_it_was(orders: ShopProject) -> None:
    orders.file("data/orders.csv", "id,amount\n")
    told = orders.apply()["orders"]
    assert "the source returned 0 rows; load mode blue_green would leave the target empty" in told["error"]
    assert orders.column("orders", "id") == [1, 2]


def test_what_stands_in_the_way_is_told_before_anything_is_loaded(orders: ShopProject) -> None:
    orders.execute("CREATE TABLE raw.child () INHERITS (raw.orders)")
    orders.file("data/orders.csv", "id,amount\n3,30\n")
    assert "blue_green cannot exchange the target: raw.child inherits from it" in orders.apply()["orders"]["error"]
    assert orders.column("orders", "id") == [1, 2]


def test_a_target_that_is_published_is_warned_of(orders: ShopProject) -> None:
    orders.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    orders.file("data/orders.csv", "id,amount\n3,30\n")
    told = orders.apply()["orders"]
    assert any("publication everything: who subscribes keeps the old rows" in text for text in told["warnings"])
    assert (told["rows"], told["error"]) == (1, None)
