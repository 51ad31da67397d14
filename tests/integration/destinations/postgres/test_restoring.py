"""The rows of a backup come back, and nothing else changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from hakiri_dagster.destinations.backups_contract import Restored
from hakiri_dagster.destinations.postgres.backups import prune
from hakiri_dagster.destinations.postgres.catalog import find
from hakiri_dagster.destinations.postgres.connection import Connections
from hakiri_dagster.destinations.postgres.destination import open_destination
from hakiri_dagster.destinations.postgres.swap.portrait import Portrait, differences, names_in_full, portrait
from hakiri_dagster.errors import DestinationError, LeaseLost
from hakiri_dagster.manifest.load_spec import BackupSpec, LoadMode
from hakiri_dagster.manifest.tables import Table
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order
from tests.integration.destinations.postgres.test_every_mode import watching
from tests.integration.destinations.postgres.workers import WORKERS

FIRST = [order(1, "ann"), order(2, "bob"), order(3, "\x01\tcid\\N")]
SECOND = [order(1, "ann"), order(2, "ben")]

by_either_way = pytest.mark.parametrize("referenced", [False, True], ids=["truncated", "exchanged"])


def loaded_twice(make_shop: MakeShop, mode: LoadMode = "delete_missing", keep: int = 1, **changes: Any) -> Shop:
    """With a backup of FIRST, and SECOND in the target."""
    changes = {"primary_key": ("id",)} | changes
    shop = make_shop(mode, load={"backup_before_load": BackupSpec(keep=keep)}, **changes)
    shop.publish(FIRST, run_id="run-1")
    shop.publish(SECOND, run_id="run-2")
    return shop


def refer(shop: Shop, to: int | None = 1) -> None:
    shop.query("CREATE TABLE raw.lines (order_id bigint REFERENCES raw.orders)")
    shop.query("INSERT INTO raw.lines VALUES (%s)", to)


def restore(shop: Shop, generation: int = 1) -> Restored:
    backup = shop.destination.backups(shop.table)[generation - 1]
    return shop.destination.restore(shop.table, backup.load_id, holder="me", run_id="restore-1")


def rows(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.query("SELECT * FROM raw.orders ORDER BY id")


def drawn(shop: Shop) -> Portrait:
    with psycopg.connect(shop.url) as connection:
        names_in_full(connection)
        found = find(connection, "raw", "orders")
        assert found is not None
        return portrait(connection, [found.oid])


@by_either_way
def test_the_rows_come_back_to_the_last_column_and_the_target_stays_what_it_is(
    make_shop: MakeShop, referenced: bool
) -> None:
    shop = loaded_twice(make_shop)
    shop.query("CREATE ROLE reader")
    try:
        shop.query("CREATE INDEX by_customer ON raw.orders (customer); GRANT SELECT ON raw.orders TO reader")
        shop.query("CREATE VIEW raw.v AS SELECT count(*) AS n FROM raw.orders; COMMENT ON TABLE raw.orders IS 'mine'")
        if referenced:
            refer(shop)
        (backup,) = shop.destination.backups(shop.table)
        wanted = shop.query(f"SELECT * FROM hakiri.{backup.relation} ORDER BY id")
        before = drawn(shop)
        restored = restore(shop)
        assert (restored.rows, restored.backup, restored.left_out, restored.undoable) == (3, backup, (), True)
        assert rows(shop) == wanted
        assert shop.query("SELECT customer FROM raw.orders ORDER BY id") == [(row[1],) for row in FIRST]
        assert differences(before, drawn(shop)) == []
        assert shop.query("SELECT n FROM raw.v") == [(3,)]
    finally:
        shop.query("DROP OWNED BY reader; DROP ROLE reader")


@by_either_way
def test_restoring_is_undone_by_restoring(make_shop: MakeShop, referenced: bool) -> None:
    shop = loaded_twice(make_shop, keep=2)
    if referenced:
        refer(shop)
    before = rows(shop)
    restore(shop)
    newest, older = shop.destination.backups(shop.table)
    assert (newest.made_before, newest.rows, older.made_before) == ("restore", 2, "load")
    restore(shop)
    assert rows(shop) == before
    assert [backup.rows for backup in shop.destination.backups(shop.table)] == [3, 2]


def test_where_one_copy_is_kept_it_is_the_one_that_undoes(make_shop: MakeShop) -> None:
    shop = loaded_twice(make_shop)
    restore(shop)
    assert [(b.made_before, b.rows) for b in shop.destination.backups(shop.table)] == [("restore", 2)]


@by_either_way
def test_readers_see_the_one_or_the_other(make_shop: MakeShop, referenced: bool) -> None:
    shop = loaded_twice(make_shop, keep=3)
    if referenced:
        refer(shop)
    with watching(shop) as counts:
        for _ in range(4):
            restore(shop)
    assert set(counts) <= {2, 3}
    assert len(counts) > 10


@by_either_way
def test_the_next_load_finds_the_ledger_as_it_was(make_shop: MakeShop, referenced: bool) -> None:
    shop = loaded_twice(make_shop)
    if referenced:
        refer(shop)
    before = shop.destination.ledger(shop.table)
    restore(shop)
    assert shop.destination.ledger(shop.table) == before
    shop.publish(SECOND, run_id="run-3")
    assert shop.ids() == [1, 2]


def test_rows_that_others_refer_to_are_not_taken_away(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", primary_key=("id",), load={"backup_before_load": BackupSpec()})
    shop.publish([order(1)], run_id="run-1")
    shop.publish([order(2)], run_id="run-2")
    shop.query("CREATE TABLE raw.lines (order_id bigint REFERENCES raw.orders); INSERT INTO raw.lines VALUES (2)")
    before = shop.fingerprint()
    with pytest.raises(DestinationError, match="other tables hold rows that refer to rows"):
        restore(shop)
    assert shop.fingerprint() == before
    assert shop.query("SELECT to_regclass('raw.orders_new')") == [(None,)]
    assert len(shop.destination.backups(shop.table)) == 1


class TestWhoIsAtWork:
    def test_it_is_refused_while_a_load_is_open(self, make_shop: MakeShop) -> None:
        shop = loaded_twice(make_shop)
        prepared = shop.prepare(FIRST, run_id="run-3")
        with pytest.raises(DestinationError, match="the target is being loaded"):
            restore(shop)
        prepared.publish(None, 0)
        assert shop.ids() == [1, 2, 3]

    def test_also_by_another_pipeline_into_the_same_target(self, make_shop: MakeShop) -> None:
        shop = loaded_twice(make_shop)
        other = make_shop("append", pipeline_id="other")
        prepared = other.prepare([order(9)])
        with pytest.raises(DestinationError, match="the target is being loaded"):
            restore(shop)
        prepared.undo()
        restore(shop)

    def test_an_attempt_that_was_claimed_before_publishes_nothing_after(self, make_shop: MakeShop) -> None:
        shop = loaded_twice(make_shop)
        load = shop.load(run_id="run-3")
        restore(shop)
        with pytest.raises(LeaseLost):
            shop.destination.prepare(load, shop.candidate(load, SECOND))
        assert shop.ids() == [1, 2, 3]

    def test_a_load_that_comes_meanwhile_waits_and_then_loads_over_it_if_it_is_claimed_anew(
        self, make_shop: MakeShop
    ) -> None:
        shop = loaded_twice(make_shop)
        with psycopg.connect(shop.url) as reader:
            reader.execute("SELECT count(*) FROM raw.orders")
            restoring = threading.Thread(target=lambda: restore(shop))
            restoring.start()
            wait_for(shop, "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'raw.orders'::regclass")
            with pytest.raises(DestinationError, match="loaded, or restored"):
                restore(shop)
            reader.rollback()
            restoring.join()
        assert shop.ids() == [1, 2, 3]
        shop.publish([order(7)], run_id="run-3")
        assert shop.ids() == [7]

    def test_what_a_killed_restore_leaves_is_swept_by_the_next_load_in_any_mode(self, make_shop: MakeShop) -> None:
        shop = loaded_twice(make_shop)
        refer(shop)
        before = shop.fingerprint()
        (backup,) = shop.destination.backups(shop.table)
        with psycopg.connect(shop.url) as reader:
            reader.execute("SELECT count(*) FROM raw.orders")  # the exchange waits for its end
            process = WORKERS.Process(target=restore_elsewhere, args=(shop.url, shop.table, backup.load_id))
            process.start()
            wait_for(shop, "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'raw.orders'::regclass")
            process.kill()
            process.join()
        assert shop.query("SELECT to_regclass('raw.orders_new') IS NOT NULL") == [(True,)]
        assert shop.fingerprint() == before
        assert shop.destination.backups(shop.table) == (backup,)
        shop.publish([order(1, "zoe")], run_id="run-3")
        assert shop.query("SELECT to_regclass('raw.orders_new')") == [(None,)]
        assert shop.ids() == [1]


def restore_elsewhere(url: str, table: Table, load_id: int) -> None:
    open_destination({"url": url}, label="warehouse").restore(table, load_id, holder="other", run_id="restore-2")


def wait_for(shop: Shop, query: str) -> None:
    with psycopg.connect(shop.url, autocommit=True) as watch:
        while watch.execute(query.encode()).fetchone() is None:
            pass


class TestATargetThatHasChanged:
    @by_either_way
    def test_columns_that_came_and_went(self, make_shop: MakeShop, referenced: bool) -> None:
        shop = loaded_twice(make_shop)
        if referenced:
            refer(shop)
        shop.query("ALTER TABLE raw.orders DROP COLUMN amount, ADD COLUMN note text DEFAULT 'new'")
        assert restore(shop).left_out == ("amount",)
        assert shop.query("SELECT id, note FROM raw.orders ORDER BY id") == [(1, "new"), (2, "new"), (3, "new")]

    def test_a_column_that_was_widened_takes_the_old_values(self, make_shop: MakeShop) -> None:
        shop = loaded_twice(make_shop)
        shop.query("ALTER TABLE raw.orders ALTER amount TYPE double precision, ALTER updated_at TYPE numeric")
        restore(shop)
        assert shop.query("SELECT amount, updated_at FROM raw.orders WHERE id = 3") == [(1.5, 1)]

    def test_a_column_that_cannot_take_them_refuses_and_nothing_is_changed(self, make_shop: MakeShop) -> None:
        shop = loaded_twice(make_shop)
        shop.query("ALTER TABLE raw.orders ALTER customer TYPE varchar(3)")
        before = shop.fingerprint()
        with pytest.raises(DestinationError, match="value too long"):
            restore(shop)
        assert shop.fingerprint() == before
        assert len(shop.destination.backups(shop.table)) == 1

    @pytest.mark.parametrize(
        ("referenced", "computed"),
        [(False, ", twice numeric GENERATED ALWAYS AS (amount * 2) STORED"), (True, "")],
        ids=["truncated", "exchanged"],
    )
    def test_generated_and_identity_columns(self, make_shop: MakeShop, referenced: bool, computed: str) -> None:
        shop = make_shop("upsert", primary_key=("id",), load={"backup_before_load": BackupSpec()})
        shop.query("CREATE SCHEMA raw")
        shop.query(
            "CREATE TABLE raw.orders (id bigint PRIMARY KEY, customer text, amount numeric, updated_at bigint,"
            f" n int GENERATED ALWAYS AS IDENTITY{computed})"
        )
        shop.publish([order(1), order(2)], run_id="run-1")
        before = rows(shop)
        shop.publish([order(1, amount="4"), order(3)], run_id="run-2")
        if referenced:
            refer(shop)
        restore(shop)
        assert rows(shop) == before

    def test_an_empty_one_takes_the_rows_and_has_nothing_to_keep(self, make_shop: MakeShop) -> None:
        shop = loaded_twice(make_shop)
        shop.query("TRUNCATE raw.orders")
        assert restore(shop).undoable is False
        assert shop.ids() == [1, 2, 3]

    def test_one_that_was_dropped_is_to_be_made_first(self, make_shop: MakeShop) -> None:
        shop = loaded_twice(make_shop)
        shop.query("DROP TABLE raw.orders")
        with pytest.raises(DestinationError, match="no target to put the rows back into"):
            restore(shop)
        shop.publish(SECOND, run_id="run-3")
        restore(shop)
        assert shop.ids() == [1, 2, 3]

    def test_a_partitioned_one_takes_them_where_they_belong(self, make_shop: MakeShop) -> None:
        shop = make_shop("truncate", load={"backup_before_load": BackupSpec()})
        shop.query("CREATE SCHEMA raw")
        shop.query(
            "CREATE TABLE raw.orders (id bigint, customer text, amount numeric, updated_at bigint)"
            " PARTITION BY RANGE (id)"
        )
        shop.query("CREATE TABLE raw.low PARTITION OF raw.orders FOR VALUES FROM (0) TO (2)")
        shop.query("CREATE TABLE raw.high PARTITION OF raw.orders FOR VALUES FROM (2) TO (9)")
        shop.publish(FIRST, run_id="run-1")
        shop.publish(SECOND, run_id="run-2")
        restore(shop)
        assert shop.ids() == [1, 2, 3]
        assert shop.query("SELECT count(*) FROM raw.high") == [(2,)]


def test_names_are_just_text(make_shop: MakeShop) -> None:
    name = 'or"ders; DROP TABLE x --%s {}'
    shop = loaded_twice(make_shop, "truncate", target_name=name, target_schema='s"x', primary_key=())
    restore(shop)
    with psycopg.connect(shop.url) as connection:
        count = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier('s"x', name)))
        assert count.fetchone() == (3,)


@by_either_way
def test_text_that_begins_like_a_binary_row_is_text(make_shop: MakeShop, referenced: bool) -> None:
    shop = make_shop("upsert", primary_key=("id",), load={"backup_before_load": BackupSpec()})
    shop.query("CREATE SCHEMA raw")
    shop.query("CREATE TABLE raw.orders (customer text, amount numeric, updated_at bigint, id bigint PRIMARY KEY)")
    if referenced:
        refer(shop, to=None)
    shop.publish([order(1, "\x06")], run_id="run-1")
    shop.publish([order(1, "other")], run_id="run-2")
    restore(shop)
    assert shop.query("SELECT customer FROM raw.orders") == [("\x06",)]


def test_a_backup_that_there_is_not_is_told(make_shop: MakeShop) -> None:
    shop = loaded_twice(make_shop)
    with pytest.raises(DestinationError, match="there is no backup of load 999"):
        shop.destination.restore(shop.table, 999, holder="me", run_id="restore-1")


@contextmanager
def restoring_while(shop: Shop, *statements: str) -> Iterator[Future[Restored]]:
    """They stay uncommitted until the restore has had the time to come upon them."""
    with psycopg.connect(shop.url) as connection, ThreadPoolExecutor(1) as thread:
        for statement in statements:
            connection.execute(statement.encode())
        restoring = thread.submit(restore, shop)
        wait([restoring], 0.5)
        yield restoring
        connection.commit()
        wait([restoring], 30)


@by_either_way
def test_a_backup_that_is_being_restored_is_not_taken_away_by_the_prune_of_a_load(
    make_shop: MakeShop, referenced: bool
) -> None:
    shop = loaded_twice(make_shop)
    if referenced:
        refer(shop)
    with (
        restoring_while(shop, "LOCK TABLE hakiri.fence IN EXCLUSIVE MODE") as restoring,
        closing(Connections(shop.url, label="warehouse")) as connections,
    ):
        prune(connections, shop.table, 0)
    assert (restoring.result().rows, len(rows(shop))) == (3, 3)


def test_a_backup_that_is_being_taken_away_is_none(make_shop: MakeShop) -> None:
    shop = loaded_twice(make_shop)
    (backup,) = shop.destination.backups(shop.table)
    away = f"DROP TABLE hakiri.{backup.relation}"
    with restoring_while(shop, away, "DELETE FROM hakiri.backup") as restoring:
        pass
    with pytest.raises(DestinationError, match=f"there is no backup of load {backup.load_id}"):
        restoring.result()


def test_a_backup_whose_table_is_being_dropped_by_hand_is_none(make_shop: MakeShop) -> None:
    shop = loaded_twice(make_shop)
    (backup,) = shop.destination.backups(shop.table)
    with restoring_while(shop, f"DROP TABLE hakiri.{backup.relation}") as restoring:
        pass
    with pytest.raises(DestinationError, match=f"there is no backup of load {backup.load_id}"):
        restoring.result()
