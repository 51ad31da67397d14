from __future__ import annotations

from collections.abc import Callable

from tests.integration.orchestration.conftest import ShopProject


def test_a_broken_line_keeps_everything_until_it_is_mended(csv_shop: Callable[..., ShopProject]) -> None:
    shop = csv_shop(primary_key=["id"], columns={"id": "int"}, load={"mode": "delete_missing"})
    shop.file("data/orders.csv", "id,v\n1,a\n2,b\n3,c\n")
    shop.apply()
    shop.file("data/orders.csv", "id,v\n1,a\ntwo,b\n")
    told = shop.apply()["orders"]
    assert any("nothing was deleted, because 1 row(s)" in warning for warning in told["warnings"])
    assert shop.column("orders", "id") == [1, 2, 3]
    shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
    assert shop.apply()["orders"]["warnings"] == []
    assert shop.column("orders", "id") == [1, 2]
