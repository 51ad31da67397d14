"""Why a table is not loaded, as `status` tells it until it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hakiri_dagster.audit.status import TableError
from hakiri_dagster.cli.status_command import status
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


def test_each_chunk_that_failed_is_told_with_its_own_reason(
    csv_shop: Declare, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = {"type": "not_null", "field": "name", "onFail": "abort"}
    shop = csv_shop(incremental="at", load={"mode": "append"}, rowLevel=[rule])
    lines = ["1,ann,2024-01-05", "2,,2024-02-05", "3,,2024-03-05", "4,,2024-03-06", "5,eve,2024-04-05"]
    shop.file("data/orders.csv", "\n".join(["id,name,at", *lines]) + "\n")
    told = shop.apply()["orders"]
    assert told["chunks"]["failed"] == 2
    assert "chunk 2024-02: " in told["error"]
    assert told["error"].endswith("1 more chunk(s) failed: `hakiri status` tells why each of them did")
    with shop.runtime() as runtime:
        failed = runtime.audit.status("shop")["failed_chunks"]
    assert [one["chunk"] for one in failed] == ["2024-02", "2024-03"]
    assert "1 row(s)" in failed[0]["error"]
    assert "2 row(s)" in failed[1]["error"]
    status(shop.root, None, as_json=False, watched=False)
    shown = capsys.readouterr().out
    assert "! shop/orders, failed: 2024-02: " in shown
    assert "! shop/orders, failed: 2024-03: " in shown
