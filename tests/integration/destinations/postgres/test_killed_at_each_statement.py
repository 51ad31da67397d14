"""`kill -9` of the worker at every statement of every load mode: readers see the old rows or the new ones, and whoever
loads next ends where an undisturbed load does."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from hakiri_dagster.destinations.contract import Mark
from hakiri_dagster.destinations.postgres.modes.registry import MODES
from hakiri_dagster.errors import DestinationUnavailable, LeaseLost
from hakiri_dagster.manifest.load_spec import LoadMode
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.chunks import Slice
from hakiri_dagster.planning.columns import SourceSchema
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.killing_proxy import KillingProxy
from tests.integration.destinations.postgres.scenario import WHOLE, Shop, order, window
from tests.integration.destinations.postgres.test_scd2 import VERSIONS, row
from tests.integration.destinations.postgres.workers import WORKERS

OLD = [order(1, "ann"), order(2, "bob")]
NEW = [order(1, "ann"), order(2, "ben")]
Rows = list[tuple[Any, ...]]

_RELATIONS = """
SELECT n.nspname, c.relname, c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' ORDER BY 1, 2
"""
_DEPENDENTS = (
    "ALTER TABLE raw.orders ADD COLUMN number serial",
    "CREATE VIEW raw.v AS SELECT id, customer FROM raw.orders",
    "CREATE MATERIALIZED VIEW raw.m AS SELECT id, customer FROM raw.orders",
    "CREATE TABLE raw.lines (order_id bigint REFERENCES raw.orders); INSERT INTO raw.lines VALUES (1), (2)",
)


def load(url: str, table: Table, schema: SourceSchema, slice_: Slice, rows: Rows) -> None:
    shop = Shop(url, table, schema)
    shop.publish(rows, slice_)
    shop.close()


def killed_at(shop: Shop, statement: int, rows: Rows, slice_: Slice = WHOLE) -> str | None:
    """What the worker was killed at; None if it was done before."""
    with KillingProxy(shop.url, statement) as proxy:
        worker = WORKERS.Process(target=load, args=(proxy.proxied_url, shop.table, shop.schema, slice_, rows))
        worker.start()
        assert worker.pid is not None
        proxy.kill(worker.pid)
        worker.join()
        assert worker.exitcode == (0 if proxy.killed_at is None else -signal.SIGKILL)
        return proxy.killed_at


def publish_after_a_kill(shop: Shop, rows: Rows, slice_: Slice = WHOLE) -> None:
    """As runs do, which try again what may pass: the dead worker's server process may be on its way out still, and what
    it claims as its last may come after our own claim."""
    for tries_left in (2, 1, 0):
        try:
            shop.publish(rows, slice_)
        except (DestinationUnavailable, LeaseLost):
            if not tries_left:
                raise
        else:
            return


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
    while (place := killed_at(shop, statement, then)) is not None:
        for relation in relations:
            assert rows_of(shop, relation) in (seen(now), seen(then)), place
        publish_after_a_kill(shop, then)
        for relation in relations:
            assert rows_of(shop, relation) == seen(then), place
        assert shop.query(_RELATIONS) == listed, place
        assert [entry.rows for entry in shop.destination.ledger(shop.table)] == [2], place
        now, then, statement = then, now, statement + 1
    assert statement > 10


@dataclass(frozen=True)
class Rework:
    """Loads of one key, the second of which is killed. `late` comes when all is good again, and `shown` is what is seen
    of the key."""

    mode: LoadMode
    load: dict[str, Any]
    old: tuple[Slice, Callable[[int], Rows]]
    new: tuple[Slice, Callable[[int], Rows]]
    late: Callable[[int], Rows]
    shown: str


def _born(key: int) -> Rows:
    return [row(key, "ann", 1)]


def _gone(key: int) -> Rows:
    return [row(key, "ann", 11, gone=True)]


REWORKS = {
    "hard_delete": Rework(
        "upsert",
        {"hard_delete": "gone"},
        (window(0, 10), _born),
        (window(10, 20), _gone),
        lambda key: [row(key, "late", 5)],
        "customer",
    ),
    "soft_delete": Rework(
        "upsert",
        {"hard_delete": "gone", "soft_delete": "deleted_at"},
        (window(0, 10), _born),
        (window(10, 20), _gone),
        lambda key: [row(key, "late", 5)],
        "customer, deleted_at IS NOT NULL",
    ),
    "late rows of a history": Rework(
        "scd2",
        {"hard_delete": "gone", "close_missing": False},
        (window(0, 40), lambda key: [row(key, "a", 1), row(key, "c", 30)]),
        (window(10, 20), lambda key: [row(key, "b", 11), row(key, "b", 12)]),
        lambda key: [row(key, "b", 15), row(key, "d", 20)],
        "customer, valid_from, valid_to",
    ),
}


@pytest.mark.parametrize("name", REWORKS)
def test_what_a_killed_load_reworks_of_earlier_ones_is_reworked_by_the_next(make_shop: MakeShop, name: str) -> None:
    case = REWORKS[name]
    shop = make_shop(case.mode, schema=VERSIONS, load=case.load)

    def seen_of(key: int) -> list[tuple[Any, ...]]:
        return shop.query(f"SELECT {case.shown} FROM raw.orders AS o WHERE id = {key} ORDER BY updated_at")

    def publish(key: int, slice_: Slice, rows: Callable[[int], Rows]) -> list[tuple[Any, ...]]:
        publish_after_a_kill(shop, rows(key), slice_)
        return seen_of(key)

    undisturbed = [publish(0, *case.old), publish(0, *case.new), publish(0, case.old[0], case.late)]
    assert undisturbed[0] != undisturbed[1]
    statement = 1
    while True:
        assert publish(statement, *case.old) == undisturbed[0]
        slice_, rows = case.new
        if (place := killed_at(shop, statement, rows(statement), slice_)) is None:
            break
        assert seen_of(statement) in undisturbed[:2], place
        assert publish(statement, *case.new) == undisturbed[1], place
        assert publish(statement, case.old[0], case.late) == undisturbed[2], place
        statement += 1
    assert statement > 8


def test_a_watermark_that_a_killed_load_inherits_is_inherited_by_the_next(make_shop: MakeShop) -> None:
    template = make_shop("incremental_watermark")
    template.query("CREATE SCHEMA raw")
    statement = 1
    while True:
        name = f"orders_{statement}"
        template.query(
            f"CREATE TABLE raw.{name} (id bigint, customer text, amount numeric(10,2), updated_at bigint);"
            f"INSERT INTO raw.{name} VALUES (1, 'ann', 1, 5)"
        )
        shop = make_shop("incremental_watermark", name=name, target_name=name)
        rows = [order(1, "ann", updated_at=5), order(2, "bob", updated_at=9)]
        place = killed_at(shop, statement, rows, window(5, 20))
        if place is None:
            break
        assert shop.query(f"SELECT id FROM raw.{name} ORDER BY 1") in ([(1,)], [(1,), (2,)]), place
        publish_after_a_kill(shop, rows, window(5, 20))
        assert shop.query(f"SELECT id FROM raw.{name} ORDER BY 1") == [(1,), (2,)], place
        assert shop.destination.mark(shop.table) == Mark(9, begins_at=5), place
        statement += 1
    assert statement > 8
