"""What a run has to say besides its rows: in the answer of apply, in the audit DB, in the UI, and at the webhook."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.audit.alerts import Alert, AlertRecord
from hakiri_dagster.audit.database import SQLITE_FILE
from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.hooks.signature import SIGNATURE, TIMESTAMP, verify
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.apply import Applier
from hakiri_dagster.orchestration.resources import OpenProject
from hakiri_dagster.orchestration.sensors import alerts as sensor
from hakiri_dagster.pipeline.alert_delivery import ALERTS_A_TICK
from hakiri_dagster.settings import Settings
from tests.integration.hooks.receivers import Asked, Receiver, answer, receiving
from tests.integration.orchestration.conftest import ShopProject

ORDERS = dg.AssetKey(["shop", "orders"])
EMPTY = "the source came up empty: 0 rows were read"
Declare = Callable[..., ShopProject]


def open_alerts(shop: ShopProject) -> tuple[AlertRecord, ...]:
    with shop.runtime() as runtime:
        return runtime.audit.alerts.newest()


def observed(shop: ShopProject) -> list[str | None]:
    records = shop.instance.fetch_observations(ORDERS, limit=10).records
    found = [record.asset_observation for record in records]
    return [observation.description for observation in found if observation is not None]


class TestEmptySource:
    @pytest.mark.parametrize("mode", ["truncate", "blue_green", "delete_missing"])
    def test_the_guard_refuses_it_and_the_alert_tells(self, csv_shop: Declare, mode: str) -> None:
        shop = csv_shop(primary_key=["id"], load={"mode": mode, "on_miss_action": "alert"})
        shop.file("data/orders.csv", "id,v\n1,a\n")
        assert shop.apply()["orders"]["warnings"] == []
        shop.file("data/orders.csv", "id,v\n")
        told = shop.apply()["orders"]
        assert told["error"].endswith(
            f"chunk full: the source returned 0 rows; load mode {mode} would leave the target empty, so nothing was "
            "changed. Set fail_on_empty_source = false to allow it."
        )
        assert told["warnings"] == [EMPTY]
        assert shop.column("orders", "id") == [1]
        assert observed(shop) == [EMPTY]
        shop.apply()
        (alert,) = open_alerts(shop)
        assert (alert.kind, alert.severity, alert.times) == ("empty_source", "warning", 2)
        csv_shop(primary_key=["id"], load={"mode": mode, "on_miss_action": "alert", "fail_on_empty_source": False})
        assert shop.apply()["orders"]["error"] is None
        assert shop.column("orders", "id") == []
        assert open_alerts(shop)[0].times == 3

    def test_it_is_told_too_where_the_load_is_refused_for_something_else(self, csv_shop: Declare) -> None:
        load = {"mode": "blue_green", "on_miss_action": "alert", "fail_on_empty_source": False}
        shop = csv_shop(primary_key=["id"], load=load, columns={"id": "integer"})
        shop.file("data/orders.csv", "id,v\n1,a\n")
        shop.apply()
        shop.execute(
            "CREATE TABLE raw.lines (order_id integer REFERENCES raw.orders); INSERT INTO raw.lines VALUES (1)"
        )
        shop.file("data/orders.csv", "id,v\n")
        assert "refer to rows which the source no longer has" in shop.apply()["orders"]["error"]
        assert [alert.kind for alert in open_alerts(shop)] == ["empty_source"]

    @pytest.mark.parametrize("load", [{}, {"on_miss_action": "ignore"}])
    def test_nothing_is_told_where_nobody_asked(self, csv_shop: Declare, load: dict[str, Any]) -> None:
        shop = csv_shop(load={"mode": "append", **load}, columns={"id": "text", "v": "text"})
        shop.file("data/orders.csv", "id,v\n")
        assert shop.apply()["orders"]["warnings"] == []
        assert open_alerts(shop) == ()

    def test_a_new_file_without_rows_is_told_and_one_beside_another_with_rows_is_not(self, csv_shop: Declare) -> None:
        shop = csv_shop(load={"mode": "append", "on_miss_action": "alert"}, path="data/orders/")
        shop.file("data/orders/a.csv", "id,v\n1,a\n")
        shop.file("data/orders/b.csv", "id,v\n")
        assert shop.apply()["orders"]["warnings"] == []
        shop.file("data/orders/c.csv", "v,id\n")
        assert shop.apply()["orders"]["warnings"] == [EMPTY]

    def test_a_path_that_leads_to_no_file_is_an_error_and_an_alert(self, csv_shop: Declare) -> None:
        shop = csv_shop(load={"on_miss_action": "alert"}, path="data/*.csv")
        for _ in range(2):
            assert "matches no files" in shop.apply()["orders"]["error"]
        (alert,) = open_alerts(shop)
        assert (alert.times, alert.run_id) == (2, None)
        assert "matches no files" in alert.message

    def test_files_that_vanish_before_the_run_are_told_in_the_run(self, csv_shop: Declare) -> None:
        shop = csv_shop(load={"on_miss_action": "alert"})
        file = shop.file("data/orders.csv", "id,v\n1,a\n")
        with shop.runtime() as runtime:
            (table,) = runtime.project.tables
            survey = runtime.survey(table)
            file.unlink()
            assert "does not exist" in Applier(runtime, shop.instance).load_due(table, survey)[0]
        (alert,) = open_alerts(shop)
        assert alert.run_id is not None
        assert observed(shop) == [alert.message]

    def test_a_source_with_a_cursor_is_empty_if_it_holds_no_row(self, shop: ShopProject) -> None:
        shop.execute("CREATE TABLE public.orders (id int, at timestamp)")
        shop.manifest(
            {
                "id": "shop",
                "schedule": "every 15m",
                "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "public"}},
                "tables": ["orders"],
                "incremental": "at",
                "load": {"mode": "append", "on_miss_action": "alert"},
            }
        )
        assert shop.apply()["orders"]["warnings"] == ["the source came up empty: it holds no row"]
        with dg.instance_for_test() as instance:
            assert tick(shop, instance) == "nothing is due"
        assert open_alerts(shop)[0].times == 2
        shop.execute("INSERT INTO public.orders VALUES (1, '2024-01-05'), (2, '2024-03-05')")
        assert shop.apply()["orders"]["warnings"] == []
        assert shop.apply()["orders"]["warnings"] == [], "nothing new is no miss"
        shop.again("orders", "2024-02")
        assert open_alerts(shop)[0].times == 2, "nor is a window without rows"


def test_a_hook_that_only_warns_is_told(csv_shop: Declare) -> None:
    broken = {"type": "refresh_mat_view", "view": "raw.nowhere", "on_error": "warn"}
    shop = csv_shop(load={"mode": "append", "pre_hook": broken})
    shop.file("data/orders.csv", "id,v\n1,a\n")
    assert shop.apply()["orders"]["error"] is None
    (alert,) = open_alerts(shop)
    assert (alert.kind, alert.subject) == ("hook_warning", "refresh_mat_view raw.nowhere")
    assert "`refresh_mat_view raw.nowhere` failed: " in alert.message


def test_a_foreign_key_that_could_not_be_checked_is_told(csv_shop: Declare) -> None:
    shop = csv_shop(primary_key=["id"], load={"mode": "upsert"}, columns={"id": "int"})
    shop.file("data/orders.csv", "id,v\n1,a\n")
    shop.apply()
    shop.execute("CREATE TABLE raw.lines (order_id int); INSERT INTO raw.lines VALUES (7)")
    shop.execute("ALTER TABLE raw.lines ADD CONSTRAINT of_order FOREIGN KEY (order_id) REFERENCES raw.orders NOT VALID")
    shop.execute("INSERT INTO hakiri.unchecked_key VALUES ('raw.orders', 'raw.lines', 'of_order')")
    assert shop.apply()["orders"]["warnings"] == [], "nothing was loaded"
    shop.file("data/orders.csv", "id,v\n1,b\n")
    (said,) = shop.apply()["orders"]["warnings"]
    assert said.startswith("the foreign key of_order of raw.lines was put on again and could not be checked")
    (alert,) = open_alerts(shop)
    assert (alert.kind, alert.subject) == ("unchecked_key", "of_order of raw.lines")


def tick(shop: ShopProject, instance: dg.DagsterInstance) -> str | None:
    definitions = project_definitions(load_project(shop.root, env={}), shop.settings)
    with (
        shop.runtime() as runtime,
        dg.build_schedule_context(
            instance=instance,
            resources={"project": OpenProject(runtime)},
            repository_def=definitions.get_repository_def(),
        ) as context,
    ):
        return definitions.resolve_schedule_def("shop").evaluate_tick(context).skip_message


class TestRowCounts:
    def runs_before(self, shop: ShopProject, *rows: int, status: str = "success") -> None:
        with shop.runtime() as runtime:
            for number, count in enumerate(rows):
                run_id = f"{status}-{number}-{count}"
                runs = runtime.audit.runs
                runs.start(run_id, "shop", "orders", holder="x", holder_is_dead=lambda _: False)
                runs.finish(run_id, "shop", "orders", status=status, rows=count, bytes_=0)  # type: ignore[arg-type]

    def load(self, csv_shop: Declare, rows: int, *before: int, **band: Any) -> dict[str, Any]:
        shop = csv_shop(load={"mode": "truncate", "expected_row_count_delta": band, "fail_on_empty_source": False})
        self.runs_before(shop, *before)
        self.runs_before(shop, 0, 0, 0)
        self.runs_before(shop, 9_000, status="failed")
        shop.file("data/orders.csv", "id\n" + "".join(f"{n}\n" for n in range(rows)))
        return shop.apply()["orders"]

    def test_few_rows_are_told_with_all_numbers_and_the_run_succeeds(
        self, csv_shop: Declare, shop: ShopProject
    ) -> None:
        told = self.load(csv_shop, 4, 8, 10, 12)
        said = "4 rows were loaded, 0.4 times the mean of the last 3 runs (10.0); expected were 0.5 to 2 times"
        assert (told["error"], told["warnings"]) == (None, [said])
        (alert,) = open_alerts(shop)
        assert (alert.kind, alert.severity, alert.message) == ("row_count_anomaly", "warning", said)
        assert alert.details == {
            "observed": 4, "mean": 10.0, "ratio": 0.4, "runs": 3, "min_ratio": 0.5, "max_ratio": 2.0,
        }  # fmt: skip
        assert observed(shop) == [said]
        with shop.runtime() as runtime:
            assert runtime.audit.runs.recent("shop", "orders", 1)[0].status == "success"

    @pytest.mark.parametrize(
        ("rows", "before", "band", "told"),
        [
            (21, (10, 10, 10), {}, True),
            (20, (10, 10, 10), {}, False),
            (5, (10, 10, 10), {}, False),
            (0, (10, 10, 10), {}, True),
            (1, (10, 10), {}, False),
            (30, (900, 900, 10, 10, 10), {"window_runs": 3}, True),
        ],
        ids=["over", "at the upper end", "at the lower end", "none", "two runs are too few", "a window of three"],
    )
    def test_the_band_and_the_window(
        self, csv_shop: Declare, rows: int, before: tuple[int, ...], band: dict[str, Any], told: bool
    ) -> None:
        assert bool(self.load(csv_shop, rows, *before, **band)["warnings"]) is told


def test_alerts_that_cannot_be_recorded_are_told_and_the_load_stays(csv_shop: Declare) -> None:
    shop = csv_shop(load={"mode": "append", "on_miss_action": "alert"}, columns={"id": "text", "v": "text"})
    with shop.runtime() as runtime:
        assert runtime.audit.alerts.newest() == ()
    audit = sqlite3.connect(shop.root / ".hakiri" / SQLITE_FILE)
    audit.execute("DROP TABLE alert")
    audit.close()
    shop.file("data/orders.csv", "id,v\n")
    told = shop.apply()["orders"]
    assert told["error"] is None
    assert told["warnings"][0] == EMPTY
    assert told["warnings"][1].startswith("an alert could not be recorded: ")
    assert observed(shop) == [EMPTY]
    assert shop.rows("SELECT chunk_key FROM hakiri.ledger") != []


class TestSensor:
    @pytest.fixture
    def shop(self, shop: ShopProject) -> Iterator[ShopProject]:
        shop.manifest({"id": "shop", "source": {"connector": "postgres", "config": {"url": shop.url}}, "tables": ["t"]})
        with dg.instance_for_test() as instance:
            yield replace(shop, instance=instance)

    def raise_(self, shop: ShopProject, *tables: str) -> None:
        with shop.runtime() as runtime:
            for table in tables:
                runtime.audit.alerts.raise_("shop", table, Alert("empty_source", f"{table} is empty"), "run-1")

    def look(self, shop: ShopProject) -> str:
        with (
            shop.runtime() as runtime,
            dg.build_sensor_context(instance=shop.instance, resources={"project": OpenProject(runtime)}) as context,
        ):
            told = sensor.evaluate_tick(context)
        assert not told.run_requests
        return str(told.skip_message)

    @contextmanager
    def webhook(
        self, shop: ShopProject, respond: Callable[[Asked], None], secret: str | None = None
    ) -> Iterator[Receiver]:
        with receiving(respond) as receiver:
            shop.settings = replace(
                shop.settings,
                alert_webhook_url=receiver.url("/secret-path"),
                alert_webhook_secret=secret,
                webhooks_to_loopback=True,
            )
            yield receiver

    def test_it_is_among_the_definitions_and_runs_by_itself(self, shop: ShopProject) -> None:
        found = project_definitions(load_project(shop.root, env={}), Settings()).resolve_sensor_def("_alerts")
        assert found.default_status == dg.DefaultSensorStatus.RUNNING

    def test_without_a_webhook_the_log_has_it_once(self, shop: ShopProject, capfd: pytest.CaptureFixture[str]) -> None:
        self.raise_(shop, "orders")
        assert self.look(shop) == "1 alert(s) passed on"
        assert "warning empty_source of shop/orders: orders is empty" in capfd.readouterr().err
        assert self.look(shop) == "no alert passed on"

    def test_what_no_run_could_show_is_shown_at_the_asset_once(self, shop: ShopProject) -> None:
        with shop.runtime() as runtime:
            for table, run_id in (("t", None), ("no_more_declared", None), ("orders", "run-1")):
                runtime.audit.alerts.raise_("shop", table, Alert("schema_change", "v became narrower"), run_id)
        for _ in range(2):
            self.look(shop)
        shown = shop.instance.fetch_observations(dg.AssetKey(["shop", "t"]), limit=10).records
        assert [record.asset_observation.description for record in shown if record.asset_observation] == [
            "v became narrower"
        ]
        assert shop.instance.fetch_observations(ORDERS, limit=10).records == []

    def test_the_webhook_gets_it_once_and_signed(self, shop: ShopProject) -> None:
        with self.webhook(shop, answer(200), secret="hush hush") as receiver:
            self.raise_(shop, "orders")
            self.look(shop)
            self.look(shop)
            (got,) = receiver.received
        assert verify("hush hush", got.headers[TIMESTAMP], got.body, got.headers[SIGNATURE])
        sent = json.loads(got.body)
        assert (sent["event"], sent["project"], sent["pipeline_id"], sent["table"], sent["kind"], sent["message"]) == (
            "alert", "hakiri", "shop", "orders", "empty_source", "orders is empty",
        )  # fmt: skip

    def test_a_receiver_that_is_away_gets_it_when_it_is_back_and_the_others_wait_for_nothing(
        self, shop: ShopProject, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.raise_(shop, "a", "b")
        with self.webhook(shop, answer(503)) as receiver:
            told = self.look(shop)
            assert "the receiver answered 503" in told
            assert "secret-path" not in told
            assert len(receiver.received) == 1, "one word is enough to know that it is away"
        assert "secret-path" not in capfd.readouterr().err
        with self.webhook(shop, answer(204)) as receiver:
            assert self.look(shop) == "2 alert(s) passed on"
            assert len(receiver.received) == 2

    def test_an_alert_that_is_refused_holds_up_no_other(self, shop: ShopProject) -> None:
        def respond(asked: Asked) -> None:
            poison = json.loads(asked.receiver.received[-1].body)["table"] == "poison"
            answer(422 if poison else 200)(asked)

        self.raise_(shop, "poison", *(f"t{n}" for n in range(ALERTS_A_TICK)))
        with self.webhook(shop, respond) as receiver:
            assert self.look(shop).startswith(f"{ALERTS_A_TICK - 1} alert(s) passed on; the next tick tries again")
            assert len(receiver.received) == ALERTS_A_TICK, "one tick does not do it all"
            self.look(shop)
            tables = [json.loads(got.body)["table"] for got in receiver.received]
        assert tables.count("poison") == 2
        assert len(set(tables)) == ALERTS_A_TICK + 1

    def test_no_webhook_leads_to_this_machine_unless_the_operator_says_so(self, shop: ShopProject) -> None:
        self.raise_(shop, "orders")
        with self.webhook(shop, answer(200)) as receiver:
            shop.settings = replace(shop.settings, webhooks_to_loopback=False)
            assert "no alert passed on; the next tick tries again" in self.look(shop)
            assert receiver.received == []
