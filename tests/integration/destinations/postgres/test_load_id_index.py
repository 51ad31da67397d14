from __future__ import annotations

import threading

import psycopg

from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order, window

RANGES_TO_SUM_UP = """
SELECT brin_summarize_new_values(indexrelid) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = '{}'::regclass AND relam = (SELECT oid FROM pg_am WHERE amname = 'brin')
"""


def fill(shop: Shop) -> None:
    """Some megabytes, as a long backfill leaves them before autovacuum comes by."""
    shop.query("INSERT INTO raw.orders (id, updated_at) SELECT n, 5 FROM generate_series(100, 100000) n")


def test_chunks_that_are_loaded_again_find_their_rows_without_reading_the_whole_table(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.publish([order(1, updated_at=5)], window(0, 10))
    fill(shop)
    shop.publish([order(2, updated_at=5)], window(0, 10))
    ((left,),) = shop.query(RANGES_TO_SUM_UP.format("raw.orders"))
    assert left <= 1  # the range that the new rows went to


def test_so_do_chunks_of_a_partitioned_table(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.query(
        "CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint, customer text, amount numeric(10, 2),"
        " updated_at bigint, _hakiri_load_id bigint) PARTITION BY LIST (customer);"
        "CREATE TABLE raw.rest PARTITION OF raw.orders DEFAULT"
    )
    shop.publish([order(1, updated_at=5)], window(0, 10))
    fill(shop)
    shop.publish([order(2, updated_at=5)], window(0, 10))
    ((left,),) = shop.query(RANGES_TO_SUM_UP.format("raw.rest"))
    assert left <= 1


def test_a_vacuum_that_is_at_work_does_not_stop_them(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.publish([order(1, updated_at=5)], window(0, 10))
    fill(shop)
    with psycopg.connect(shop.url) as vacuum:
        vacuum.execute("LOCK TABLE raw.orders IN SHARE UPDATE EXCLUSIVE MODE")
        shop.publish([order(2, updated_at=5)], window(0, 10))
    assert shop.query("SELECT id FROM raw.orders WHERE id < 100") == [(2,)]


def test_readers_go_on_while_the_indexes_of_a_table_that_was_there_are_built(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    make_shop(target_name="others").ensure()  # the first of all makes the ledger, too
    shop.query("CREATE TABLE raw.orders (id bigint, customer text)")
    body = "BEGIN PERFORM pg_advisory_xact_lock(7); END"
    shop.query(f"CREATE FUNCTION public.await() RETURNS event_trigger LANGUAGE plpgsql AS '{body}'")
    shop.query(
        "CREATE EVENT TRIGGER await ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION public.await()"
    )
    adopting = threading.Thread(target=shop.ensure)
    with psycopg.connect(shop.url, autocommit=True) as reader:
        reader.execute("SELECT pg_advisory_lock(7)")
        adopting.start()
        built = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted"
        while reader.execute(built).fetchone() == (0,):
            assert adopting.is_alive()
        reader.execute("SET statement_timeout = '3s'")
        assert reader.execute("SELECT amount, _hakiri_load_id FROM raw.orders").fetchall() == []
    adopting.join(20)
    assert shop.query("SELECT count(*) FROM pg_index WHERE indrelid = 'raw.orders'::regclass") == [(2,)]
