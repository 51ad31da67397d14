"""A pipeline or table under a new name, a moved project and a second project: none doubles or mixes the rows of a target."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.cli.explain import document
from hakiri_dagster.errors import UsageError
from hakiri_dagster.orchestration.renamed_assets import move_asset
from hakiri_dagster.pipeline.renaming import Renamed, parse_rename, rename_loads
from hakiri_dagster.planning.publishers import Move
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.test_apply import order_lines

APPEND = {"mode": "append"}


def declare(shop: ShopProject, pipeline: str = "tea", table: str = "orders", **settings: Any) -> None:
    """The only pipeline: a file a chunk, in append mode, into raw.orders."""
    for manifest in (shop.root / "manifests/pipelines").glob("*.json"):
        manifest.unlink()
    shop.manifest(
        {
            "id": pipeline,
            "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
            "tables": [{"name": table, "target": "orders", "path": "data/orders/", "load": APPEND} | settings],
        }
    )


def loaded(shop: ShopProject, *args: Any, **settings: Any) -> ShopProject:
    declare(shop, *args, **settings)
    shop.file("data/orders/a.csv", order_lines((1, "2024-01-01", "9.50"), (2, "2024-01-02", "x")))
    shop.file("data/orders/b.csv", order_lines((3, "2024-01-03", "2.00")))
    shop.apply()
    return shop


def ids(shop: ShopProject) -> list[int]:
    return shop.column("orders", "order_id")


def plan(shop: ShopProject) -> dict[str, Any]:
    """What `plan --json` says of the only table."""
    with shop.runtime() as runtime:
        (pipeline,) = document(runtime.plan(runtime.project.tables).plan)["pipelines"]
    (table,) = pipeline["tables"]
    return dict(table)


def rename(shop: ShopProject, old: str, new: str) -> Renamed | None:
    def show(moves: Sequence[Move]) -> tuple[int, ...]:
        return tuple(move_asset(shop.instance, move) for move in moves)

    with shop.runtime() as runtime:
        return rename_loads(runtime, parse_rename(old, new), show)


RENAMES = {"pipeline": (("shop", "orders"), "tea", "shop"), "table": (("tea", "sales"), "tea/orders", "tea/sales")}


@pytest.mark.parametrize("what", RENAMES)
def test_a_new_name_is_refused_until_what_was_loaded_is_renamed(shop: ShopProject, what: str) -> None:
    named, old, new = RENAMES[what]
    loaded(shop)
    declare(shop, *named)
    told = plan(shop)
    assert told["verdict"] == "refused"
    (reason,) = told["refused"]
    assert "raw.orders holds 3 row(s) in 2 chunk(s) that were published as tea/orders" in reason
    for words in ("/".join(named), f"hakiri pipeline rename {old} {new}", "load.adopt = true", "another `target`"):
        assert words in reason
    told = shop.apply()[named[1]]
    assert (reason in told["error"], ids(shop)) == (True, [1, 2, 3])

    renamed = rename(shop, old, new)
    assert renamed is not None
    assert ([moved.loads for moved in renamed.moved], renamed.shown) == ([2], (2,))
    assert plan(shop)["verdict"] == "nothing"
    shop.file("data/orders/c.csv", order_lines((4, "2024-01-04", "2.00")))
    told = shop.apply()[named[1]]
    assert (told["rows"], told["error"], ids(shop)) == (1, None, [1, 2, 3, 4])
    assert rename(shop, old, new) is None  # there is nothing left to do
