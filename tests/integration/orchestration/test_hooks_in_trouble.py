"""Hooks of somebody else's, hooks that are killed, hooks of two runs at once: each runs, and not once too often."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hakiri_dagster.destinations.postgres import hook_session
from hakiri_dagster.hooks.context import HookContext
from hakiri_dagster.pipeline.hooks_run import HookRun, post_hooks
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.operators_package import calls, install

Declare = Callable[..., ShopProject]


def function(name: str, **more: str) -> dict[str, str]:
    return {"type": "custom_function", "function": name} | more


def explain(statement: str) -> dict[str, str]:
    return {"type": "sql", "statement": statement}


@pytest.fixture
def installed(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def package(*functions: str) -> Any:
        install(project_dir / "packages", monkeypatch, *functions)
        importlib.invalidate_caches()
        return importlib.import_module("operators_functions")

    return package


def logged(shop: ShopProject) -> list[str]:
    return [str(entry.user_message) for run in shop.instance.get_runs() for entry in shop.instance.all_logs(run.run_id)]


def test_a_function_is_told_of_the_load_and_can_change_nothing_of_it(
    csv_shop: Declare, installed: Callable[..., Any]
) -> None:
    package = installed("keeps", "changes")
    shop = csv_shop(load={"pre_hook": function("keeps"), "post_hook": [function("keeps"), function("changes")]})
    shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
    told = shop.apply()["orders"]
    assert "it raised FrozenInstanceError" in told["error"]
    before, after = package.called
    (load_id, key, run_id, at) = shop.rows("SELECT load_id, chunk_key, run_id, published_at FROM hakiri.ledger")[0]
    assert after == HookContext(
        "shop", "orders", "raw.orders", "post_hook", run_id, rows=2, chunks=(key,), load_ids=(load_id,), at=at
    )
    assert (before.phase, before.rows, before.chunks, before.load_ids) == ("pre_hook", None, (key,), ())


def test_the_error_of_a_function_is_told_with_its_type_and_without_secrets(
    csv_shop: Declare, installed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed("fails", "leaves")
    monkeypatch.setenv("KEY", "s3cret-of-the-operator")
    webhook = {"type": "webhook", "url": "https://hooks.example.com", "secret": "${KEY}", "on_error": "warn"}
    shop = csv_shop(load={"pre_hook": [function("leaves", on_error="warn"), function("fails")], "post_hook": webhook})
    shop.env = {"KEY": "s3cret-of-the-operator"}
    shop.file("data/orders.csv", "id,v\n1,a\n")
    told = shop.apply()["orders"]
    assert (
        "pre_hook `custom_function fails` failed; nothing was loaded: it raised RuntimeError: no room for ***"
        in (told["error"])
    )
    assert any("it raised SystemExit: 3" in warning for warning in told["warnings"])
    assert not any("s3cret-of-the-operator" in line for line in logged(shop))
    assert shop.rows("SELECT count(*) FROM raw.orders") == [(0,)]


def test_hooks_run_once_for_all_chunks_of_a_run_and_not_while_one_of_them_fails(
    csv_shop: Declare, installed: Callable[..., Any]
) -> None:
    package = installed("keeps")
    shop = csv_shop(columns={"id": "int"}, load={"bad_rows": "abort", "post_hook": function("keeps")})
    shop.file("data/orders/a.csv", "id,v\n1,a\n")
    shop.file("data/orders/b.csv", "id,v\n2,a\n")
    shop.file("data/orders/c.csv", "id,v\nthree,a\n")
    told = shop.apply()["orders"]
    assert (told["chunks"]["done"], told["chunks"]["failed"], told["hooks"]) == (2, 1, 0)
    assert package.called == []
    assert open_alert(shop) == ("hooks_owed", "failed chunk", {"hooks": ["custom_function keeps"]})
    shop.file("data/orders/c.csv", "id,v\n3,a\n4,b\n")
    told = shop.apply()["orders"]
    assert (told["chunks"]["done"], told["hooks"], told["error"]) == (1, 1, None)
    (context,) = package.called
    assert (len(context.chunks), len(context.load_ids), context.rows) == (3, 3, 4)


def test_what_a_hook_sets_is_set_anew_after_the_connection_was_lost(
    csv_shop: Declare, installed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed("cuts")
    sets, asks = explain("SET work_mem = '77MB'"), explain("EXPLAIN (SETTINGS) SELECT * FROM {table}")
    shop = csv_shop(load={"post_hook": [sets, function("cuts"), asks]})
    monkeypatch.setenv("SHOP_URL", shop.url)
    shop.file("data/orders.csv", "id,v\n1,a\n")
    told = shop.apply()["orders"]
    assert (told["error"], told["hooks"]) == (None, 3)
    assert any(line.startswith("Settings:") and "work_mem = '77MB'" in line for line in logged(shop))


def test_what_an_owed_hook_needs_set_is_set_though_it_is_not_owed_itself(csv_shop: Declare) -> None:
    sets, asks = explain("SET work_mem = '77MB'"), explain("EXPLAIN (SETTINGS) SELECT * FROM raw.soon")
    shop = csv_shop(load={"post_hook": [sets, asks]})
    shop.file("data/orders.csv", "id,v\n1,a\n")
    assert "raw.soon" in shop.apply()["orders"]["error"]
    assert shop.rows("SELECT described FROM hakiri.owed_hook") == [(f"sql {asks['statement']}",)]
    shop.execute("CREATE TABLE raw.soon ()")
    assert shop.apply()["orders"]["error"] is None
    assert any(line.startswith("Settings:") and "work_mem = '77MB'" in line for line in logged(shop))


def test_two_runs_at_once_do_not_both_run_what_is_owed(csv_shop: Declare, installed: Callable[..., Any]) -> None:
    package = installed("fails", "waits")
    shop = csv_shop(load={"post_hook": [function("fails"), function("waits")]})
    shop.file("data/orders.csv", "id,v\n1,a\n")
    assert "failed" in shop.apply()["orders"]["error"]
    csv_shop(load={"post_hook": function("waits")})
    ran: list[HookRun] = []
    with shop.runtime() as one, shop.runtime() as other:

        def settle(runtime: Any) -> None:
            (table,) = runtime.project.tables
            way = runtime.way(table, lambda: None, run_id="r", log=lambda _line: None)
            ran.extend(post_hooks(way))

        threads = [threading.Thread(target=settle, args=(runtime,)) for runtime in (one, other)]
        for thread in threads:
            thread.start()
        assert package.reached.wait(30)
        with psycopg.connect(shop.url, autocommit=True) as connection:
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            while connection.execute(waiting).fetchone() == (0,):
                assert all(thread.is_alive() for thread in threads)
        package.going_on.set()
        for thread in threads:
            thread.join(30)
    assert [one.name for one in ran] == ["custom_function waits"]
    assert len(package.called) == 1


def test_hooks_that_another_run_keeps_busy_are_told_of(
    csv_shop: Declare, installed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = installed("fails", "waits")
    shop = csv_shop(load={"post_hook": [function("fails"), function("waits")]})
    shop.file("data/orders.csv", "id,v\n1,a\n")
    shop.apply()
    monkeypatch.setattr(hook_session, "_PATIENCE", "50ms")
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        way = runtime.way(table, lambda: None, run_id="r", log=lambda _line: None)
        with way.destination.hook_session(table, None):
            assert list(post_hooks(way)) == []
    assert open_alert(shop) == ("hooks_owed", "busy", {"hooks": ["custom_function fails", "custom_function waits"]})
    assert len(package.called) == 0


def open_alert(shop: ShopProject) -> tuple[str, str, Mapping[str, Any]]:
    with shop.runtime() as runtime:
        (alert,) = runtime.audit.alerts.newest()
    return alert.kind, alert.subject, alert.details


def test_a_process_that_is_killed_among_the_hooks_costs_no_row_and_repeats_no_hook_that_had_ended(
    csv_shop: Declare, installed: Callable[..., Any]
) -> None:
    package = Path(installed("dies", "first", "dies_too", "last").__file__).parent
    shop = csv_shop(load={"post_hook": [function("dies"), function("first"), function("dies_too"), function("last")]})
    shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
    assert [apply_apart(shop) for _ in range(3)] == [-9, -9, 0]
    (load_id,) = shop.rows("SELECT load_id FROM hakiri.ledger")[0]
    assert calls(package) == [
        f"{name} {load_id} 2" for name in ("dies", "dies", "first", "dies_too", "dies_too", "last")
    ]
    assert shop.rows("SELECT count(*) FROM raw.orders") == [(2,)]
    assert shop.rows("SELECT count(*) FROM hakiri.owed_hook") == [(0,)]


def apply_apart(shop: ShopProject) -> int:
    command = [Path(sys.executable).with_name("hakiri"), "--project", str(shop.root), "apply", "--json"]
    return subprocess.run(command, capture_output=True, timeout=120).returncode


def test_a_hook_on_the_table_that_blue_green_made_runs_before_it_takes_its_place(csv_shop: Declare) -> None:
    """EXPLAIN tells what `{table}` was. REINDEX INDEX fails, for it is none."""
    shop = csv_shop(primary_key=["id"], columns={"id": "int"}, load={"mode": "blue_green"})
    shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
    shop.apply()
    shop.file("data/orders.csv", "id,v\n3,c\n")
    hooks = [explain("EXPLAIN SELECT * FROM {table}"), explain("REINDEX INDEX {table}"), explain("ANALYZE raw.orders")]
    csv_shop(primary_key=["id"], columns={"id": "int"}, load={"mode": "blue_green", "post_hook": hooks})
    told = shop.apply()["orders"]
    assert "post_hook `sql REINDEX INDEX {table}` failed; nothing was loaded" in told["error"]
    assert told["chunks"] == {"done": 0, "failed": 1, "skipped": 0, "pending": 0}
    assert shop.column("orders", "id") == [1, 2]
    assert shop.rows("SELECT relname FROM pg_class WHERE relname LIKE 'orders%new%'") == []
    assert shop.rows("SELECT count(*) FROM hakiri.owed_hook") == [(0,)]
    hooks[1] |= {"on_error": "warn"}
    csv_shop(primary_key=["id"], columns={"id": "int"}, load={"mode": "blue_green", "post_hook": hooks})
    told = shop.apply()["orders"]
    assert (told["error"], told["hooks"]) == (None, 2)
    assert any("REINDEX" in warning for warning in told["warnings"])
    assert shop.column("orders", "id") == [3]
    assert any("Scan on orders_new" in line for line in logged(shop))
