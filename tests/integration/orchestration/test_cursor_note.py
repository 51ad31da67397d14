from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.orchestration.conftest import ShopProject


@pytest.mark.parametrize(
    ("type_", "values", "reached"),
    [
        ("timestamptz", ["2024-01-05T00:00:00Z", "2024-03-07T08:09:10.5Z"], "2024-04-01T00:00:00.000000Z"),
        ("date", ["2024-01-05", "2024-03-07"], "2024-04-01"),
        ("bigint", ["5", "4000"], 5000),
    ],
)
def test_how_far_a_table_is_read_is_kept_in_the_cursors_own_terms(
    csv_shop: Callable[..., ShopProject], type_: str, values: list[str], reached: str | int
) -> None:
    window: str | int = 1000 if type_ == "bigint" else "1mo"
    shop = csv_shop(incremental="c", columns={"c": type_}, backfill={"window": window})
    shop.file("data/orders.csv", "\n".join(["c", *values, ""]))
    assert shop.apply()["orders"]["error"] is None
    with shop.runtime() as runtime:
        assert runtime.audit.cursors.get("shop", "orders") == {"c": reached}
