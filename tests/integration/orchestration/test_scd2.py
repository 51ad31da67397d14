"""scd2 from the manifest to the warehouse."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.orchestration.conftest import ShopProject

VERSIONS = "SELECT id, v, valid_from::date::text, valid_to::date::text FROM raw.orders ORDER BY id, valid_from"


def test_chunks_of_a_cursor_make_one_history_though_a_file_comes_late(csv_shop: Callable[..., ShopProject]) -> None:
    shop = csv_shop(
        primary_key=["id"],
        incremental="at",
        columns={"id": "int", "at": "date"},
        load={"mode": "scd2"},
        backfill={"window": "1mo"},
    )
    shop.file("data/orders/1.csv", "id,v,at\n1,a,2026-01-01\n1,c,2026-03-01\n2,x,2026-01-05\n")
    assert shop.apply()["orders"]["chunks"]["done"] == 3
    shop.file("data/orders/2.csv", "id,v,at\n1,b,2026-02-01\n,y,2026-02-02\n3,z,\n")
    told = shop.apply()["orders"]
    assert (told["error"], told["quarantined"]) == (None, 2)
    assert shop.rows(VERSIONS) == [
        (1, "a", "2026-01-01", "2026-02-01"),
        (1, "b", "2026-02-01", "2026-03-01"),
        (1, "c", "2026-03-01", None),
        (2, "x", "2026-01-05", None),
    ]
    assert sorted(shop.column("hakiri.quarantine_shop_orders", "message")) == [
        "at is NULL, and it says from when the row is valid",
        "id is NULL, and it is part of the key",
    ]


def test_a_table_without_a_cursor_closes_what_its_files_no_longer_hold(csv_shop: Callable[..., ShopProject]) -> None:
    shop = csv_shop(primary_key=["id"], columns={"id": "int"}, load={"mode": "scd2"})
    shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
    assert shop.apply()["orders"]["chunks"]["done"] == 1
    shop.file("data/orders.csv", "id,v\n1,changed\n3,c\n")
    shop.apply()
    current = "SELECT id, v, is_current FROM raw.orders ORDER BY id, valid_from"
    assert shop.rows(current) == [(1, "a", False), (1, "changed", True), (2, "b", False), (3, "c", True)]
    shop.file("data/orders.csv", "id,v\n")
    assert "load mode scd2 would close every row of the target" in shop.apply()["orders"]["error"]
