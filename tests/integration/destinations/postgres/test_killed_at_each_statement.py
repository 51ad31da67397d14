"""`kill -9` of the worker at every statement of every load mode: readers see the old rows or the new ones, and whoever
loads next ends where an undisturbed load does."""

from __future__ import annotations

import multiprocessing
import signal
from typing import Any

import pytest

from hakiri_dagster.destinations.postgres.modes.registry import MODES
from hakiri_dagster.manifest.load_spec import LoadMode
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.killing_proxy import KillingProxy
from tests.integration.destinations.postgres.scenario import Shop, make_table, order

OLD = [order(1, "ann"), order(2, "bob")]
NEW = [order(1, "ann"), order(2, "ben")]

_WORKERS = multiprocessing.get_context("forkserver")
_WORKERS.set_forkserver_preload([__name__])

_RELATIONS = """
SELECT n.nspname, c.relname, c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' ORDER BY 1, 2
"""
_DEPENDENTS = (
    "CREATE VIEW raw.v AS SELECT id, customer FROM raw.orders",
    "CREATE MATERIALIZED VIEW raw.m AS SELECT id, customer FROM raw.orders",
    "CREATE TABLE raw.lines (order_id bigint REFERENCES raw.orders); INSERT INTO raw.lines VALUES (1), (2)",
)


def load(url: str, mode: LoadMode, changes: dict[str, Any], rows: list[tuple[Any, ...]]) -> None:
    shop = Shop(url, make_table(mode, **changes))
    shop.publish(rows)
    shop.close()


def killed_at(shop: Shop, statement: int, rows: list[tuple[Any, ...]], **changes: Any) -> str | None:
    """What the worker was killed at; None if it was done before."""
    with KillingProxy(shop.url, statement) as proxy:
        worker = _WORKERS.Process(target=load, args=(proxy.proxied_url, shop.table.mode, changes, rows))
        worker.start()
        assert worker.pid is not None
        proxy.kill(worker.pid)
        worker.join()
        assert worker.exitcode == (0 if proxy.killed_at is None else -signal.SIGKILL)
        return proxy.killed_at


def rows_of(shop: Shop, relation: str = "raw.orders") -> list[tuple[Any, ...]]:
    return shop.query(f"SELECT id, customer FROM {relation} ORDER BY id")


def seen(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [row[:2] for row in rows]


@pytest.mark.parametrize("mode", sorted(MODES))
def test_a_load_that_is_killed_at_any_statement_is_made_good_by_the_next(make_shop: MakeShop, mode: LoadMode) -> None:
    changes: dict[str, Any] = {"primary_key": ("id",)} if mode == "blue_green" else {}
    shop = make_shop(mode, **changes)
    shop.publish(OLD)
    relations = [shop.now]
    if mode == "blue_green":
        relations = ["raw.orders", "raw.v", "raw.m"]
        for statement in _DEPENDENTS:
            shop.query(statement)
    listed = shop.query(_RELATIONS)
    now, then = OLD, NEW
    statement = 1
    while (place := killed_at(shop, statement, then, **changes)) is not None:
        for relation in relations:
            assert rows_of(shop, relation) in (seen(now), seen(then)), place
        shop.publish(then)
        for relation in relations:
            assert rows_of(shop, relation) == seen(then), place
        assert shop.query(_RELATIONS) == listed, place
        assert [entry.rows for entry in shop.destination.ledger(shop.table)] == [2], place
        now, then, statement = then, now, statement + 1
    assert statement > 10
