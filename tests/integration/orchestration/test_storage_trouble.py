"""Dagster's own storage, on a real PostgreSQL, while it is taken away."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import dagster as dg
import psutil
import psycopg
import pytest

from hakiri_dagster.engine.embedded_postgres import Server, hold
from hakiri_dagster.errors import EngineError
from hakiri_dagster.orchestration.dagster_home import PROJECT_VARIABLE, URL_VARIABLE, opened_instance, psycopg2_url
from hakiri_dagster.pipeline.runtime import embedded_storage_url
from tests.integration.orchestration.conftest import ShopProject

Storage = Callable[[str], AbstractContextManager[dg.DagsterInstance]]


@pytest.fixture
def storage(shop: ShopProject, monkeypatch: pytest.MonkeyPatch) -> Storage:
    for name in ("DAGSTER_HOME", URL_VARIABLE, PROJECT_VARIABLE):
        monkeypatch.setenv(name, "")  # so that what opening it sets is forgotten
    return lambda url: opened_instance(shop.root, psycopg2_url(url))


@pytest.fixture
def own_server(open_folder: Path) -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="storage-", dir=open_folder))
    folder.chmod(0o755)
    with hold(folder / "postgres", durable=False) as server:
        yield server
    shutil.rmtree(folder, ignore_errors=True)  # the server's last process may still write


@pytest.fixture
def one_order(csv_shop: Callable[..., ShopProject]) -> ShopProject:
    shop = csv_shop()
    shop.file("data/orders.csv", "order_id\n1\n")
    return shop


def test_a_storage_that_is_killed_comes_back_while_a_load_writes_to_it(
    one_order: ShopProject, storage: Storage, own_server: Server
) -> None:
    with own_server.kept_running(), storage(embedded_storage_url(own_server)) as instance:
        postmaster = psutil.Process(int((own_server.home.data / "postmaster.pid").read_text().split()[0]))
        postmaster.kill()
        while postmaster.is_running() and postmaster.status() != psutil.STATUS_ZOMBIE:
            os.sched_yield()
        told = replace(one_order, instance=instance).apply()["orders"]
        assert (told["rows"], told["error"]) == (1, None)
        assert len(instance.get_materialized_partitions(dg.AssetKey(["shop", "orders"]))) == 1


def test_a_storage_that_fails_is_told_and_what_was_published_is_not_loaded_again(
    one_order: ShopProject, storage: Storage, database_url: str
) -> None:
    with storage(database_url) as instance:
        broken = replace(one_order, instance=instance)
        with psycopg.connect(database_url) as connection:
            connection.execute("ALTER TABLE event_logs RENAME TO mislaid")
        told = broken.apply()["orders"]
        assert "shop/orders: Dagster's storage failed" in told["error"]
        with psycopg.connect(database_url) as connection:
            connection.execute("ALTER TABLE mislaid RENAME TO event_logs")
        assert broken.apply()["orders"]["error"] is None
    assert one_order.column("orders", "order_id") == [1]


def test_a_storage_that_refuses_us_is_told_with_the_file_that_names_it(storage: Storage, database_url: str) -> None:
    wrong = psycopg.conninfo.conninfo_to_dict(database_url)
    with (
        pytest.raises(EngineError, match=r"command-line\.yaml: Dagster's storage failed") as told,
        storage(f"postgresql://nobody:secret@127.0.0.1:{wrong['port']}/{wrong['dbname']}"),
    ):
        pass
    assert "secret" not in str(told.value)
