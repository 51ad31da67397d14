"""A pipeline under a new name, a moved project, a second project: none doubles or mixes the rows of a target."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import dagster as dg
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from hakiri_dagster.audit.status import TableError
from hakiri_dagster.cli.apply_command import apply as apply_command
from hakiri_dagster.cli.explain import document
from hakiri_dagster.cli.plan_command import plan as plan_command
from hakiri_dagster.cli.rename_command import rename as rename_command
from hakiri_dagster.cli.rename_command import rename_everywhere
from hakiri_dagster.engine.embedded_postgres import Server
from hakiri_dagster.errors import HakiriError, UsageError
from hakiri_dagster.orchestration.dagster_home import opened_instance, psycopg2_url
from hakiri_dagster.orchestration.renamed_assets import move_asset
from hakiri_dagster.pipeline.renaming import Renamed, parse_rename, rename_loads
from hakiri_dagster.planning.publishers import Move
from tests.integration.destinations.postgres.killing_proxy import KillingProxy
from tests.integration.destinations.postgres.workers import WORKERS
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.renaming_worker import rename_with_dagster
from tests.integration.orchestration.test_apply import order_lines

APPEND = {"mode": "append"}


def declare(shop: ShopProject, pipeline: str = "tea", table: str = "orders", **settings: Any) -> None:
    """The only pipeline: a file a chunk, in append mode, into raw.orders."""
    for manifest in (shop.root / "manifests/pipelines").glob("*.json"):
        manifest.unlink()
    shop.manifest(
        {
            "id": pipeline,
            "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
            "tables": [{"name": table, "target": "orders", "path": "data/orders/", "load": APPEND} | settings],
        }
    )


def loaded(shop: ShopProject, *args: Any, **settings: Any) -> ShopProject:
    declare(shop, *args, **settings)
    shop.file("data/orders/a.csv", order_lines((1, "2024-01-01", "9.50"), (2, "2024-01-02", "x")))
    shop.file("data/orders/b.csv", order_lines((3, "2024-01-03", "2.00")))
    shop.apply()
    return shop


def ids(shop: ShopProject) -> list[int]:
    return shop.column("orders", "order_id")


def plan(shop: ShopProject) -> dict[str, Any]:
    """What `plan --json` says of the only table."""
    with shop.runtime() as runtime:
        (pipeline,) = document(runtime.plan(runtime.project.tables).plan)["pipelines"]
    (table,) = pipeline["tables"]
    return dict(table)


def errors(shop: ShopProject, pipeline: str) -> list[TableError]:
    with shop.runtime() as runtime:
        return runtime.audit.status(pipeline)["errors"]


def rename(shop: ShopProject, old: str, new: str) -> Renamed | None:
    def show(moves: Sequence[Move]) -> tuple[int, ...]:
        return tuple(move_asset(shop.instance, move) for move in moves)

    with shop.runtime() as runtime:
        return rename_loads(runtime, parse_rename(old, new), show)


RENAMES = {"pipeline": (("shop", "orders"), "tea", "shop"), "table": (("tea", "sales"), "tea/orders", "tea/sales")}


@pytest.mark.parametrize("what", RENAMES)
def test_a_new_name_is_refused_until_what_was_loaded_is_renamed(shop: ShopProject, what: str) -> None:
    named, old, new = RENAMES[what]
    loaded(shop)
    declare(shop, *named)
    answer = plan(shop)
    assert answer["verdict"] == "refused"
    (reason,) = answer["refused"]
    assert "raw.orders holds rows in 2 chunk(s) that were published as tea/orders" in reason
    for words in ("/".join(named), f"hakiri pipeline rename {old} {new}", "load.adopt = true", "another `target`"):
        assert words in reason
    answer = shop.apply()[named[1]]
    assert (reason in answer["error"], ids(shop)) == (True, [1, 2, 3])
    assert [reason in one["error"] for one in errors(shop, named[0])] == [True]

    renamed = rename(shop, old, new)
    assert renamed is not None
    assert errors(shop, named[0]) == []
    assert ([moved.loads for moved in renamed.moved], renamed.shown) == ([2], (2,))
    assert plan(shop)["verdict"] == "nothing"
    shop.file("data/orders/c.csv", order_lines((4, "2024-01-04", "2.00")))
    answer = shop.apply()[named[1]]
    assert (answer["rows"], answer["error"], ids(shop)) == (1, None, [1, 2, 3, 4])
    assert rename(shop, old, new) is None  # there is nothing left to do


def test_the_refusal_names_a_command_that_works_where_the_old_pipeline_stays(shop: ShopProject) -> None:
    loaded(shop)
    declare(shop, "two")
    shop.manifest(
        {"id": "tea", "source": {"connector": "files", "config": {"path": "data"}}, "tables": [{"name": "other"}]}
    )
    with shop.runtime() as runtime:
        (table,) = runtime.project.pipeline("two").tables  # type: ignore[union-attr]
        (reason,) = runtime.plan([table]).plan.tables[0].refusals
    assert "run `hakiri pipeline rename tea/orders two/orders`" in reason
    assert rename(shop, "tea/orders", "two/orders") is not None


def test_two_pipelines_exchange_their_names_by_way_of_a_third(shop: ShopProject) -> None:
    def declare_both(first: str, second: str) -> None:
        declare(shop, first)
        source = {"connector": "files", "config": {"path": "data", "format": "csv"}}
        items = {"name": "orders", "target": "items", "path": "data/items/", "load": APPEND}
        shop.manifest({"id": second, "source": source, "tables": [items]})

    shop.file("data/items/a.csv", order_lines((8, "2024-01-01", "9.50")))
    shop.file("data/orders/a.csv", order_lines((1, "2024-01-01", "9.50")))
    declare_both("tea", "shop")
    shop.apply()
    declare_both("shop", "tea")
    with shop.runtime() as runtime:
        refused = [reason for table in runtime.plan(runtime.project.tables).plan.tables for reason in table.refusals]
    assert [("have exchanged their names" in reason, "third name" in reason) for reason in refused] == [
        (True, True)
    ] * 2
    for first, second, old, new in (
        ("third", "shop", "tea", "third"),
        ("third", "tea", "shop", "tea"),
        ("shop", "tea", "third", "shop"),
    ):
        declare_both(first, second)
        assert rename(shop, old, new) is not None
    with shop.runtime() as runtime:
        assert runtime.plan(runtime.project.tables).plan.is_converged
    assert (ids(shop), shop.column("items", "order_id")) == ([1], [8])


def test_the_commands_refuse_rename_and_then_have_nothing_to_do(
    shop: ShopProject,
    postgres_server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    postgres_server.ensure_database("dagster_of_renames")
    monkeypatch.setenv("HAKIRI_DAGSTER_URL", postgres_server.url("dagster_of_renames"))
    monkeypatch.setenv("DAGSTER_HOME", "")  # the commands set both, and they are put back
    monkeypatch.setenv("HAKIRI_PROJECT", "")

    def answer(command: Callable[[], int], code: int) -> Any:
        assert command() == code
        return json.loads(capsys.readouterr().out)

    def apply() -> int:
        return apply_command(shop.root, [], as_json=True, parallelism=None)

    declare(shop)
    shop.file("data/orders/a.csv", order_lines((1, "2024-01-01", "9.50"), (2, "2024-01-02", "x")))
    shop.file("data/orders/b.csv", order_lines((3, "2024-01-03", "2.00")))
    answer(apply, 0)
    declare(shop, "shop")
    assert plan_command(shop.root, [], as_json=False) == 1
    assert "! refused: raw.orders holds rows in 2 chunk(s)" in capsys.readouterr().out
    assert answer(apply, 1)["pipelines"][0]["tables"][0]["rows"] == 0
    renamed = answer(lambda: rename_command(shop.root, "tea", "shop", as_json=True), 0)
    (table,) = renamed["tables"]
    assert (table["loads"], table["chunks_shown"], table["warnings"]) == (2, 2, [])
    assert answer(lambda: plan_command(shop.root, [], as_json=True, partitions=True), 0)["converged"]
    assert answer(lambda: rename_command(shop.root, "tea", "shop", as_json=True), 0)["renamed"] is False
    assert ids(shop) == [1, 2, 3]


def test_wrong_calls_of_rename_say_what_to_do_and_exit_with_2(shop: ShopProject) -> None:
    declare(shop, "shop")
    for old, new, message in (
        ("tea", "coffee", "no manifest declares `coffee`"),
        ("tee", "shop", "nothing was ever loaded as `tee`"),
        ("tea/orders", "shop", "are not both pipelines or both tables"),
        ("shop", "shop", "is the name that it has"),
    ):
        with pytest.raises(UsageError, match=message) as wrong:
            rename(shop, old, new)
        assert wrong.value.exit_code == 2
    shop.manifest({"id": "tea", "source": {"connector": "files", "config": {"path": "data"}}, "tables": ["other"]})
    with pytest.raises(UsageError, match="`tea` is still declared beside `shop`"):
        rename(shop, "tea", "shop")


def test_an_asset_shows_what_was_loaded_under_its_old_name(shop: ShopProject) -> None:
    loaded(shop, columns={"order_id": "integer"})
    old, new = dg.AssetKey(["tea", "orders"]), dg.AssetKey(["shop", "orders"])
    partitions = shop.instance.get_materialized_partitions(old)
    before = shop.instance.get_latest_materialization_event(old)
    assert before is not None
    assert before.asset_materialization is not None
    check = dg.AssetCheckKey(new, "no_rows_set_aside")
    declare(shop, "shop", columns={"order_id": "integer"})

    class Crash(Exception): ...

    class Crashing:
        """Dagster's storage, lost after so many of the calls that change it."""

        def __init__(self, calls: int) -> None:
            self.left = calls

        def __getattr__(self, name: str) -> Any:
            if name.startswith(("report", "add", "delete", "wipe")):
                self.left -= 1
                if self.left < 0:
                    raise Crash
            return getattr(shop.instance, name)

    calls = 0
    while True:
        try:
            with shop.runtime() as runtime:
                rename_loads(
                    runtime,
                    parse_rename("tea", "shop"),
                    lambda moves, calls=calls: tuple(move_asset(Crashing(calls), move) for move in moves),  # type: ignore[misc, arg-type]
                )
            break
        except Crash:
            assert "is not finished" in plan(shop)["refused"][0]
            calls += 1
    assert calls >= 4
    assert shop.instance.get_materialized_partitions(new) == partitions
    assert set(shop.instance.get_dynamic_partitions("shop/orders")) == partitions
    assert (shop.instance.has_asset_key(old), shop.instance.get_dynamic_partitions("tea/orders")) == (False, [])
    after = shop.instance.get_latest_materialization_event(new)
    assert after is not None
    assert after.asset_materialization is not None
    answer = after.asset_materialization.metadata
    assert answer["renamed_from"].value == "tea/orders"
    assert {
        name: answer[name] for name in before.asset_materialization.metadata
    } == before.asset_materialization.metadata
    found = shop.instance.get_latest_asset_check_evaluation_record(check)
    assert found is not None
    assert found.event is not None
    assert found.event.asset_check_evaluation.metadata["rows_set_aside"].value == 0
    with shop.runtime() as runtime:
        assert len(runtime.audit.runs.recent("shop", "orders")) == 1
        assert runtime.audit.runs.recent("tea") == ()


def test_published_chunks_of_another_name_are_adopted_where_the_manifest_says_so(shop: ShopProject) -> None:
    loaded(shop)
    declare(shop, "shop", "sales", load={**APPEND, "adopt": True})
    answer = plan(shop)
    assert (answer["verdict"], answer["adopts"], answer["refused"]) == (
        "load",
        [{"publisher": "tea/orders", "chunks": 2}],
        [],
    )
    shop.file("data/orders/c.csv", order_lines((4, "2024-01-04", "2.00")))
    answer = shop.apply()["sales"]
    assert (answer["rows"], answer["error"], ids(shop)) == (1, None, [1, 2, 3, 4])
    answer = plan(shop)
    assert (answer["verdict"], answer["adopts"]) == ("nothing", [])
    declare(shop)  # the old name is refused in turn
    assert "published as shop/sales" in plan(shop)["refused"][0]


def test_rows_of_two_publishers_are_not_joined(shop: ShopProject) -> None:
    """Their chunks are called alike, so that one would replace the rows of the other."""
    loaded(shop)
    columns = "chunk_key, bounds, rows, bytes, cursor_committed, run_id, attempt, token, target, mode"
    shop.execute(
        f"INSERT INTO hakiri.ledger (load_id, pipeline_id, table_name, {columns}) "
        f"SELECT load_id + 1000, 'shop', table_name, {columns} FROM hakiri.ledger"
    )
    for load in (APPEND, {**APPEND, "adopt": True}):
        declare(shop, "shop", load=load)
        (reason,) = plan(shop)["refused"]
        assert "as tea/orders, which this project does not declare with this target, and rows of shop/orders" in reason
        assert ("adopt" in reason, reason in shop.apply()["orders"]["error"]) == (False, True)
    with pytest.raises(HakiriError, match="rows of both tea/orders and shop/orders"):
        rename(shop, "tea", "shop")
    assert ids(shop) == [1, 2, 3]


OTHERS: dict[str, tuple[str, str, str]] = {
    "by their ids": ('id = "one"', 'id = "two"', "data/orders/"),
    "by their names": ('name = "one"', 'name = "two"', "data/orders/"),
    "by what they read": ("", "", "exports/orders/"),
}


@pytest.mark.parametrize("distinguished", OTHERS)
def test_a_target_that_another_project_publishes_to_is_refused(shop: ShopProject, distinguished: str) -> None:
    ours, theirs, path = OTHERS[distinguished]
    shop.file("manifests/hakiri.toml", f"[project]\n{ours}\n")
    loaded(shop)
    other = in_another_folder(shop, "other")
    other.file("manifests/hakiri.toml", f"[project]\n{theirs}\n")
    declare(other, path=path)
    other.file(f"{path}z.csv", order_lines((9, "2024-01-09", "9.50")))
    answer = plan(other)
    assert answer["verdict"] == "refused"
    assert "another `target`" in answer["refused"][0]
    assert "this is the project" in answer["refused"][0]
    assert "hakiri pipeline rename" not in answer["refused"][0]
    assert answer["refused"][0] in other.apply()["orders"]["error"]
    assert ids(shop) == [1, 2, 3]
    assert plan(shop)["verdict"] == "nothing"
    declare(other, path=path, load={**APPEND, "adopt": True})
    assert (other.apply()["orders"]["error"], ids(shop)) == (None, [1, 2, 3, 9])
    assert plan(shop)["verdict"] == "refused"


def test_a_target_that_another_project_has_left_empty_or_dropped(shop: ShopProject) -> None:
    """Its entries in the ledger have the names of this project's chunks, so an empty target is not enough."""
    shop.file("manifests/hakiri.toml", '[project]\nid = "one"\n')
    loaded(shop)
    shop.file("manifests/hakiri.toml", '[project]\nid = "two"\n')
    shop.execute("TRUNCATE raw.orders")
    assert plan(shop)["verdict"] == "refused"
    shop.execute("DROP TABLE raw.orders")
    assert (shop.apply()["orders"]["error"], ids(shop)) == (None, [1, 2, 3])
    assert plan(shop)["verdict"] == "nothing"


def in_another_folder(shop: ShopProject, name: str) -> ShopProject:
    root = shop.root / name
    (root / "manifests").mkdir(parents=True)
    return replace(shop, root=root, instance=dg.DagsterInstance.ephemeral())


def move(shop: ShopProject) -> ShopProject:
    moved = replace(shop, root=shop.root.with_name(f"{shop.root.name}-moved"))
    shutil.move(shop.root, moved.root)
    return moved


def copy_without_state(shop: ShopProject) -> ShopProject:
    copied = replace(
        shop, root=shop.root.with_name(f"{shop.root.name}-copied"), instance=dg.DagsterInstance.ephemeral()
    )
    shutil.copytree(shop.root, copied.root, ignore=shutil.ignore_patterns(".hakiri"))
    return copied


def lose_state(shop: ShopProject) -> ShopProject:
    shutil.rmtree(shop.root / ".hakiri")
    return shop


def forget_projects(shop: ShopProject) -> ShopProject:
    """As a ledger of an earlier version has it."""
    shop.execute("DELETE FROM hakiri.publisher")
    return lose_state(shop)


def rename_project(shop: ShopProject) -> ShopProject:
    shop.file("manifests/hakiri.toml", '[project]\nname = "renamed"\n')
    return shop


def give_id(shop: ShopProject) -> ShopProject:
    shop.file("manifests/hakiri.toml", '[project]\nid = "6f1a"\n')
    return lose_state(shop)


def restore_database(shop: ShopProject) -> ShopProject:
    """The destination is put back as it was, and the audit DB is ahead of it."""
    name, restored = shop.url.rpartition("/")[2], f"{shop.url.rpartition('/')[2]}_restored"
    with psycopg.connect(shop.url.rpartition("/")[0] + "/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {restored} TEMPLATE {name}".encode())
    shop.file("data/orders/z.csv", order_lines((9, "2024-01-09", "9.50")))
    shop.apply()
    (shop.root / "data/orders/z.csv").unlink()
    copied = replace(shop, url=shop.url.rpartition("/")[0] + f"/{restored}")
    declare(copied)
    return copied


@pytest.mark.parametrize(
    "change",
    [move, copy_without_state, lose_state, forget_projects, rename_project, give_id, restore_database],
    ids=lambda change: change.__name__,
)
def test_the_same_project_stays_the_same(shop: ShopProject, change: Callable[[ShopProject], ShopProject]) -> None:
    changed = change(loaded(shop))
    answer = changed.apply()["orders"]
    assert (answer["error"], answer["rows"], ids(changed)) == (None, 0, [1, 2, 3])
    changed.file("data/orders/c.csv", order_lines((4, "2024-01-04", "2.00")))
    answer = changed.apply()["orders"]
    assert (answer["error"], answer["rows"], ids(changed)) == (None, 1, [1, 2, 3, 4])
    if changed.root != shop.root:
        shutil.rmtree(changed.root)


@pytest.mark.parametrize("left", ["loaded", "emptied", "dropped"])
@pytest.mark.parametrize("what", RENAMES)
def test_rows_in_another_target_refuse_a_rename_before_it_writes_anything(
    shop: ShopProject, what: str, left: str
) -> None:
    named, old, new = RENAMES[what]
    loaded(shop)
    if left != "loaded":
        shop.execute({"emptied": "TRUNCATE raw.orders", "dropped": "DROP TABLE raw.orders"}[left])
    declare(shop, *named, target="orders.v2")
    if left == "loaded":
        for _ in range(2):  # also when the new target has rows of its own
            with pytest.raises(HakiriError, match=r"tea/orders has published to raw\.orders and not to") as refused:
                rename(shop, old, new)
            assert refused.value.exit_code == 1
            assert refused.value.where == "/".join(named)
            assert "the target of its rows, rename it, and change the target after that" in (refused.value.hint or "")
            assert shop.apply()[named[1]]["error"] is None
        with shop.runtime() as runtime:
            assert runtime.audit.renames.unfinished() == ()
            assert len(runtime.audit.runs.recent("tea", "orders")) == 1
        assert len(shop.instance.get_materialized_partitions(dg.AssetKey(["tea", "orders"]))) == 2
        declare(shop, *named)  # the way out: the target of its rows first, and another one after that
        assert rename(shop, old, new) is not None
        declare(shop, *named, target="orders.v2")
        assert shop.apply()[named[1]]["error"] is None
    else:
        assert rename(shop, old, new) is not None
        assert shop.apply()[named[1]]["rows"] == 3
    assert (shop.column_of("raw", "orders.v2", "order_id"), rename(shop, old, new)) == ([1, 2, 3], None)


def test_an_unfinished_rename_is_finished_though_other_targets_have_rows(shop: ShopProject) -> None:
    loaded(shop)
    declare(shop, target="sales")
    shop.apply()

    class Killed(Exception): ...

    def kill(_: Sequence[Move]) -> tuple[int, ...]:
        raise Killed

    declare(shop, "shop", target="sales")
    with shop.runtime() as runtime, pytest.raises(Killed):
        rename_loads(runtime, parse_rename("tea", "shop"), kill)
    declare(shop, "shop", target="others")
    with pytest.raises(HakiriError, match=r"tea/orders has published to raw\.orders and not to raw\.others"):
        rename(shop, "tea", "shop")
    declare(shop, "shop", target="sales")
    renamed = rename(shop, "tea", "shop")
    assert renamed is not None
    assert renamed.moved[0].elsewhere == ("raw.orders",)
    assert plan(shop)["verdict"] == "nothing"


def test_rows_of_another_project_in_another_target_are_in_nobodys_way(shop: ShopProject) -> None:
    shop.file("manifests/hakiri.toml", '[project]\nid = "one"\n')
    loaded(shop)
    shop.execute("DROP TABLE raw.orders")
    other = in_another_folder(shop, "other")
    other.file("manifests/hakiri.toml", '[project]\nid = "two"\n')
    loaded(other, target="sales")
    declare(shop, "shop", target="others")
    assert rename(shop, "tea", "shop") is not None


def test_an_error_that_no_rename_mends_is_told_after_one(shop: ShopProject) -> None:
    loaded(shop)
    declare(shop, path="data/none/")
    assert shop.apply()["orders"]["error"] is not None
    before = errors(shop, "tea")
    declare(shop, "shop", path="data/none/")
    assert rename(shop, "tea", "shop") is not None
    assert (errors(shop, "shop"), len(before)) == (before, 1)


def test_an_emptied_target_belongs_to_no_old_name(shop: ShopProject) -> None:
    loaded(shop)
    declare(shop, "shop")
    shop.execute("TRUNCATE raw.orders")
    assert (shop.apply()["orders"]["error"], ids(shop)) == (None, [1, 2, 3])


def test_a_rename_killed_in_any_of_its_databases_is_finished_by_the_same_command(shop: ShopProject) -> None:
    """Destination, audit DB and Dagster's storage are each on PostgreSQL. `HAKIRI_SOAK_KILLS` says how many of its
    statements a rename is killed at, and `HAKIRI_SOAK_SEED` repeats the choice."""
    seed = os.environ.get("HAKIRI_SOAK_SEED") or str(Random().randrange(1_000_000))
    print(f"\nrename: HAKIRI_SOAK_SEED={seed}")  # noqa: T201  # how to repeat it
    shop.url, url = "${SHOP_URL}", shop.url
    storage = url.rpartition("/")[0] + "/" + url.rpartition("/")[2] + "_dagster"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(storage.rpartition("/")[2])))
    shop.env, shop.settings = {"SHOP_URL": url}, replace(shop.settings, dagster_url=storage)
    shop.file("manifests/hakiri.toml", '[project]\nname = "shop"\n[audit]\nurl = "${SHOP_URL}"\n')
    declare(shop, "tea", columns={"order_id": "integer"})
    shop.file("data/orders/a.csv", order_lines((1, "2024-01-01", "9.50"), ("x", "2024-01-02", "1")))
    shop.file("data/orders/b.csv", order_lines((3, "2024-01-03", "2.00")))
    with opened_instance(shop.root, psycopg2_url(storage)) as instance:
        shop.instance = instance
        shop.apply()

        def run(old: str, new: str, at: int) -> KillingProxy:
            declare(shop, new, columns={"order_id": "integer"})
            with KillingProxy(url, at) as proxy:
                proxied = as_url(proxy.proxied_url)
                at_dagster = proxied.rpartition("/")[0] + "/" + storage.rpartition("/")[2]
                worker = WORKERS.Process(
                    target=rename_with_dagster, args=(shop.root, {"SHOP_URL": proxied}, at_dagster, old, new)
                )
                worker.start()
                assert worker.pid is not None
                proxy.kill(worker.pid)
                worker.join()
                assert (worker.exitcode == 0) == (proxy.killed_at is None), proxy.killed_at
            return proxy

        old, new = "tea", "shop"
        statements = run(old, new, sys.maxsize).statements
        kills = min(int(os.environ.get("HAKIRI_SOAK_KILLS", "3")), statements)
        for at in sorted(Random(seed).sample(range(1, statements + 1), kills)):
            old, new = new, old
            killed, command = run(old, new, at).killed_at, f"hakiri pipeline rename {old} {new}"
            refused = plan(shop)["refused"]
            assert all(command in reason for reason in refused), killed
            if refused:  # it was not killed by its last statement
                assert command in shop.apply()["orders"]["error"], killed
            with shop.runtime() as runtime:
                rename_everywhere(runtime, old, new)
            assert (plan(shop)["verdict"], ids_in(url)) == ("nothing", [1, 3]), killed
            shown = [instance.get_materialized_partitions(dg.AssetKey([name, "orders"])) for name in (old, new)]
            assert [len(partitions) for partitions in shown] == [0, 2], killed
        shop.file("data/orders/c.csv", order_lines((4, "2024-01-04", "2.00")))
        answer = shop.apply()["orders"]
        assert (answer["error"], answer["rows"], ids_in(url)) == (None, 1, [1, 3, 4])


def ids_in(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT order_id FROM raw.orders ORDER BY 1")]


def as_url(conninfo: str) -> str:
    parts = conninfo_to_dict(conninfo)
    return f"postgresql://{parts['user']}:{parts['password']}@{parts['host']}:{parts['port']}/{parts['dbname']}"
