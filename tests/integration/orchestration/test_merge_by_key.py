"""What a user of the modes that merge by key sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.orchestration.conftest import ShopProject


def test_a_flagged_line_deletes_and_a_line_without_a_key_is_set_aside(csv_shop: Callable[..., ShopProject]) -> None:
    shop = csv_shop(
        primary_key=["id"], incremental="at", columns={"id": "int", "at": "date"}, load={"hard_delete": "gone"}
    )
    shop.file("data/orders/1.csv", "id,gone,at\n1,,2026-01-01\n2,,2026-01-01\n")
    shop.apply()
    shop.file("data/orders/2.csv", "id,gone,at\n1,yes,2026-01-02\n,,2026-01-02\n3,,2026-01-02\n")
    told = shop.apply()["orders"]
    assert (told["error"], told["quarantined"]) == (None, 1)
    assert shop.column("orders", "id") == [2, 3]
    assert shop.column("hakiri.quarantine_shop_orders", "message") == ["id is NULL, and it is part of the key"]


def test_a_line_without_a_key_stops_the_run_where_the_manifest_says_so(csv_shop: Callable[..., ShopProject]) -> None:
    shop = csv_shop(primary_key=["id"], columns={"id": "int"}, load={"mode": "delete_missing", "bad_rows": "abort"})
    shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
    shop.apply()
    shop.file("data/orders.csv", "id,v\n1,changed\n,b\n")
    told = shop.apply()["orders"]
    assert told["chunks"]["failed"] == 1
    assert 'load.bad_rows = "abort"; the first: id is NULL' in told["error"]
    assert shop.column("orders", "v") == ["a", "b"]


def test_duplicates_fail_their_chunk_alone(csv_shop: Callable[..., ShopProject]) -> None:
    shop = csv_shop(primary_key=["id"], columns={"id": "int"}, load={"on_duplicate_key": "reject"})
    shop.file("data/orders/1.csv", "id,v\n1,a\n1,b\n")
    shop.file("data/orders/2.csv", "id,v\n2,c\n")
    told = shop.apply()["orders"]
    assert told["chunks"] | {"skipped": 0} == {"done": 1, "failed": 1, "skipped": 0, "pending": 0}
    assert "1 key(s) occur more than once among the rows of the slice" in told["error"]
    assert shop.column("orders", "id") == [2]


KEYED: dict[str, Any] = {"primary_key": ["id"], "columns": {"id": "int"}}


@pytest.mark.parametrize("mode", ["upsert", "scd2"])
def test_of_files_that_are_chunks_the_last_by_name_counts(csv_shop: Callable[..., ShopProject], mode: str) -> None:
    """Whichever was written first; of the lines of a file the last."""
    load = {"mode": mode} | ({"close_missing": False} if mode == "scd2" else {})
    shop = csv_shop(**KEYED, load=load)
    for name in ("3", "1", "2"):
        shop.file(f"data/orders/{name}.csv", f"id,v\n1,{name}a\n1,{name}b\n")
    assert shop.apply()["orders"]["chunks"]["done"] == 3
    current = "SELECT v FROM raw.orders" + (" WHERE is_current" if mode == "scd2" else "")
    assert shop.rows(current) == [("3b",)]
    shop.file("data/orders/1.csv", "id,v\n1,changed\n")
    assert shop.apply()["orders"]["error"] is None
    assert shop.rows(current) == [("changed",)]


@pytest.mark.parametrize("mode", ["delete_missing", "scd2"])
def test_of_files_that_are_loaded_together_the_cursor_decides(csv_shop: Callable[..., ShopProject], mode: str) -> None:
    load = {"mode": mode} | ({"close_missing": True} if mode == "scd2" else {})
    shop = csv_shop(**KEYED, incremental="n", load=load)
    shop.file("data/orders/1.csv", "id,v,n\n1,old,2\n1,older,1\n2,new,9\n")
    shop.file("data/orders/2.csv", "id,v,n\n1,new,3\n2,old,8\n")
    assert shop.apply()["orders"]["error"] is None
    assert shop.column("orders", "v") == ["new", "new"]


def test_names_in_another_letter_case_are_told_with_those_that_were_meant(csv_shop: Callable[..., ShopProject]) -> None:
    shop = csv_shop(primary_key=["ID"], columns={"NAME": "text"}, load={"mode": "upsert"})
    shop.file("data/orders.csv", "id,name\n1,ann\n")
    error = shop.apply()["orders"]["error"]
    for told in (
        "the primary_key names ID, which the source does not have; did you mean id?",
        "`columns` names NAME, which the source does not have; did you mean name?",
        "the upsert_key names columns that the source does not have: ID; did you mean id?",
    ):
        assert told in error
