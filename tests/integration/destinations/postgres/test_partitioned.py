"""A target that is partitioned: every mode loads it, and blue_green exchanges it with all its partitions."""

from __future__ import annotations

import re
from dataclasses import replace

import psycopg
import pytest

from hakiri_dagster.destinations.postgres.modes.registry import MODES
from hakiri_dagster.errors import DestinationError, DestinationUnavailable
from hakiri_dagster.manifest.load_spec import LoadMode
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order, window

PARTITIONED = """
CREATE SCHEMA raw;
CREATE SCHEMA old;
CREATE TABLE raw.orders (id bigint, customer text, amount numeric(10, 2), updated_at bigint, _hakiri_load_id bigint,
                         PRIMARY KEY (id, updated_at)) PARTITION BY RANGE (updated_at);
CREATE TABLE old.orders PARTITION OF raw.orders FOR VALUES FROM (0) TO (100) PARTITION BY HASH (id);
CREATE TABLE old.orders_0 PARTITION OF old.orders FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE old.orders_1 PARTITION OF old.orders FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE raw.recent PARTITION OF raw.orders FOR VALUES FROM (100) TO (200);
"""

OF_HISTORY = """
ALTER TABLE raw.orders DROP CONSTRAINT orders_pkey, ADD valid_from timestamptz NOT NULL, ADD valid_to timestamptz,
                       ADD is_current boolean
"""

every_mode = pytest.mark.parametrize("mode", sorted(MODES))


def partitioned(make_shop: MakeShop, mode: LoadMode) -> Shop:
    merges = mode in ("upsert", "delete_missing", "scd2")
    shop = make_shop(mode, upsert_key=("id", "updated_at") if merges else ())
    shop.query(PARTITIONED)
    if mode == "scd2":
        shop.query(OF_HISTORY)
    return shop


@every_mode
def test_the_same_slice_twice_leaves_the_same_rows(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = partitioned(make_shop, mode)
    shop.publish([order(1, "ann"), order(2, "bob", updated_at=150)])
    second = [order(1, "anne"), order(2, "bob", updated_at=150), order(3, "cid", updated_at=99)]
    shop.publish(second)
    shop.publish(second)
    assert shop.query(f"SELECT id, customer, updated_at FROM {shop.now} ORDER BY 1") == [
        (1, "anne", 1),
        (2, "bob", 150),
        (3, "cid", 99),
    ]
    assert shop.query("SELECT id FROM raw.recent") == [(2,)]


@every_mode
def test_a_row_that_no_partition_takes_is_set_aside_and_told_with_its_value(
    make_shop: MakeShop, mode: LoadMode
) -> None:
    shop = partitioned(make_shop, mode)
    shop.publish([order(1)])
    load = shop.load()
    candidate = shop.candidate(load, [order(1), order(2, updated_at=200)])
    prepared = shop.destination.prepare(load, candidate)
    (row,) = prepared.refused
    assert re.search(r"no partition .* \(updated_at\) = \(200\)", row.message)
    prepared.publish(None, 0)
    assert shop.ids() == [1]


def test_slices_of_an_append_are_replaced_across_partitions(make_shop: MakeShop) -> None:
    shop = partitioned(make_shop, "append")
    shop.publish([order(1, updated_at=50), order(2, updated_at=120)], window(0, 150))
    shop.publish([order(3, updated_at=160)], window(150, 200))
    shop.publish([order(4, updated_at=99), order(5, updated_at=100)], window(0, 150))
    assert shop.ids() == [3, 4, 5]


@pytest.fixture
def shop(make_shop: MakeShop) -> Shop:
    shop = partitioned(make_shop, "blue_green")
    shop.publish([order(1), order(2, updated_at=150)])
    return shop


def test_readers_of_the_table_and_of_a_partition_see_the_old_rows_or_the_new_ones(shop: Shop) -> None:
    from tests.integration.destinations.postgres.test_blue_green import readers

    counts = [f"SELECT count(*) FROM {name}" for name in ("raw.orders", "raw.recent", "old.orders")]
    with readers(shop.url, *counts, *counts) as seen:
        for size in range(3, 10):
            shop.publish([order(number, updated_at=number * 20) for number in range(1, size + 1)])
    assert set(seen) <= set(range(10))
    assert shop.query("SELECT count(*) FROM raw.orders") == [(9,)]
    assert shop.query("SELECT count(*) FROM raw.recent") == [(5,)]


def test_a_partition_that_somebody_adds_during_the_load_is_taken_along_by_the_next(shop: Shop) -> None:
    prepared = shop.prepare([order(7)])
    shop.query("CREATE TABLE raw.later PARTITION OF raw.orders FOR VALUES FROM (200) TO (300)")
    with pytest.raises(DestinationError, match=r"not as it was .* partitions came or went: raw\.later"):
        prepared.publish(None, 0)
    assert shop.ids() == [1, 2]
    shop.publish([order(7), order(8, updated_at=250)])
    assert shop.query("SELECT id FROM raw.later") == [(8,)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DROP TABLE raw.recent", "somebody dropped it, a partition of it"),
        ("ALTER TABLE raw.orders DETACH PARTITION raw.recent", r"partitions came or went: raw\.recent"),
        ("ALTER TABLE old.orders_1 ADD CHECK (id < 99)", r"lacks ALTER TABLE old\.orders_1 ADD CONSTRAINT"),
        ("CREATE INDEX ON old.orders_1 (customer)", r"lacks CREATE INDEX orders_1_customer_idx ON old\.orders_1"),
        ("CREATE MATERIALIZED VIEW raw.m AS SELECT id FROM old.orders_1", r"materialized view raw\.m depends on table"),
    ],
)
def test_another_change_of_a_partition_during_the_load_is_taken_along_as_well(
    shop: Shop, change: str, told: str
) -> None:
    prepared = shop.prepare([order(7)])
    shop.query(change)
    with pytest.raises(DestinationUnavailable, match=f"not as it was before the load.*{told}"):
        prepared.publish(None, 0)
    assert 1 in shop.ids()
    shop.publish([order(7)])
    assert shop.ids() == [7]


def test_tables_that_a_dead_load_left_are_swept_by_the_next(shop: Shop) -> None:
    shop.prepare([order(7)])  # its worker died
    shop.publish([order(8)])
    assert shop.ids() == [8]
    assert shop.query("SELECT count(*) FROM pg_class WHERE relname LIKE 'hakiri!_%' ESCAPE '!'") == [(0,)]
    assert shop.query("SELECT count(*) FROM pg_class WHERE relname = 'orders_new'") == [(0,)]


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (
            "CREATE TABLE raw.other (o old.orders_0)",
            "its partition old.orders_0: column o of table raw.other refers to",
        ),
        (
            "ALTER TABLE raw.orders ADD CONSTRAINT apart EXCLUDE USING btree (id WITH =, updated_at WITH =)",
            "its exclusion constraint apart spans partitions",
        ),
        (
            "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;"
            "CREATE FOREIGN TABLE raw.far PARTITION OF raw.orders FOR VALUES FROM (200) TO (300) SERVER s",
            "its partition raw.far: it is a foreign table",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name_before_anything_moves(
    make_shop: MakeShop, made: str, told: str
) -> None:
    shop = make_shop("blue_green")
    shop.query(PARTITIONED.replace("PRIMARY KEY (id, updated_at)", "note text"))
    shop.query(made)
    changes = shop.destination.planned_changes(shop.table, shop.schema)
    assert told in "\n".join(change.description for change in changes if change.refused)


def test_a_partition_that_is_being_detached_is_refused(shop: Shop) -> None:
    """Its detaching waits for a reader, and is given up."""
    with psycopg.connect(shop.url) as reader, psycopg.connect(shop.url, autocommit=True) as detaching:
        reader.execute("SELECT count(*) FROM raw.orders")
        detaching.execute("SET statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            detaching.execute("ALTER TABLE raw.orders DETACH PARTITION raw.recent CONCURRENTLY")
    with pytest.raises(DestinationError, match=r"its partition raw\.recent is being detached"):
        shop.ensure()


def test_a_partition_of_another_table_is_no_target(make_shop: MakeShop) -> None:
    shop = make_shop("blue_green")
    shop.query(PARTITIONED)
    shop.table = replace(shop.table, target_name="recent")
    with pytest.raises(DestinationError, match=r"it is a partition of raw\.orders"):
        shop.ensure()


def test_a_key_without_the_key_of_a_partition_s_partitions_is_refused_by_name(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", upsert_key=("customer", "updated_at"))
    shop.query(PARTITIONED.replace("PRIMARY KEY (id, updated_at)", "note text"))
    with pytest.raises(DestinationError, match="unless the key has id, by which it is partitioned"):
        shop.ensure()


def test_partitions_by_an_expression_are_made_alike(make_shop: MakeShop) -> None:
    shop = make_shop("blue_green")
    key = "PRIMARY KEY (id, updated_at)) PARTITION BY RANGE (updated_at)"
    shop.query(PARTITIONED.replace(key, "note text) PARTITION BY RANGE ((updated_at / 1 + 0) int8_ops)"))
    shop.publish([order(1)])
    shop.publish([order(2, updated_at=150)])
    assert shop.query("SELECT id FROM raw.recent") == [(2,)]
