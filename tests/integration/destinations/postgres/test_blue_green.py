"""A table takes another's place: readers do not notice, what refers to it goes on, what cannot be kept is refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest

from hakiri_dagster.destinations.contract import PreparedLoad
from hakiri_dagster.destinations.postgres.copy_parallel import copy_in_parallel
from hakiri_dagster.destinations.postgres.modes import blue_green
from hakiri_dagster.errors import DestinationError, LeaseLost
from hakiri_dagster.manifest.load_spec import LoadMode
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, make_table, order


@pytest.fixture
def shop(make_shop: MakeShop) -> Shop:
    shop = make_shop("blue_green", primary_key=("id",))
    shop.publish([order(1), order(2)])
    return shop


def test_postgresql_counts_the_rows_once(shop: Shop) -> None:
    shop.publish([order(number) for number in range(1, 51)])
    counted = "SELECT n_live_tup, n_ins_since_vacuum FROM pg_stat_all_tables WHERE relid = 'raw.orders'::regclass"
    assert shop.query(counted) == [(50, 50)], "inserts that are told later would be added to what ANALYZE counted"


def until(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happens():
        assert time.monotonic() < deadline


@contextmanager
def readers(url: str, *queries: str) -> Iterator[list[int]]:
    """Read in a loop, each on a connection of its own; what went wrong is raised at the end."""
    over = threading.Event()
    seen: list[int] = []
    wrong: list[Exception] = []

    def read(query: str) -> None:
        try:
            with psycopg.connect(url, autocommit=True, prepare_threshold=1) as connection:
                while not over.is_set():
                    row = connection.execute(query.encode()).fetchone()
                    assert row is not None
                    seen.append(row[0])
        except (psycopg.Error, AssertionError) as error:
            wrong.append(error)

    threads = [threading.Thread(target=read, args=[query]) for query in queries]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_readers_of_the_table_and_of_views_see_the_old_rows_or_the_new_ones(shop: Shop) -> None:
    shop.query("CREATE VIEW raw.v AS SELECT id FROM raw.orders")
    shop.query("CREATE VIEW raw.w AS SELECT id FROM raw.v")
    body = "BEGIN RETURN (SELECT count(*) FROM raw.orders); END"
    shop.query(f"CREATE FUNCTION raw.f() RETURNS bigint LANGUAGE plpgsql AS '{body}'")
    counts = [f"SELECT count(*) FROM raw.{name}" for name in ("orders", "v", "w")] + ["SELECT raw.f()"]
    with readers(shop.url, *counts, *counts) as seen:
        for size in range(3, 10):
            shop.publish([order(number) for number in range(1, size + 1)])
    assert set(seen) <= set(range(2, 10))
    assert shop.query("SELECT count(*) FROM raw.w") == [(9,)]


def test_it_waits_for_a_reader_without_keeping_others_out(shop: Shop) -> None:
    prepared = shop.prepare([order(7)])
    with psycopg.connect(shop.url) as reader:
        reader.execute("SELECT count(*) FROM raw.orders")  # and its transaction stays open
        publishing = threading.Thread(target=lambda: prepared.publish(None, 0))
        publishing.start()
        with psycopg.connect(shop.url, autocommit=True) as watch:
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'raw.orders'::regclass"
            while watch.execute(waits.encode()).fetchone() == (0,):
                pass
            assert watch.execute("SELECT count(*) FROM raw.orders").fetchone() == (2,)
        reader.rollback()
        publishing.join()
    assert shop.ids() == [7]


def test_a_reader_that_goes_on_from_the_table_to_a_view_is_never_ended(shop: Shop, make_shop: MakeShop) -> None:
    """The exchange holds the view and waits for the table: PostgreSQL would end the reader after deadlock_timeout."""
    shop.query("CREATE VIEW raw.v AS SELECT id FROM raw.orders")
    ((database,),) = shop.query("SELECT current_database()")
    shop.query(f"ALTER DATABASE {database} SET deadlock_timeout = '200ms'")  # of connections that are made from here on
    prepared = make_shop("blue_green", primary_key=("id",)).prepare([order(7)])
    publishing = threading.Thread(target=lambda: prepared.publish(None, 0))
    waits_too_long = "SELECT now() - min(waitstart) > '220ms' FROM pg_locks WHERE mode = 'AccessExclusiveLock'"
    until = time.monotonic() + 3
    with psycopg.connect(shop.url) as long_reader, psycopg.connect(shop.url, autocommit=True) as watch:
        long_reader.execute("SELECT count(*) FROM raw.orders")
        publishing.start()
        while time.monotonic() < until:
            with psycopg.connect(shop.url) as reader:
                reader.execute("SELECT count(*) FROM raw.orders")
                while time.monotonic() < until and watch.execute(waits_too_long.encode()).fetchone() != (True,):
                    pass
                assert reader.execute("SELECT count(*) FROM raw.v").fetchone() == (2,)
    publishing.join()
    assert shop.ids() == [7]


@pytest.fixture
def parent(shop: Shop) -> str:
    """A table that the target refers to."""
    shop.query("CREATE TABLE raw.customers (name text PRIMARY KEY); INSERT INTO raw.customers VALUES ('ann')")
    shop.query("ALTER TABLE raw.orders ADD CONSTRAINT whose FOREIGN KEY (customer) REFERENCES raw.customers")
    shop.query("ALTER TABLE raw.orders ADD parent bigint CONSTRAINT itself REFERENCES raw.orders")
    return "raw.customers"


@contextmanager
def kept_out_by_a_reader_of(table: str, shop: Shop) -> Iterator[psycopg.Connection[Any]]:
    """Of a load that is done in the end. The connection is one that waits for nobody."""
    prepared = shop.prepare([order(7)])
    publishing = threading.Thread(target=lambda: prepared.publish(None, 0))
    with psycopg.connect(shop.url) as reader, psycopg.connect(shop.url, autocommit=True) as other:
        reader.execute(f"SELECT count(*) FROM {table}".encode())  # and its transaction stays open
        publishing.start()
        other.execute("SET lock_timeout = '1ms'")
        try:
            yield other
        finally:
            reader.rollback()
            publishing.join(60)
    assert shop.ids() == [7]


def waits_for(connection: psycopg.Connection[Any], table: str) -> bool:
    waits = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
    return connection.execute(waits, (table,)).fetchone() == (True,)


def can_be_read(connection: psycopg.Connection[Any], table: str) -> bool:
    with suppress(psycopg.errors.LockNotAvailable):
        connection.execute(f"SELECT count(*) FROM {table}".encode())
        return True
    return False


def test_readers_of_the_target_do_not_wait_for_a_reader_of_a_table_that_it_refers_to(shop: Shop, parent: str) -> None:
    with kept_out_by_a_reader_of(parent, shop) as other:
        for again in range(3):
            until(lambda: waits_for(other, parent))
            assert can_be_read(other, "raw.orders"), again
            until(lambda: not waits_for(other, parent))


def test_what_keeps_the_exchange_out_is_waited_for_while_nothing_is_held(shop: Shop, parent: str) -> None:
    locks = "SELECT bool_or(relation = %s::regclass AND NOT granted), bool_or(relation = %s::regclass AND granted)"
    alone = f"{locks} FROM pg_locks WHERE mode = 'AccessExclusiveLock'"
    with kept_out_by_a_reader_of("raw.orders", shop) as other:
        until(lambda: other.execute(alone, ("raw.orders", parent)).fetchone() == (True, True))
        until(lambda: other.execute(alone, ("raw.orders", parent)).fetchone() == (True, False))


def test_what_was_on_the_target_all_the_time_and_would_be_lost_is_not_tried_again(shop: Shop) -> None:
    shop.query("ALTER TABLE raw.orders ADD CONSTRAINT few CHECK (id < 99)")
    prepared = shop.prepare([order(7)])
    shop.query("ALTER TABLE raw.orders_new DROP CONSTRAINT few")  # as if it had not been made
    with pytest.raises(DestinationError, match=r"does not keep what the target has.*CONSTRAINT few") as raised:
        prepared.publish(None, 0)
    assert raised.value.kind == "permanent"
    assert shop.ids() == [1, 2]


def test_a_table_that_a_dead_load_left_is_swept_by_the_next(shop: Shop) -> None:
    shop.prepare([order(7)])  # its worker died
    assert shop.query("SELECT count(*) FROM raw.orders_new") == [(1,)]
    shop.publish([order(8)])
    assert shop.query("SELECT to_regclass('raw.orders_new'), (SELECT count(*) FROM hakiri.sibling)") == [(None, 0)]
    assert shop.ids() == [8]


def test_a_table_that_a_dead_load_left_is_swept_though_the_mode_is_another_by_now(
    shop: Shop, make_shop: MakeShop
) -> None:
    shop.prepare([order(7)])  # its worker died
    make_shop("truncate", primary_key=("id",)).publish([order(8)])
    assert shop.query("SELECT to_regclass('raw.orders_new'), (SELECT count(*) FROM hakiri.sibling)") == [(None, 0)]
    assert shop.ids() == [8]


def test_a_table_that_a_dead_load_left_is_no_target(shop: Shop, make_shop: MakeShop) -> None:
    shop.prepare([order(7)])  # its worker died
    other = make_shop("append", target_name="orders_new")
    with pytest.raises(DestinationError, match=r"raw\.orders_new is what a load in blue_green makes"):
        other.ensure()


def test_an_overtaken_load_leaves_the_table_of_the_one_that_took_over(shop: Shop) -> None:
    overtaken = shop.prepare([order(7)])
    taking_over = shop.prepare([order(8)])
    overtaken.undo()
    taking_over.publish(None, 0)
    assert shop.ids() == [8]


def test_a_worker_that_wakes_up_too_late_adds_nothing_to_its_successor_s_table(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_over: list[PreparedLoad] = []

    def stalled(*arguments: Any) -> int:
        monkeypatch.undo()
        taken_over.append(shop.prepare([order(8), order(9)]))
        return copy_in_parallel(*arguments)

    monkeypatch.setattr(blue_green, "copy_in_parallel", stalled)
    with pytest.raises(LeaseLost):
        shop.prepare([order(7)])
    taken_over[0].publish(None, 0)
    assert shop.ids() == [8, 9]


def test_rows_go_into_the_very_table_that_was_made_for_them(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def disturbed(*arguments: Any) -> int:
        monkeypatch.undo()
        shop.query("ALTER TABLE raw.orders_new RENAME TO elsewhere; CREATE TABLE raw.orders_new (LIKE raw.orders)")
        return copy_in_parallel(*arguments)

    monkeypatch.setattr(blue_green, "copy_in_parallel", disturbed)
    with pytest.raises(DestinationError, match="was replaced by another table"):
        shop.prepare([order(7)])
    assert shop.query("SELECT count(*) FROM raw.orders_new") == [(0,)]


def test_a_table_of_somebody_else_s_that_bears_the_name_is_left_alone(shop: Shop) -> None:
    shop.query("CREATE TABLE raw.orders_new AS SELECT 1 AS mine")
    with pytest.raises(DestinationError, match=r"raw\.orders_new, and there is a table of that name"):
        shop.ensure()
    assert shop.query("SELECT mine FROM raw.orders_new") == [(1,)]


def test_foreign_keys_of_other_tables_are_kept_and_checked(shop: Shop) -> None:
    shop.query("CREATE TABLE raw.lines (order_id bigint CONSTRAINT of_order REFERENCES raw.orders ON DELETE CASCADE)")
    shop.query("INSERT INTO raw.lines VALUES (2), (NULL)")
    shop.publish([order(2), order(3)])
    assert shop.query(
        "SELECT convalidated, confrelid::regclass::text FROM pg_constraint WHERE conname = 'of_order'"
    ) == [(True, "raw.orders")]
    assert shop.query("SELECT * FROM hakiri.unchecked_key") == []
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        shop.query("INSERT INTO raw.lines VALUES (1)")
    assert shop.query("SELECT order_id FROM raw.lines ORDER BY 1") == [(2,), (None,)]


def test_rows_that_other_tables_refer_to_are_not_taken_away(shop: Shop) -> None:
    shop.query("CREATE TABLE raw.lines (order_id bigint CONSTRAINT of_order REFERENCES raw.orders)")
    shop.query("INSERT INTO raw.lines VALUES (1)")
    before = shop.fingerprint()
    with pytest.raises(
        DestinationError, match=r"refer to rows which the source no longer has: raw\.lines \(of_order\)"
    ):
        shop.prepare([order(2)])
    assert shop.fingerprint() == before
    assert shop.query("SELECT to_regclass('raw.orders_new')") == [(None,)]


def test_a_key_that_rows_break_which_came_meanwhile_is_told(shop: Shop) -> None:
    shop.query("CREATE TABLE raw.lines (order_id bigint CONSTRAINT of_order REFERENCES raw.orders)")
    prepared = shop.prepare([order(2)])
    shop.query("INSERT INTO raw.lines VALUES (1)")
    prepared.publish(None, 0)
    assert shop.destination.unchecked_keys(shop.table) == ["of_order of raw.lines"]
    shop.query("DELETE FROM raw.lines")
    shop.publish([order(3)])
    assert shop.destination.unchecked_keys(shop.table) == []


def test_a_load_that_mends_a_broken_key_is_not_refused_for_it(shop: Shop) -> None:
    shop.query("CREATE TABLE raw.lines (order_id bigint CONSTRAINT of_order REFERENCES raw.orders)")
    prepared = shop.prepare([order(2)])
    shop.query("INSERT INTO raw.lines VALUES (1)")
    prepared.publish(None, 0)
    shop.publish([order(3)])
    assert shop.destination.unchecked_keys(shop.table) == ["of_order of raw.lines"]
    shop.publish([order(1), order(2)])
    assert shop.destination.unchecked_keys(shop.table) == []
    assert shop.query("SELECT convalidated FROM pg_constraint WHERE conname = 'of_order'") == [(True,)]


@pytest.mark.parametrize("mode", ["blue_green", "upsert"])
def test_a_key_that_was_not_checked_before_the_worker_died_is_checked_by_the_next_load(
    shop: Shop, make_shop: MakeShop, mode: LoadMode
) -> None:
    shop.query("CREATE TABLE raw.lines (order_id bigint)")
    shop.query("ALTER TABLE raw.lines ADD CONSTRAINT of_order FOREIGN KEY (order_id) REFERENCES raw.orders NOT VALID")
    shop.query("INSERT INTO hakiri.unchecked_key VALUES ('raw.orders', 'raw.lines', 'of_order')")
    make_shop(mode, primary_key=("id",)).publish([order(2)])
    assert shop.query("SELECT convalidated FROM pg_constraint WHERE conname = 'of_order'") == [(True,)]


def test_a_materialized_view_holds_the_new_rows(shop: Shop) -> None:
    shop.query("CREATE MATERIALIZED VIEW raw.m AS SELECT id FROM raw.orders")
    shop.prepare([order(7)])  # its worker died, and left two relations
    with readers(shop.url, "SELECT count(*) FROM raw.m") as seen:
        shop.publish([order(3), order(4), order(5)])
    assert set(seen) <= {2, 3}
    assert shop.query("SELECT id FROM raw.m ORDER BY 1") == [(3,), (4,), (5,)]
    shop.query("REFRESH MATERIALIZED VIEW raw.m")


def test_a_materialized_view_on_a_materialized_view_holds_the_new_rows(shop: Shop) -> None:
    shop.query("CREATE MATERIALIZED VIEW raw.zz AS SELECT id FROM raw.orders")
    shop.query("CREATE SCHEMA other")
    shop.query("CREATE MATERIALIZED VIEW other.aa AS SELECT id FROM raw.zz")
    shop.query("CREATE MATERIALIZED VIEW raw.both AS SELECT id, (SELECT max(id) FROM raw.orders) AS most FROM other.aa")
    shop.query("CREATE VIEW raw.v AS SELECT id FROM raw.both")
    shop.prepare([order(7)])  # its worker died, and left four relations
    shop.publish([order(3), order(4), order(5)])
    assert shop.query("SELECT id, most FROM raw.both ORDER BY 1") == [(3, 5), (4, 5), (5, 5)]
    assert shop.query("SELECT id FROM raw.v ORDER BY 1") == [(3,), (4,), (5,)]
    for name in ("raw.zz", "other.aa", "raw.both"):
        shop.query(f"REFRESH MATERIALIZED VIEW {name}")


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("CREATE TABLE raw.child () INHERITS (raw.orders)", "raw.child inherits from it"),
        ("CREATE TABLE raw.other (o raw.orders)", "column o of table raw.other refers to its row type"),
        ("CREATE FUNCTION raw.f(raw.orders) RETURNS int RETURN 1", "function raw.f(raw.orders) refers to its row type"),
        ("CREATE VIEW raw.whole AS SELECT o FROM raw.orders o", "refers to its row type"),
        (
            "CREATE VIEW raw.v AS SELECT id FROM raw.orders;"
            "CREATE VIEW raw.w AS SELECT id FROM raw.v;"
            "CREATE MATERIALIZED VIEW raw.m AS SELECT id FROM raw.orders JOIN raw.w USING (id)",
            "materialized view raw.m reads it both itself and through view raw.w",
        ),
        (
            "CREATE MATERIALIZED VIEW raw.m AS SELECT id FROM raw.orders;"
            "CREATE MATERIALIZED VIEW raw.n AS SELECT id FROM raw.m;"
            "REFRESH MATERIALIZED VIEW raw.m WITH NO DATA",
            "materialized view raw.n holds rows and reads materialized view raw.m, which holds none",
        ),
        (
            "CREATE TABLE raw.other (o regclass DEFAULT 'raw.orders'::regclass)",
            "default value for column o of table raw.other refers to it",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name_before_anything_moves(shop: Shop, made: str, told: str) -> None:
    shop.query(made)
    changes = shop.destination.planned_changes(shop.table, shop.schema)
    assert [change.refused for change in changes] == [True] * len(changes)
    assert told in "\n".join(change.description for change in changes)
    with pytest.raises(DestinationError, match="cannot exchange the target"):
        shop.ensure()


def test_a_change_of_the_table_during_the_load_is_not_lost(shop: Shop) -> None:
    prepared = shop.prepare([order(7)])
    shop.query("CREATE INDEX by_customer ON raw.orders (customer)")
    with pytest.raises(DestinationError, match=r"not as it was .* lacks CREATE INDEX by_customer"):
        prepared.publish(None, 0)
    assert shop.ids() == [1, 2]
    shop.publish([order(8)])
    assert shop.ids() == [8]
    assert shop.query("SELECT count(*) FROM pg_indexes WHERE indexname = 'by_customer'") == [(1,)]


def test_an_empty_source_is_refused_before_a_table_is_made(shop: Shop) -> None:
    with pytest.raises(DestinationError, match="load mode blue_green would leave the target empty"):
        shop.prepare([])
    assert shop.query("SELECT to_regclass('raw.orders_new')") == [(None,)]


def test_a_name_that_is_as_long_as_can_be_is_cut_for_the_new_table(make_shop: MakeShop) -> None:
    shop = make_shop("blue_green", target_name="ö" * 31 + "x")
    shop.publish([order(1)])
    shop.publish([order(2)])
    assert shop.query(f'SELECT id FROM raw."{"ö" * 31}x"') == [(2,)]


def test_a_name_may_hold_all_that_means_something_in_texts(make_shop: MakeShop) -> None:
    name = """rate%"x'y{oid}%s $1\\;--ü"""
    place = f'raw."{name.replace(chr(34), chr(34) * 2)}"'
    shop = make_shop("blue_green", primary_key=("id",), target_name=name)
    shop.publish([order(1), order(2)])
    shop.query(f'CREATE TABLE raw."li%nes" (id bigint CONSTRAINT of_order REFERENCES {place})')
    shop.query('INSERT INTO raw."li%nes" VALUES (2)')
    shop.query(f"ALTER TABLE {place} ADD no serial, ADD parent bigint REFERENCES {place}")
    shop.query(f"CREATE VIEW raw.v AS SELECT id FROM {place}; COMMENT ON TABLE {place} IS 'rates'")
    shop.query(f"CREATE MATERIALIZED VIEW raw.m AS SELECT id FROM {place}; CREATE INDEX ON {place} (lower(customer))")
    shop.query(f"CREATE FUNCTION raw.f() RETURNS bigint BEGIN ATOMIC SELECT sum(id) FROM {place}; END")
    shop.query(f'CREATE POLICY own ON raw."li%nes" USING (id IN (SELECT o.id FROM {place} o))')
    with pytest.raises(DestinationError, match=r'the source no longer has: raw\."li%nes" \(of_order\)'):
        shop.prepare([order(1)])
    for again in (3, 4):
        shop.publish([order(2), order(again)])
    assert shop.query("SELECT (SELECT sum(id) FROM raw.v), (SELECT sum(id) FROM raw.m), raw.f()") == [(6, 6, 6)]
    assert shop.query("SELECT convalidated FROM pg_constraint WHERE conname = 'of_order'") == [(True,)]


def test_a_schema_of_the_search_path_is_as_good_as_any(make_shop: MakeShop) -> None:
    shop = make_shop("blue_green", primary_key=("id",), target_schema="public")
    shop.publish([order(1)])
    indexes = shop.query("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'orders' ORDER BY 1")
    shop.publish([order(2), order(3)])
    assert shop.query("SELECT id FROM public.orders ORDER BY id") == [(2,), (3,)]
    assert shop.query("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'orders' ORDER BY 1") == indexes


@pytest.mark.parametrize("kept", ["STORED", "VIRTUAL"])
def test_a_column_that_the_target_computes_is_no_obstacle(shop: Shop, kept: str) -> None:
    shop.query(f"ALTER TABLE raw.orders ADD twice numeric GENERATED ALWAYS AS (amount * 2) {kept}")
    shop.publish([order(7, amount="2.50")])
    assert shop.query("SELECT id, twice FROM raw.orders") == [(7, 5)]


def test_who_publishes_the_target_is_told_of_before_a_load(shop: Shop) -> None:
    assert shop.destination.cautions(shop.table) == []
    shop.query("CREATE PUBLICATION one FOR TABLE raw.orders; CREATE PUBLICATION whole FOR TABLES IN SCHEMA raw")
    one, whole = shop.destination.cautions(shop.table)
    assert one.startswith("publication one: who subscribes keeps the old rows of raw.orders, because blue_green")
    assert "raw.orders_new" not in one
    assert "and is sent those of raw.orders_new while they are loaded" in whole
    assert shop.destination.cautions(make_table("truncate")) == ()


def test_functions_whose_callers_may_meet_an_error_are_told_of_before_a_load(shop: Shop) -> None:
    shop.query("CREATE MATERIALIZED VIEW raw.m AS SELECT id FROM raw.orders")
    for name, relation in (("of_m", "m"), ("of_orders", "orders")):
        body = f"SELECT max(id) FROM raw.{relation}"
        shop.query(f"CREATE FUNCTION raw.{name}(text) RETURNS bigint BEGIN ATOMIC {body}; END")
        shop.query(f"CREATE FUNCTION raw.{name}() RETURNS bigint LANGUAGE sql AS $${body}$$")
    of_m, of_orders = shop.destination.cautions(shop.table)
    assert of_m.startswith("function raw.of_m(text) reads raw.m in a body that PostgreSQL has resolved: who calls it")
    assert of_orders.startswith("function raw.of_orders(text) reads raw.orders in a body that PostgreSQL has resolved")
    assert 'may get the error "could not open relation with OID"; write the body as a string' in of_orders
    assert shop.destination.cautions(make_table("truncate")) == ()
