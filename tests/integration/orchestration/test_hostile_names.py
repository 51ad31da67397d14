"""Names that are legal in the source and trouble anywhere else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

HOSTILE = ["first name", "a.b", "back`tick", 'quo"te', "Upper", "upper", "select", "o'hara", "50%", "größe", "x]y", "a/b"]


def quoted_csv(*cells: str) -> str:
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells) + "\n"


@pytest.mark.parametrize("mode", ["append", "truncate", "upsert"])
def test_columns_keep_their_names_whatever_these_hold(csv_shop: Declare, mode: str) -> None:
    key = {"upsert_key": [HOSTILE[1]]} if mode == "upsert" else {}
    shop = csv_shop(load={"mode": mode, "provenance": "full"} | key)
    shop.file("data/orders.csv", quoted_csv(*HOSTILE) + quoted_csv(*[f"v{i}" for i in range(len(HOSTILE))]))
    told = shop.apply()["orders"]
    assert (told["rows"], told["error"]) == (1, None)
    assert {name: shop.column("orders", name) for name in HOSTILE} == {n: [f"v{i}"] for i, n in enumerate(HOSTILE)}
    assert shop.apply()["orders"]["chunks"]["done"] == 0
