"""A load that went wrong is taken back from the command line, and stays taken back."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hakiri_dagster.cli.backup_commands import Choice, backup_list, backup_restore
from hakiri_dagster.errors import UsageError
from hakiri_dagster.planning.chunks import Slice
from hakiri_dagster.planning.states import DueSlice
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]


def backups(shop: ShopProject, capsys: pytest.CaptureFixture[str]) -> list[tuple[int, int, str]]:
    capsys.readouterr()
    assert backup_list(shop.root, "shop", as_json=True) == 0
    found = json.loads(capsys.readouterr().out)["backups"]
    return [(backup["generation"], backup["rows"], backup["made_before"]) for backup in found]


def restored(shop: ShopProject, **choice: int) -> int:
    return backup_restore(shop.root, "shop", None, Choice(**choice), unasked=True)


@pytest.mark.parametrize("mode", ["truncate", "upsert"])
def test_what_was_restored_stays_until_the_source_has_something_new(
    csv_shop: Declare, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    shop = csv_shop(primary_key=["id"], load={"mode": mode, "backup_before_load": {"keep": 3}})
    shop.file("data/orders.csv", "id,v\n1,good\n2,good\n")
    shop.apply()
    shop.file("data/orders.csv", "id,v\n1,bad\n2,bad\n3,bad\n")
    shop.apply()
    assert backups(shop, capsys) == [(1, 2, "load")]
    assert restored(shop) == 0
    assert "raw.orders holds the 2 rows that it held before load" in capsys.readouterr().out
    assert shop.column("orders", "v") == ["good", "good"]
    assert backups(shop, capsys) == [(1, 3, "restore"), (2, 2, "load")]
    assert shop.apply()["orders"]["chunks"]["done"] == 0
    assert shop.column("orders", "v") == ["good", "good"]
    shop.file("data/orders.csv", "id,v\n1,mended\n2,mended\n")
    assert shop.apply()["orders"]["chunks"]["done"] == 1
    assert shop.column("orders", "v") == ["mended", "mended"]
    assert restored(shop, generation=2) == 0
    assert shop.column("orders", "v") == ["bad", "bad", "bad"]


def test_chunks_that_lie_apart_make_one_copy_of_what_was_before_all_of_them(
    csv_shop: Declare, capsys: pytest.CaptureFixture[str]
) -> None:
    def written(v: str) -> None:
        for month in ("01", "02", "03"):
            value = "good" if month == "02" else v
            shop.file(f"data/orders/{month}.csv", f"id,v,at\n{month},{value},2024-{month}-05\n")

    load = {"mode": "upsert", "backup_before_load": True}
    window = {"window": "1mo"}
    shop = csv_shop(path="data/orders/", primary_key=["id"], incremental="at", load=load, backfill=window)
    written("good")
    shop.apply()
    runs = len(shop.instance.get_runs())
    written("bad")
    shop.apply()
    assert len(shop.instance.get_runs()) == runs + 2
    assert backups(shop, capsys) == [(1, 3, "load")]
    assert restored(shop) == 0
    assert shop.column("orders", "v") == ["good"] * 3


def test_it_is_refused_while_a_run_has_the_table_and_without_anybody_to_ask(
    csv_shop: Declare, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = csv_shop(load={"mode": "truncate", "backup_before_load": True})
    for value in ("a", "b"):
        shop.file("data/orders.csv", f"id,v\n1,{value}\n")
        shop.apply()
    with pytest.raises(UsageError, match="nobody is there to be asked"):
        backup_restore(shop.root, "shop", "orders", Choice(), unasked=False)
    with pytest.raises(UsageError, match="has no backup of generation 2") as told:
        restored(shop, generation=2)
    assert "there are: 1 (load" in str(told.value.hint)
    with pytest.raises(UsageError, match="both name a backup"):
        restored(shop, generation=1, load_id=1)
    with shop.runtime() as runtime:
        (state,) = runtime.audit.chunks.states("shop", "orders")
        due = DueSlice(Slice(state.chunk, state.bounds), state.attempts)
        runtime.audit.chunks.claim(
            "shop",
            "orders",
            [due],
            holder="elsewhere|boot|1|1",
            run_id="r",
            ttl_seconds=60,
            holder_is_dead=lambda _: None,
        )
    with pytest.raises(UsageError, match=r"a run is at work on the table: process 1 on elsewhere holds chunk full"):
        restored(shop)
    assert shop.column("orders", "v") == ["b"]
