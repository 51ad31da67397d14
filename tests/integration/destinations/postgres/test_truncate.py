from __future__ import annotations

import threading

import psycopg
import pytest

from hakiri_dagster.errors import DestinationError
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import order
from tests.integration.destinations.postgres.test_widening import until_somebody_waits


def test_the_target_holds_what_the_source_holds(make_shop: MakeShop) -> None:
    shop = make_shop("truncate")
    shop.ensure()
    shop.query("INSERT INTO raw.orders (id) VALUES (99)")
    shop.publish([order(1), order(2)])
    shop.publish([order(2), order(3)])
    assert shop.ids() == [2, 3]


def test_an_empty_source_is_refused_in_the_promised_words(make_shop: MakeShop) -> None:
    shop = make_shop("truncate")
    shop.publish([order(1)])
    before = shop.fingerprint()
    with pytest.raises(DestinationError) as raised:
        shop.prepare([])
    assert str(raised.value) == (
        "shop/orders: the source returned 0 rows; load mode truncate would leave the target empty, "
        "so nothing was changed. Set fail_on_empty_source = false to allow it."
    )
    assert shop.fingerprint() == before


def test_an_empty_source_empties_the_target_when_that_is_allowed(make_shop: MakeShop) -> None:
    shop = make_shop("truncate", load={"fail_on_empty_source": False})
    shop.publish([order(1)])
    assert shop.publish([]).rows == 0
    assert shop.ids() == []


def test_a_referenced_table_is_refused_with_the_way_out(make_shop: MakeShop) -> None:
    shop = make_shop("truncate", primary_key=("id",))
    shop.publish([order(1)])
    shop.query("CREATE TABLE raw.lines (order_id bigint CONSTRAINT lines_order REFERENCES raw.orders)")
    changes = shop.destination.planned_changes(shop.table, shop.schema)
    assert [change.refused for change in changes] == [True]
    assert "raw.lines (lines_order)" in changes[0].description
    assert "blue_green or upsert" in changes[0].description
    with pytest.raises(DestinationError, match="blue_green or upsert"):
        shop.ensure()


def test_a_key_that_refers_to_a_single_partition_is_told_alike(make_shop: MakeShop) -> None:
    shop = make_shop("truncate")
    shop.query(
        "CREATE SCHEMA raw;"
        "CREATE TABLE raw.orders (id bigint PRIMARY KEY, customer text, amount numeric(10, 2), updated_at bigint,"
        " _hakiri_load_id bigint, parent bigint REFERENCES raw.orders) PARTITION BY RANGE (id);"
        "CREATE TABLE raw.few PARTITION OF raw.orders FOR VALUES FROM (0) TO (100);"
        "CREATE TABLE raw.lines (order_id bigint CONSTRAINT lines_few REFERENCES raw.few)"
    )
    told = [
        change.description for change in shop.destination.planned_changes(shop.table, shop.schema) if change.refused
    ]
    assert len(told) == 1
    assert "raw.lines (lines_few)" in told[0]
    shop.query("DROP TABLE raw.lines")
    shop.publish([order(1)])
    assert shop.ids() == [1]


def test_a_table_that_refers_to_itself_can_be_truncated(make_shop: MakeShop) -> None:
    shop = make_shop("truncate", primary_key=("id",))
    shop.publish([order(1)])
    shop.query("ALTER TABLE raw.orders ADD parent bigint REFERENCES raw.orders")
    shop.publish([order(2)])
    assert shop.ids() == [2]


def test_a_snapshot_older_than_the_load_does_not_see_an_empty_table(make_shop: MakeShop) -> None:
    shop = make_shop("truncate")
    shop.publish([order(1)])
    with psycopg.connect(shop.url) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT 1")
        shop.publish([order(2)])
        assert reader.execute("SELECT id FROM raw.orders").fetchall() == [(2,)]


def test_the_lock_that_keeps_readers_out_waits_for_the_first_rows(make_shop: MakeShop) -> None:
    shop = make_shop("truncate")
    shop.publish([order(1)])
    load = shop.load()
    candidate = shop.candidate(load, [order(2)])
    seen: list[list[int]] = []
    candidate.before_block = lambda _: seen.append(shop.ids())
    shop.destination.prepare(load, candidate).publish(None, 0)
    assert seen == [[1]]


@pytest.mark.parametrize("partitioned", [False, True])
def test_readers_do_not_queue_behind_a_load_that_waits_for_one_of_them(make_shop: MakeShop, partitioned: bool) -> None:
    shop = make_shop("truncate")
    if partitioned:
        shop.query("CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint) PARTITION BY RANGE (id)")
        shop.query("CREATE TABLE raw.few PARTITION OF raw.orders FOR VALUES FROM (0) TO (10)")
    shop.publish([order(1)])
    loading = threading.Thread(target=lambda: shop.publish([order(2)]))
    with psycopg.connect(shop.url) as reader, psycopg.connect(shop.url, autocommit=True) as other:
        reader.execute("SELECT * FROM raw.few" if partitioned else "SELECT * FROM raw.orders")
        loading.start()
        other.execute("SET statement_timeout = '3s'")
        for _ in range(2):
            until_somebody_waits(other, waits=True)
            assert other.execute("SELECT id FROM raw.orders").fetchall() == [(1,)]
            until_somebody_waits(other, waits=False)
        reader.rollback()
        loading.join(20)
    assert shop.ids() == [2]


def test_what_other_pipelines_loaded_into_the_target_is_superseded(make_shop: MakeShop) -> None:
    other = make_shop("append", pipeline_id="other", cursor=None)
    other.publish([order(7)])
    entry = other.publish([order(8)])
    mine = make_shop("truncate")
    first = mine.publish([order(1)])
    mine.publish([order(1)])
    assert other.destination.ledger(other.table, [entry.load_id - 1, entry.load_id]) == (), "none of its rows is left"
    assert [e.superseded for e in mine.destination.ledger(mine.table, [first.load_id])] == [False, True]
