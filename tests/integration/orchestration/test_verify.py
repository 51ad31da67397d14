"""`hakiri verify`: rows that were lost, changed or deleted are found by chunk, and loaded again if asked for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any

import dagster as dg
import psycopg
import pytest

from hakiri_dagster.cli.verify_command import Repair, verify_pipeline
from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.pipeline.claims import claimed
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.verification import VerifyOptions
from hakiri_dagster.pipeline.wanted import Wanted
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.daemon import NOW, ORDERS
from tests.queued_runs import queued_run

CHECK = dg.AssetCheckKey(ORDERS, "matches_source")

MODES = ("append", "upsert", "incremental_watermark", "scd2")
WHOLE = ("truncate", "blue_green", "delete_missing")


def table_of(mode: str) -> dict[str, Any]:
    load: dict[str, Any] = {"mode": mode}
    if mode == "incremental_watermark":
        load["watermark_column"] = "day"
    keyed = {"primary_key": ["id"]} if mode in ("upsert", "scd2", "delete_missing") else {}
    return {"name": mode, "incremental": "day", "load": load} | keyed


@pytest.fixture
def days(shop: ShopProject) -> ShopProject:
    """One source for a table of each mode: views of it, with ten rows a month and two without a cursor."""
    shop.execute(
        "CREATE SCHEMA src; CREATE TABLE src.days (id int PRIMARY KEY, v text, day date);"
        "INSERT INTO src.days SELECT n, 'v' || n, date '2024-01-01' + (n % 10) + make_interval(months => n / 10)"
        " FROM generate_series(0, 39) AS n;"
        "INSERT INTO src.days VALUES (100, 'none', NULL), (101, 'none', NULL);"
        + "".join(f"CREATE VIEW src.{mode} AS SELECT * FROM src.days;" for mode in (*MODES[:-1], *WHOLE))
        + "CREATE VIEW src.scd2 AS SELECT * FROM src.days WHERE day IS NOT NULL"
    )
    source = {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}}
    shop.manifest({"id": "shop", "source": source, "tables": [table_of(mode) for mode in (*MODES, *WHOLE)]})
    return shop


class Verify:
    def __init__(self, shop: ShopProject, capsys: pytest.CaptureFixture[str]) -> None:
        self._shop, self._capsys = shop, capsys
        self.exit_code = 0

    def __call__(
        self, table: str | None = None, *, repair: bool = False, deletes: bool = False, **options: Any
    ) -> dict[str, Any]:
        self._capsys.readouterr()
        self.exit_code = verify_pipeline(
            self._shop.root, "shop", table, VerifyOptions(**options), Repair(repair, deletes), as_json=True
        )
        document = json.loads(self._capsys.readouterr().out)
        return {found["table"]: found for found in document["tables"]}


@pytest.fixture
def verify(days: ShopProject, capsys: pytest.CaptureFixture[str]) -> Verify:
    return Verify(days, capsys)


def differences(found: dict[str, Any]) -> dict[str, dict[str, int]]:
    names = ("missing", "extra", "changed", "deleted_at_source", "moved", "not_loaded")
    return {one["chunk"]: {name: one[name] for name in names if one[name]} for one in found["differences"]}


def load_ids(shop: ShopProject, table: str) -> dict[Any, int]:
    return dict(shop.rows(f"SELECT id, _hakiri_load_id FROM raw.{table}"))


def test_what_was_changed_behind_its_back_is_found_and_repaired_in_every_mode(
    days: ShopProject, verify: Verify
) -> None:
    days.apply()
    assert {name: found["status"] for name, found in verify(digest=True).items()} == dict.fromkeys(
        (*MODES, *WHOLE), "same"
    )
    assert verify.exit_code == 0
    before = {mode: load_ids(days, mode) for mode in MODES}
    for mode in (*MODES, *WHOLE):
        days.execute(f"DELETE FROM raw.{mode} WHERE id IN (11, 12); UPDATE raw.{mode} SET v = 'x' WHERE id = 25")

    by_count = verify()
    assert verify.exit_code == 1
    for mode in MODES:
        assert differences(by_count[mode]) == {"2024-02": {"missing": 2}}, "counts do not show changed values"
    for mode in WHOLE:
        assert differences(by_count[mode]) == {"full": {"missing": 2}}
    found = verify(digest=True, repair=True)
    assert verify.exit_code == 0, "all that was found is pending"
    keyless = {"missing": 1, "deleted_at_source": 1}
    for mode in MODES:
        changed = {"changed": 1} if mode in ("upsert", "scd2") else keyless
        assert differences(found[mode]) == {"2024-02": {"missing": 2}, "2024-03": changed}
        assert found[mode]["pending"] == ["2024-02", "2024-03"]

    applied = days.apply()
    assert {mode: applied[mode]["chunks"]["done"] for mode in MODES} == dict.fromkeys(MODES, 2)
    assert {name: found["status"] for name, found in verify(digest=True).items()} == dict.fromkeys(
        (*MODES, *WHOLE), "same"
    )
    for mode in MODES:
        after = load_ids(days, mode)
        untouched = [n for n in range(40) if n // 10 not in (1, 2)]
        assert {n: after[n] for n in untouched} == {n: before[mode][n] for n in untouched}


@pytest.fixture
def orders(shop: ShopProject) -> ShopProject:
    """Orders by the time of their change: ten in January, ten in February, and the open window of March."""
    shop.execute(
        "CREATE SCHEMA src; CREATE TABLE src.orders (id int PRIMARY KEY, v text, at timestamptz);"
        "CREATE INDEX ON src.orders (at);"
        "INSERT INTO src.orders SELECT n, 'v' || n,"
        " timestamptz '2024-01-01' + make_interval(months => n / 10, days => n % 10)"
        " FROM generate_series(0, 29) AS n; INSERT INTO src.orders VALUES (90, 'none', NULL), (91, 'none', NULL)"
    )
    return shop


def declare(shop: ShopProject, **table: Any) -> None:
    source = {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}}
    orders = {"name": "orders", "incremental": "at"} | table
    shop.manifest({"id": "shop", "source": source, "tables": [orders]})


def test_rows_that_are_not_loaded_yet_are_no_drift_and_rows_behind_the_mark_are(
    orders: ShopProject, capsys: pytest.CaptureFixture[str]
) -> None:
    declare(orders)
    verify = Verify(orders, capsys)
    orders.apply()
    orders.execute("INSERT INTO src.orders SELECT n, 'new', timestamptz '2024-03-11' FROM generate_series(30, 34) AS n")
    assert (verify()["orders"]["status"], verify.exit_code) == ("same", 0)

    orders.execute("INSERT INTO src.orders VALUES (40, 'late', '2024-03-02'), (41, 'late', '2024-01-31')")
    found = verify()["orders"]
    assert differences(found) == {"2024-01": {"missing": 1}, "2024-03": {"missing": 1}}
    assert differences(verify(stretch=("2024-02-01", None))["orders"]) == {"2024-03": {"missing": 1}}
    assert differences(verify(stretch=(None, "2024-02-01"))["orders"]) == {"2024-01": {"missing": 1}}
    assert differences(verify(windows=1)["orders"]) == {"2024-03": {"missing": 1}}
    assert verify(windows=1)["orders"]["chunks"] == 1
    assert verify.exit_code == 1

    verify(windows=1, repair=True)
    assert orders.apply()["orders"]["chunks"]["done"] == 1
    assert differences(verify()["orders"]) == {"2024-01": {"missing": 1}}
    assert orders.rows("SELECT count(*) FROM raw.orders WHERE id BETWEEN 30 AND 80") == [(6,)]


def test_what_the_source_has_deleted_is_told_apart_from_what_was_lost(
    orders: ShopProject, capsys: pytest.CaptureFixture[str]
) -> None:
    declare(orders)
    verify = Verify(orders, capsys)
    orders.apply()
    before = load_ids(orders, "orders")
    orders.execute("DELETE FROM src.orders WHERE id IN (1, 11, 12)")
    only_deleted = verify(repair=True)["orders"]
    assert (only_deleted["status"], only_deleted["pending"], verify.exit_code) == ("same", [], 0)
    assert differences(only_deleted) == {"2024-01": {"deleted_at_source": 1}, "2024-02": {"deleted_at_source": 2}}

    orders.execute("DELETE FROM raw.orders WHERE id IN (13, 2, 3, 90)")
    assert differences(verify()["orders"]) == {
        "2024-01": {"missing": 2, "deleted_at_source": 1},
        "2024-02": {"missing": 1, "deleted_at_source": 2},
        "null": {"missing": 1},
    }
    orders.execute("DELETE FROM raw.orders WHERE id = 14")
    assert "2024-02" not in differences(verify()["orders"]), "two deleted and two lost cancel each other in a count"
    assert differences(verify(digest=True)["orders"])["2024-02"] == {"missing": 2, "deleted_at_source": 2}

    assert verify(digest=True, repair=True)["orders"]["pending"] == ["2024-01", "2024-02", "null"]
    orders.apply()
    assert verify(digest=True)["orders"]["differences"] == []
    after = load_ids(orders, "orders")
    assert sorted(after) == sorted({0, *range(2, 11), *range(13, 30), 90, 91})
    assert all(after[n] == before[n] for n in range(20, 30)), "March was not loaded again"

    orders.execute("DELETE FROM src.orders WHERE id = 5")
    assert verify(repair=True, deletes=True)["orders"]["pending"] == ["2024-01"]
    orders.apply()
    assert 5 not in load_ids(orders, "orders")


def test_of_an_upsert_a_row_that_moved_is_not_lost_and_one_with_an_older_version_is(
    orders: ShopProject, capsys: pytest.CaptureFixture[str]
) -> None:
    declare(orders, primary_key=["id"])
    verify = Verify(orders, capsys)
    orders.apply()
    orders.execute(
        "UPDATE src.orders SET v = 'later', at = '2024-03-20' WHERE id = 3;"  # is loaded next
        "UPDATE src.orders SET v = 'lost', at = '2024-02-15' WHERE id = 4;"  # was committed behind the mark
        "INSERT INTO raw.orders (id, v, at) VALUES (77, 'of others', '2024-01-15')"
    )
    found = verify()["orders"]
    assert differences(found) == {"2024-01": {"moved": 2}, "2024-02": {"missing": 1}}
    with pytest.raises(UsageError, match="load mode upsert deletes nothing when a chunk is loaded again"):
        verify(repair=True, deletes=True)
    with pytest.raises(UsageError, match="--repair-deletes changes what --repair does"):
        verify(deletes=True)
    verify(repair=True)
    orders.apply()
    assert orders.rows("SELECT id, v FROM raw.orders WHERE id IN (3, 4) ORDER BY id") == [(3, "later"), (4, "lost")]
    assert verify(digest=True)["orders"]["differences"] == []


@pytest.mark.parametrize("mode", ["upsert", "scd2"])
def test_a_row_that_moved_to_a_lower_cursor_is_stale(
    orders: ShopProject, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    """Its window was loaded long ago; the source has one row a key, so the version in the target is an older one."""
    declare(orders, primary_key=["id"], load={"mode": mode, **({"close_missing": False} if mode == "scd2" else {})})
    if mode == "scd2":
        orders.execute("DELETE FROM src.orders WHERE at IS NULL")
    verify = Verify(orders, capsys)
    orders.apply()
    orders.execute("UPDATE src.orders SET v = 'back', at = '2024-01-20' WHERE id = 15")
    assert orders.apply()["orders"]["chunks"]["done"] == 0
    found = verify(digest=True, repair=True)["orders"]
    assert differences(found) == {"2024-01": {"changed": 1}, "2024-02": {"moved": 1}}
    assert found["pending"] == ["2024-01"]
    orders.apply()
    current = " AND is_current" if mode == "scd2" else ""
    assert orders.rows(f"SELECT v FROM raw.orders WHERE id = 15{current}") == [("back",)]
    assert verify(digest=True)["orders"]["differences"] == []


def test_a_row_that_loses_its_cursor_is_loaded(orders: ShopProject) -> None:
    declare(orders, primary_key=["id"])
    orders.apply()
    orders.execute("UPDATE src.orders SET v = 'none', at = NULL WHERE id = 15")
    orders.apply()
    assert orders.rows("SELECT v, at FROM raw.orders WHERE id = 15") == [("none", None)]


def test_a_stretch_without_a_chunk_is_an_error(orders: ShopProject, capsys: pytest.CaptureFixture[str]) -> None:
    declare(orders)
    orders.apply()
    with pytest.raises(UsageError, match="no published chunk lies in that stretch"):
        Verify(orders, capsys)(stretch=("2031-01-01", None))


def test_a_document_is_answered_where_nothing_can_be_compared(
    shop: ShopProject, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.file("data/orders.csv", "id\n1\n")
    shop.manifest({"id": "shop", "source": {"connector": "files", "config": {"path": "data"}}, "tables": ["orders"]})
    verify = Verify(shop, capsys)
    assert (verify()["orders"]["status"], verify.exit_code) == ("not_comparable", 2)


def test_rows_in_quarantine_are_accounted_for_once(orders: ShopProject, capsys: pytest.CaptureFixture[str]) -> None:
    rule = {"type": "regex", "field": "v", "pattern": "^v", "on_fail": "skip"}
    declare(orders, validate={"row_level": [rule], "quarantine": {"allow_all": True}})
    verify = Verify(orders, capsys)
    orders.execute(
        "UPDATE src.orders SET v = 'bad' WHERE id IN (5, 29);"
        "INSERT INTO src.orders VALUES (35, 'bad', '2024-03-10 12:00Z')"
    )
    orders.apply()
    orders.execute("INSERT INTO src.orders VALUES (36, 'bad', '2024-03-11'), (37, 'v', '2024-03-12')")
    orders.apply()  # reads what the open window has quarantined a second time
    orders.execute("INSERT INTO src.orders VALUES (38, 'v', '2024-03-13')")
    orders.apply()
    found = verify()["orders"]
    assert (found["status"], differences(found)) == ("same", {})
    assert (found["source_rows"], found["target_rows"], found["quarantined"]) == (35, 29, 6)

    orders.execute("DELETE FROM raw.orders WHERE id = 6")
    assert differences(verify()["orders"]) == {"2024-01": {"missing": 1}}


def test_rows_that_loads_of_others_wrote_into_the_target_do_not_count(
    orders: ShopProject, capsys: pytest.CaptureFixture[str]
) -> None:
    declare(orders)
    verify = Verify(orders, capsys)
    orders.apply()
    orders.execute(
        "INSERT INTO raw.orders (id, v, at) VALUES (70, 'by hand', '2024-01-15');"
        "INSERT INTO hakiri.ledger (load_id, pipeline_id, table_name, target, chunk_key, bounds, rows, bytes, run_id,"
        " attempt, mode, is_replay)"
        " SELECT 999, 'elsewhere', 'orders', target, chunk_key, bounds, 1, 0, 'r', 1, mode, false"
        " FROM hakiri.ledger WHERE chunk_key = '2024-01';"
        "INSERT INTO raw.orders (id, v, at, _hakiri_load_id) VALUES (71, 'of another project', '2024-01-15', 999)"
    )
    assert (verify(digest=True)["orders"]["differences"], verify.exit_code) == ([], 0)
    orders.execute("INSERT INTO raw.orders SELECT * FROM raw.orders WHERE id = 7")
    found = verify()["orders"]
    assert (differences(found), found["status"]) == ({"2024-01": {"extra": 1}}, "drift")


def test_a_chunk_that_is_being_loaded_is_left_to_its_load(
    orders: ShopProject, capsys: pytest.CaptureFixture[str]
) -> None:
    declare(orders)
    verify = Verify(orders, capsys)
    orders.apply()
    orders.execute("DELETE FROM raw.orders WHERE id IN (1, 11)")
    with orders.runtime() as runtime:
        (table,) = runtime.project.tables
        way = runtime.way(table, runtime.open_spark, run_id="r", log=print)
        wanted = Wanted(("2024-01",), due_only=False, partitions=frozenset({"2024-01"}))
        with claimed(way, runtime.survey(table), wanted) as had:
            assert [one.key for one in had.slices] == ["2024-01"]
            found = verify(repair=True)["orders"]
            assert (found["being_loaded"], differences(found)) == (["2024-01"], {"2024-02": {"missing": 1}})
            assert found["pending"] == ["2024-02"]
    assert differences(verify()["orders"]) == {"2024-01": {"missing": 1}}


def test_rows_without_a_cursor_that_come_while_they_are_compared_are_not_lost(
    orders: ShopProject, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(orders)
    verify = Verify(orders, capsys)
    orders.apply()
    taken = Runtime.survey

    def survey(runtime: Runtime, table: Table) -> Survey:
        found = taken(runtime, table)
        orders.execute("INSERT INTO src.orders VALUES (92, 'none', NULL) ON CONFLICT DO NOTHING")
        return found

    monkeypatch.setattr(Runtime, "survey", survey)
    found = verify()["orders"]
    assert (found["being_loaded"], found["differences"], verify.exit_code) == (["null"], [], 0)


def test_nothing_is_taken_for_lost_while_rows_are_written_and_loaded(
    orders: ShopProject, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each change is committed as it is stamped, so no row comes late."""
    declare(orders, primary_key=["id"])
    orders.apply()
    verify = Verify(orders, capsys)
    applied = threading.Event()

    def write() -> None:
        with psycopg.connect(orders.url, autocommit=True) as connection:
            for number in count(1000):
                connection.execute("INSERT INTO src.orders VALUES (%s, 'new', clock_timestamp())", (number,))
                connection.execute("INSERT INTO src.orders VALUES (%s, 'none', NULL)", (-number,))
                connection.execute(
                    "UPDATE src.orders SET v = v || '+', at = clock_timestamp() WHERE id = %s", (number % 30,)
                )
                if applied.wait(0.002):
                    return

    found = []
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(write)
        loading = pool.submit(lambda: [orders.apply() for _ in range(3)])
        while not loading.done():
            found.append(verify(digest=len(found) % 2 == 1)["orders"])
        applied.set()
        loading.result()
        writing.result()
    assert {one["status"] for one in found} == {"same"}, found
    orders.apply()
    assert verify(digest=True)["orders"]["differences"] == []


class TestCheck:
    """`verify = { … }`: a schedule asks for runs of the check `matches_source`."""

    @pytest.fixture
    def orders(self, orders: ShopProject) -> Iterator[ShopProject]:
        """With a storage that each tick opens anew, as Dagster's daemon has it."""
        with dg.instance_for_test() as instance:
            yield replace(orders, instance=instance)

    def tick(self, shop: ShopProject, definitions: dg.Definitions, name: str) -> Any:
        with (
            shop.runtime() as runtime,
            dg.build_schedule_context(
                instance=shop.instance,
                scheduled_execution_time=NOW,
                resources={"project": OpenProject(runtime)},
                repository_def=definitions.get_repository_def(),
            ) as context,
        ):
            return definitions.resolve_schedule_def(name).evaluate_tick(context)

    def test_the_newest_windows_are_compared_repaired_and_shown_by_partition(self, orders: ShopProject) -> None:
        declare(orders, verify={"every": "1d", "windows": 2, "repair": True})
        orders.apply()
        orders.execute("DELETE FROM raw.orders WHERE id IN (1, 11)")
        definitions = project_definitions(load_project(orders.root, env=orders.env), orders.settings)
        name = "_verify__load__shop__orders"
        assert definitions.resolve_schedule_def(name).cron_schedule == "0 0 * * *"
        (request,) = self.tick(orders, definitions, name).run_requests
        assert (request.asset_selection, request.asset_check_keys) == ([], [CHECK])

        job = definitions.resolve_implicit_global_asset_job_def().get_subset(asset_check_selection={CHECK})
        result = job.execute_in_process(instance=orders.instance, tags=dict(request.tags))
        assert result.success
        found = {one.partition: one for one in result.get_asset_check_evaluations()}
        assert {partition: one.passed for partition, one in found.items()} == {
            "2024-02": False, "2024-03": True, None: False,
        }  # fmt: skip
        (shown, both) = (found["2024-02"], found[None])
        assert (shown.metadata["missing"].value, shown.metadata["rows_at_source"].value) == (1, 10)
        assert shown.severity is dg.AssetCheckSeverity.ERROR
        assert (both.metadata["drifted_chunks"].value, both.metadata["made_pending"].value) == ("2024-02", "2024-02")
        (last,) = orders.instance.event_log_storage.get_asset_check_execution_history(CHECK, limit=1)
        assert (last.partition, last.status.value) == ("2024-02", "FAILED"), "the UI sums the check up by it"
        with orders.runtime() as runtime:
            (alert,) = runtime.audit.alerts.newest()
        assert (alert.kind, alert.severity, alert.details["chunks"]) == ("drift", "error", ["2024-02"])

        assert orders.apply()["orders"]["chunks"]["done"] == 1
        assert sorted(set(range(30)) - set(load_ids(orders, "orders"))) == [1], "January is none of the two"

    def test_a_load_does_not_compare_and_a_table_is_compared_once_at_a_time(self, orders: ShopProject) -> None:
        declare(orders, verify={"every": "0 3 * * *", "on_drift": "warn"})
        orders.apply()
        executed = orders.instance.event_log_storage.get_latest_asset_check_execution_by_key([CHECK])
        assert executed == {}, "no run of a load has planned it"
        definitions = project_definitions(load_project(orders.root, env=orders.env), orders.settings)
        name = "_verify__load__shop__orders"
        job = definitions.resolve_job_def("shop_pipeline")
        assert {key.name for key in job.asset_layer.asset_graph.asset_check_keys} == {"no_rows_set_aside"}
        (request,) = self.tick(orders, definitions, name).run_requests
        waiting = queued_run(orders.instance, request.tags, [])
        told = self.tick(orders, definitions, name)
        assert (told.run_requests, waiting[:8] in str(told.skip_message)) == ([], True)
