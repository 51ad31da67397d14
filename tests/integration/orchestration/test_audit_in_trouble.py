"""The audit DB is taken away while chunks are published: a clear error, nothing lost, nothing twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest

from hakiri_dagster.audit.database import SQLITE_FILE
from hakiri_dagster.cli.tally import Tally
from hakiri_dagster.engine.embedded_postgres import Server
from hakiri_dagster.manifest.tables import Table
from tests.integration.orchestration.conftest import ShopProject

AUDIT = "audit_in_trouble"
ORDERS = "order_id,placed_at\n" + "".join(f"{n},2024-{n % 4 + 1:02}-05\n" for n in range(40))
CHUNKS = [f"2024-{month:02}" for month in range(1, 5)]

Trouble = Callable[[], None]


@pytest.fixture
def orders(shop: ShopProject) -> ShopProject:
    shop.file("data/orders.csv", ORDERS)
    source = {"connector": "files", "config": {"path": "data", "format": "csv"}}
    tables = [{"name": "orders", "incremental": "placed_at", "load": {"mode": "append"}}]
    shop.manifest({"id": "shop", "source": source, "tables": tables})
    return shop


@pytest.fixture
def audit_url(orders: ShopProject, postgres_server: Server) -> Iterator[str]:
    """Of a database beside the destination's."""
    postgres_server.ensure_database(AUDIT)
    orders.file("manifests/hakiri.toml", f'[audit]\nurl = "{postgres_server.url(AUDIT)}"\n')
    yield postgres_server.url(AUDIT)
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {AUDIT} WITH (FORCE)")


@contextmanager
def trouble_after_the_first_publish(monkeypatch: pytest.MonkeyPatch, begin: Trouble) -> Iterator[None]:
    published = Tally.published

    def told(tally: Tally, table: Table, key: str, *, rows: int, quarantined: int) -> None:
        published(tally, table, key, rows=rows, quarantined=quarantined)
        begin()

    with monkeypatch.context() as patch:
        patch.setattr(Tally, "published", told)
        yield


def assert_nothing_was_lost_and_nothing_is_there_twice(orders: ShopProject) -> None:
    told = orders.apply()["orders"]
    assert (told["error"], told["chunks"]["failed"]) == (None, 0)
    assert orders.column("orders", "order_id") == list(range(40))
    loads = "SELECT chunk_key, count(*) FROM hakiri.ledger GROUP BY 1 ORDER BY 1"
    assert orders.rows(loads) == [(key, 1) for key in CHUNKS]
    with orders.runtime() as runtime:
        states = runtime.audit.chunks.states("shop", "orders")
        assert {state.key: state.status for state in states if state.key in CHUNKS} == dict.fromkeys(CHUNKS, "done")
        assert runtime.audit.chunks.held("shop", "orders", lambda _: False) == ()


def test_a_file_that_somebody_locks(orders: ShopProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hakiri_dagster.audit.engine.BUSY_SECONDS", 0.01)
    state = orders.root / ".hakiri"
    state.mkdir(exist_ok=True)
    with closing(sqlite3.connect(state / SQLITE_FILE, isolation_level=None, check_same_thread=False)) as other:

        def lock() -> None:
            other.execute("BEGIN IMMEDIATE")

        with trouble_after_the_first_publish(monkeypatch, lock):
            told = orders.apply()["orders"]
        assert "the audit DB is locked by another process" in told["error"]
        assert "wait for the other run to end" in told["error"]
        other.execute("ROLLBACK")
    assert_nothing_was_lost_and_nothing_is_there_twice(orders)


def test_one_that_is_gone(
    orders: ShopProject, audit_url: str, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as server:

        def go() -> None:
            server.execute(f"ALTER DATABASE {AUDIT} ALLOW_CONNECTIONS false")
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (AUDIT,))

        with trouble_after_the_first_publish(monkeypatch, go):
            told = orders.apply()["orders"]
        assert "the audit DB" in told["error"]
        server.execute(f"ALTER DATABASE {AUDIT} ALLOW_CONNECTIONS true")
    assert_nothing_was_lost_and_nothing_is_there_twice(orders)


def test_one_whose_disk_is_full(orders: ShopProject, audit_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server says so to whoever writes."""
    with psycopg.connect(audit_url, autocommit=True) as audit:

        def fill() -> None:
            audit.execute("""
                CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
                $$BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END$$
            """)
            audit.execute("""
                CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON hakiri.pipeline_chunks
                FOR EACH STATEMENT EXECUTE FUNCTION full_disk()
            """)

        with trouble_after_the_first_publish(monkeypatch, fill):
            told = orders.apply()["orders"]
        assert "the audit DB cannot grow: the disk is full" in told["error"]
        assert "make room, then run again; nothing was lost" in told["error"]
        audit.execute("DROP FUNCTION full_disk CASCADE")
    assert_nothing_was_lost_and_nothing_is_there_twice(orders)
