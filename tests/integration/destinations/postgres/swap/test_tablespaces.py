"""Tables, indexes and materialized views come out of an exchange in the tablespaces that they went into it with."""

from __future__ import annotations

import pytest

from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order

PLACES = """
SELECT c.oid::regclass::text, s.spcname FROM pg_class c LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
WHERE relnamespace = 'raw'::regnamespace AND relkind IN ('r', 'p', 'i', 'I', 'm') ORDER BY 1
"""
ORDERS = "id bigint, customer text, amount numeric(10, 2), updated_at bigint, _hakiri_load_id bigint"


@pytest.fixture
def shop(tablespaces: None, make_shop: MakeShop) -> Shop:
    """What is made without a tablespace goes into `usual`, unless it is kept out of that."""
    shop = make_shop("blue_green")
    database = shop.query("SELECT quote_ident(current_database())")[0][0]
    shop.query("CREATE SCHEMA raw")
    shop.query(f"ALTER DATABASE {database} SET default_tablespace = 'usual'")
    return shop


def exchanged_twice(shop: Shop) -> None:
    shop.ensure()
    before = shop.query(PLACES)
    shop.publish([order(1)])
    shop.publish([order(2)])
    assert shop.query(PLACES) == before


def test_of_a_table_its_indexes_and_its_materialized_views(shop: Shop) -> None:
    shop.query(f'CREATE TABLE raw.orders ({ORDERS}) TABLESPACE "sl ow"')
    shop.query("ALTER TABLE raw.orders ADD PRIMARY KEY (id) USING INDEX TABLESPACE fast")
    shop.query("ALTER TABLE raw.orders ADD UNIQUE (customer, id) DEFERRABLE")
    shop.query('ALTER TABLE raw.orders ADD EXCLUDE USING btree (id WITH =) USING INDEX TABLESPACE "sl ow"')
    shop.query("CREATE INDEX ON raw.orders (amount) TABLESPACE pg_default")
    shop.query("CREATE MATERIALIZED VIEW raw.m TABLESPACE fast AS SELECT id FROM raw.orders")
    shop.query("CREATE MATERIALIZED VIEW raw.n TABLESPACE pg_default AS SELECT id FROM raw.m")
    shop.query('CREATE UNIQUE INDEX ON raw.m (id) TABLESPACE "sl ow"')
    exchanged_twice(shop)


def test_of_partitions_and_what_they_give_to_theirs(shop: Shop) -> None:
    shop.query(f'CREATE TABLE raw.orders ({ORDERS}) PARTITION BY LIST (id) TABLESPACE "sl ow"')
    shop.query("CREATE TABLE raw.one PARTITION OF raw.orders FOR VALUES IN (1) TABLESPACE fast")
    shop.query("CREATE TABLE raw.two PARTITION OF raw.orders FOR VALUES IN (2) TABLESPACE pg_default")
    shop.query("ALTER TABLE raw.orders ADD PRIMARY KEY (id) USING INDEX TABLESPACE fast")
    shop.query('ALTER INDEX raw.two_pkey SET TABLESPACE "sl ow"')
    shop.query("SET default_tablespace = ''; CREATE INDEX ON raw.orders (customer)")
    exchanged_twice(shop)


def test_none_of_its_own_is_none_afterwards(shop: Shop) -> None:
    shop.query(
        f"SET default_tablespace = ''; CREATE TABLE raw.orders ({ORDERS}, PRIMARY KEY (id));"
        "CREATE MATERIALIZED VIEW raw.m AS SELECT id FROM raw.orders"
    )
    shop.query("SET default_tablespace = ''; CREATE INDEX ON raw.orders USING brin (_hakiri_load_id)")
    exchanged_twice(shop)
    assert {place for _, place in shop.query(PLACES)} == {None}
