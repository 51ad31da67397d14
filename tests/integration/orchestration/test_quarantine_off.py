"""With the quarantine off, rows are still never dropped in silence."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.orchestration.conftest import ShopProject


def test_rows_that_are_left_out_are_counted_and_warned_of(csv_shop: Callable[..., ShopProject]) -> None:
    shop = csv_shop(columns={"id": "integer"}, validate={"quarantine": {"enabled": False}})
    shop.file("data/orders.csv", "id,note\n1,a\nx,b\n")
    told = shop.apply()["orders"]
    assert (told["rows"], told["quarantined"], told["error"]) == (1, 1, None)
    assert any("1 row(s) set aside, not kept, because quarantine is off" in warning for warning in told["warnings"])
    assert shop.rows("SELECT to_regclass('hakiri.quarantine_shop_orders')") == [(None,)]
