from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from hakiri_dagster.engine.embedded_postgres import Server

NAMES = ('"sl ow"', "fast", "usual")


@pytest.fixture
def tablespaces(postgres_server: Server) -> Iterator[None]:
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("SET allow_in_place_tablespaces = on")
        for name in NAMES:
            connection.execute(f"CREATE TABLESPACE {name} LOCATION ''".encode())
        yield
        for name in NAMES:
            connection.execute(f"DROP TABLESPACE {name}".encode())
