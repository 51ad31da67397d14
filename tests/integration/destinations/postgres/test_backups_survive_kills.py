"""`kill -9` at the statements of a load that keeps a copy, and of a restore: there is a copy where the rows were
replaced, and where they were not there is none. Of the statements that other loads have too, all but the last are left
out (`test_killed_at_each_statement`)."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from hakiri_dagster.manifest.load_spec import BackupSpec
from hakiri_dagster.manifest.tables import Table
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.killing_proxy import KillingProxy
from tests.integration.destinations.postgres.scenario import Shop, order, wait_until_nobody_is_at_work
from tests.integration.destinations.postgres.workers import WORKERS

OLD = [order(1, "ann"), order(2, "bob")]
NEW = [order(1, "ann"), order(2, "ben"), order(3, "cid")]


def load(url: str, table: Table, rows: list[tuple[Any, ...]]) -> None:
    shop = Shop(url, table)
    shop.publish(rows, run_id="killed")
    shop.close()


def restore(url: str, table: Table, load_id: int) -> None:
    shop = Shop(url, table)
    shop.destination.restore(table, load_id, holder="worker", run_id="killed")
    shop.close()


def killed_at(shop: Shop, statement: int, work: Callable[..., None], argument: object) -> str | None:
    """What the worker was killed at; None if it was done before."""
    with KillingProxy(shop.url, statement) as proxy:
        worker = WORKERS.Process(target=work, args=(proxy.proxied_url, shop.table, argument))
        worker.start()
        assert worker.pid is not None
        proxy.kill(worker.pid)
        worker.join()
        assert worker.exitcode == (0 if proxy.killed_at is None else -signal.SIGKILL)
        return proxy.killed_at


def made_by_the_killed(shop: Shop) -> list[int]:
    """How many rows its copies hold. That tables and entries agree is looked at besides."""
    wait_until_nobody_is_at_work(shop)
    tables = shop.query("SELECT count(*) FROM pg_class WHERE relname LIKE 'backup\\_%' AND relkind = 'r'")
    found = shop.destination.backups(shop.table)
    assert tables == [(len(found),)]
    return [backup.rows for backup in found if backup.run_id == "killed"]


def forget_backups(shop: Shop) -> None:
    for backup in shop.destination.backups(shop.table):
        shop.query(f"DROP TABLE hakiri.{backup.relation}")
    shop.query("DELETE FROM hakiri.backup")


def test_a_killed_load_has_a_copy_if_it_was_published(make_shop: MakeShop) -> None:
    shop = make_shop("truncate", load={"backup_before_load": BackupSpec(keep=9)})
    shop.publish(OLD, run_id="first")
    statement = begin = 10
    places = []
    while (place := killed_at(shop, statement, load, NEW)) is not None:
        copies = made_by_the_killed(shop)
        assert (len(shop.ids()), copies) in [(2, []), (3, [2])], place
        forget_backups(shop)
        shop.publish(OLD, run_id="again")
        forget_backups(shop)
        places.append(place)
        statement += 1
    assert [place for place in places if "CREATE TABLE" in place], f"what it is about comes before statement {begin}"
    assert made_by_the_killed(shop) == [2]


@pytest.mark.parametrize(("referenced", "begin"), [(False, 8), (True, 27)], ids=["truncated", "exchanged"])
def test_a_killed_restore_has_restored_all_or_nothing(make_shop: MakeShop, referenced: bool, begin: int) -> None:
    shop = make_shop("upsert", primary_key=("id",), load={"backup_before_load": BackupSpec(keep=9)})
    shop.publish(OLD, run_id="first")
    if referenced:
        shop.query("CREATE TABLE raw.lines (order_id bigint REFERENCES raw.orders); INSERT INTO raw.lines VALUES (1)")
    statement = begin
    while True:
        shop.publish(NEW, run_id="second")
        (backup,) = shop.destination.backups(shop.table)
        place = killed_at(shop, statement, restore, backup.load_id)
        copies = made_by_the_killed(shop)
        assert (len(shop.ids()), copies) in [(3, []), (2, [3])], place
        if place is None:
            break
        forget_backups(shop)
        shop.publish(OLD, run_id="third")  # of whatever mode, it sweeps
        assert shop.query("SELECT to_regclass('raw.orders_new')") == [(None,)], place
        forget_backups(shop)
        shop.query("DELETE FROM raw.orders WHERE id = 3")
        statement += 1
    assert statement > begin + 10
    assert shop.ids() == [1, 2]
