"""The command line as people and scripts use it: exit codes, documents, and what is true afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from psycopg import sql

from hakiri_dagster.engine.embedded_postgres import Server
from tests.acceptance.command_line import HAKIRI, Done, ProjectFolder, eventually, kill, name_of
from tests.acceptance.conftest import NewProject

REPOSITORY = Path(__file__).resolve().parents[2]
SPARK_THAT_CANNOT_START = {"HAKIRI_SPARK": "local[no cores]"}
ATTEMPTS = "candidates/*/*/attempt-*"
SECRET = "correct horse/battery#staple"
PASSWORD_IN_URL = "correct%20horse%2Fbattery%23staple"


@dataclass(frozen=True)
class Shop:
    """The scaffolded project and a PostgreSQL source whose password is a secret; and what each call said."""

    project: ProjectFolder
    said: dict[str, Done]

    def __getitem__(self, call: str) -> Done:
        return self.said[call]


@pytest.fixture(scope="module")
def source_url(postgres_server: Server) -> Iterator[str]:
    postgres_server.ensure_database("shop_source")
    with psycopg.connect(postgres_server.url("shop_source"), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS payments")
        connection.execute("CREATE TABLE payments (payment_id int PRIMARY KEY, amount numeric(10, 2))")
        connection.execute("INSERT INTO payments SELECT n, n / 4.0 FROM generate_series(1, 100) AS n")
        connection.execute("DROP ROLE IF EXISTS shop_reader")
        connection.execute(sql.SQL("CREATE ROLE shop_reader LOGIN PASSWORD {}").format(SECRET))
        connection.execute("GRANT SELECT ON payments TO shop_reader")
    yield f"postgresql://shop_reader:{PASSWORD_IN_URL}@127.0.0.1:{postgres_server.port}/shop_source"
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("DROP DATABASE shop_source WITH (FORCE)")
        connection.execute("DROP ROLE shop_reader")


@pytest.fixture(scope="module")
def shop(new_project: NewProject, source_url: str) -> Shop:
    """Every call that starts Spark costs seconds, so the tests share these and look at different sides of them."""
    project = new_project("shop")
    said = {"init": project.hakiri("init"), "validate": project.hakiri("validate")}
    project.env["SHOP_URL"] = source_url
    project.pipeline(payments("SHOP_URL"))
    said["plan"] = project.hakiri("plan", "--json")
    said["apply"] = project.hakiri("apply", "--json")
    said["run"] = project.hakiri("run", "shop", "--table", "orders", "--chunk", "2024-02", "--json")
    said["apply again"] = project.hakiri("apply", "shop", "catalogue", "--json", env=SPARK_THAT_CANNOT_START)
    elsewhere = {"connector": "postgres", "config": {"schema": "elsewhere"}}
    project.pipeline(payments("WRONG_URL") | {"id": "refused", "destination": elsewhere})
    project.env["WRONG_URL"] = source_url.replace("horse", "mule")
    said["apply, refused"] = project.hakiri("apply", "refused", "--json", env={"HAKIRI_RETRIES": "0"})
    said["apply, refused, for people"] = project.hakiri("apply", "refused", env={"HAKIRI_RETRIES": "0"})
    said["plan, refused"] = project.hakiri("plan", "refused")
    said["show"] = project.hakiri("pipeline", "show", "payments", "--json")
    said["show for people"] = project.hakiri("pipeline", "show", "payments")
    said["doctor"] = project.hakiri("doctor", "--json")
    said["status"] = project.hakiri("status", "shop", "--json")
    return Shop(project, said)


def payments(variable: str) -> dict[str, Any]:
    return {
        "id": "payments",
        "source": {"connector": "postgres", "config": {"url": f"${{{variable}}}", "schema": "public"}},
        "secrets": [variable],
        "tables": [{"name": "payments", "primary_key": ["payment_id"], "load": {"mode": "upsert"}}],
    }


def chunks(table: dict[str, Any]) -> dict[str, int]:
    return {name: number for name, number in table["chunks"].items() if number}


class TestAScaffoldedProject:
    def test_is_valid_as_it_is_written(self, shop: Shop) -> None:
        assert (shop["init"].code, shop["validate"].code) == (0, 0)
        assert shop["validate"].out == "valid: 2 pipelines\n"

    def test_is_planned_without_moving_rows(self, shop: Shop) -> None:
        planned = shop["plan"].tables()
        assert shop["plan"].code == 0
        assert not shop["plan"].document["converged"]
        assert planned["orders"]["chunks"]["due"] == ["2024-01", "2024-02", "2024-03"]
        assert planned["orders"]["estimated_rows"] == 6
        assert planned["products"]["new"]

    def test_is_loaded_chunk_by_chunk(self, shop: Shop) -> None:
        told = shop["apply"].tables()
        assert shop["apply"].code == 0
        assert [p["status"] for p in shop["apply"].document["pipelines"]] == ["success"] * 3
        assert {name: (chunks(table), table["rows"]) for name, table in told.items()} == {
            "customers": ({"done": 1}, 4),
            "orders": ({"done": 3}, 6),
            "products": ({"done": 1}, 3),
            "payments": ({"done": 1}, 100),
        }
        assert shop.project.rows("SELECT count(*), count(DISTINCT order_id) FROM public.orders") == [(6, 6)]

    def test_that_is_converged_is_left_alone_and_no_spark_is_started(self, shop: Shop) -> None:
        again = shop["apply again"]
        assert (again.code, again.err) == (0, "")
        assert {p["status"] for p in again.document["pipelines"]} == {"skipped"}
        assert all(chunks(table) == {} and table["rows"] == 0 for table in again.tables().values())

    def test_loads_one_chunk_again_when_asked_to_and_replaces_its_rows(self, shop: Shop) -> None:
        assert shop["run"].code == 0
        assert chunks(shop["run"].tables()["orders"]) == {"done": 1}
        loads = shop.project.rows(
            "SELECT chunk_key, count(*) FROM hakiri.ledger WHERE table_name = 'orders' GROUP BY 1 ORDER BY 1"
        )
        assert loads == [("2024-01", 1), ("2024-02", 2), ("2024-03", 1)]

    def test_tells_each_change_of_its_status_until_it_is_interrupted(self, shop: Shop) -> None:
        watching = shop.project.start("status", "shop", "--watch", "--json")
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline()) == shop["status"].document
        with sqlite3.connect(shop.project.state / "audit.sqlite") as audit:
            changed = "UPDATE pipeline_chunks SET status = ? WHERE pipeline_id = 'shop' AND chunk_id = '2024-02'"
            audit.execute(changed, ("failed",))
            audit.commit()
            told = json.loads(watching.stdout.readline())
            audit.execute(changed, ("done",))
        assert told["chunks"] == {"done": 3, "running": 0, "pending": 0, "failed": 1, "total": 4}
        assert json.loads(watching.stdout.readline()) == shop["status"].document
        watching.send_signal(signal.SIGINT)
        ended = shop.project.finish(watching)
        assert (ended.code, ended.out, ended.err) == (0, "", "")

    def test_tells_its_status_as_other_tools_expect_it(self, shop: Shop) -> None:
        status = shop["status"].document
        assert set(status) == {
            "pipeline_id", "phase", "chunks", "throughput", "eta_seconds", "started_at", "rate_budget",
            "rate_budget_consumed_pct", "rewinds", "errors", "failed_chunks", "behind_seconds", "triggers", "rereads",
            "deliveries",
        }  # fmt: skip
        assert (status["pipeline_id"], status["phase"]) == ("shop", "streaming")
        assert status["chunks"] == {"done": 4, "running": 0, "pending": 0, "failed": 0, "total": 4}
        assert set(status["throughput"]) == {"rows_per_sec", "bytes_per_sec"}

    def test_lists_and_exports_itself(self, shop: Shop) -> None:
        listed = shop.project.hakiri("pipeline", "list", "--json").document["pipelines"]
        assert {p["id"]: p["tables"] for p in listed}["shop"] == ["customers", "orders"]
        exported = shop.project.hakiri("schema", "export")
        assert json.loads(Path(exported.out.strip()).read_text())["$schema"].startswith("https://json-schema.org/")

    def test_leaves_no_process_behind(self, shop: Shop) -> None:
        shop.project.assert_no_process_is_left()


class TestExitCodesAndMessages:
    def test_a_misspelt_pipeline_is_a_wrong_call_with_a_guess_at_what_was_meant(self, shop: Shop) -> None:
        for command in ("apply", "plan", "run", "status"):
            done = shop.project.hakiri(command, "catalog")
            assert (done.code, done.out) == (2, ""), command
            assert "there is no pipeline `catalog`" in done.err
            assert "did you mean `catalogue`?" in done.err

    def test_a_chunk_that_is_not_in_the_plan_is_a_wrong_call(self, shop: Shop) -> None:
        done = shop.project.hakiri("run", "shop", "--table", "orders", "--chunk", "2031-01")
        assert (done.code, done.out) == (2, "")
        assert "its chunks: 2024-01 … 2024-03" in done.err

    def test_a_comparison_that_finds_nothing_is_0_and_a_source_that_cannot_be_compared_is_a_wrong_call(
        self, shop: Shop
    ) -> None:
        same = shop.project.hakiri("verify", "payments", "--json")
        (table,) = same.document["tables"]
        assert (same.code, same.err, table["status"], table["source_rows"]) == (0, "", "same", 100)
        for_people = shop.project.hakiri("verify", "payments")
        assert for_people.out.startswith("payments/payments: 1 chunk(s) compared by keys, 0 drifted; 100 row(s)")
        refused = shop.project.hakiri("verify", "shop")
        assert (refused.code, refused.out) == (2, "")
        assert "a `files` source cannot count its rows without sending all of them" in refused.err

    def test_a_missing_secret_is_told_with_file_and_line_before_anything_runs(self, new_project: NewProject) -> None:
        project = new_project("secretless")
        project.file("manifests/hakiri.toml", '[project]\nname = "p"\n')
        manifest = project.pipeline(payments("SHOP_URL"))
        line = next(n for n, text in enumerate(manifest.read_text().splitlines(), 1) if "${SHOP_URL}" in text)
        for command in ("validate", "plan", "apply", "status"):
            done = project.hakiri(command)
            assert (done.code, done.out) == (2, ""), command
            assert f"manifests/pipelines/payments.json:{line}:" in done.err
            assert "the secret `SHOP_URL` is not set" in done.err
        assert not project.state.exists()

    def test_a_failed_load_ends_with_1_and_says_which_and_why(self, shop: Shop) -> None:
        refused = shop["apply, refused"]
        assert refused.code == 1
        assert refused.document["pipelines"][0]["status"] == "failed"
        assert "password authentication failed" in refused.tables()["payments"]["error"]
        assert (shop["apply, refused, for people"].code, shop["plan, refused"].code) == (1, 1)

    def test_doctor_tells_which_source_cannot_be_reached_and_what_to_do(self, shop: Shop) -> None:
        found = {check["name"]: check for check in shop["doctor"].document}
        broken = {name for name, check in found.items() if not check["ok"]}
        assert (shop["doctor"].code, broken) == (1, {"source of refused/payments"})
        assert found["source of refused/payments"]["cure"]
        assert {"java", "spark", "source of shop/orders", "destination of payments/payments"} <= found.keys()

    def test_documents_are_the_only_thing_on_stdout(self, shop: Shop) -> None:
        for call in ("plan", "apply", "apply again", "run", "apply, refused", "show", "doctor", "status"):
            assert isinstance(shop[call].document, (dict, list)), call


class TestSecrets:
    FORMS = (SECRET, PASSWORD_IN_URL, SECRET.replace("horse", "mule"), PASSWORD_IN_URL.replace("horse", "mule"))

    def test_are_never_printed(self, shop: Shop) -> None:
        for call, done in shop.said.items():
            assert not [form for form in self.FORMS if form in done.out + done.err], call
        assert "postgresql://shop_reader@127.0.0.1" in shop["show"].out

    def test_are_in_no_file_of_the_project_s_state(self, shop: Shop) -> None:
        """The audit DB, Spark's logs, and PostgreSQL's own files with Dagster's event log in them."""
        forms = [form.encode() for form in self.FORMS]
        files = [path for path in shop.project.state.rglob("*") if path.is_file()]
        assert any(path.name == "audit.sqlite" for path in files)
        assert not [str(path) for path in files if any(form in path.read_bytes() for form in forms)]

    def test_are_in_no_table_of_dagster_s_storage_or_the_warehouse(self, shop: Shop) -> None:
        """PostgreSQL compresses long values, so its files alone prove little."""
        for database in ("dagster", "warehouse"):
            with shop.project.database(database) as connection:
                text = "\n".join(_every_row(connection))
            assert "payments" in text
            assert not [form for form in self.FORMS if form in text], database


def _every_row(connection: psycopg.Connection[Any]) -> Iterator[str]:
    tables = connection.execute(
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    ).fetchall()
    for schema, name in tables:
        query = sql.SQL("SELECT t::text FROM {} AS t").format(sql.Identifier(schema, name))
        yield from (text for (text,) in connection.execute(query))


class TestDagsterItself:
    def test_finds_the_project_and_the_runs_of_apply_once_postgres_is_started(self, shop: Shop) -> None:
        project = shop.project
        for name in ("workspace.yaml", "dagster.yaml"):
            shutil.copy(REPOSITORY / name, project.root / name)
        assert project.hakiri("postgres", "start").code == 0
        try:
            validated = project.command(_dagster("definitions", "validate", "-w", "workspace.yaml"))
            assert validated.code == 0, validated.err
            runs = project.command(_dagster("run", "list", "--limit", "20"))
            assert runs.code == 0, runs.err
            assert runs.out.count("Run: ") >= 5
        finally:
            assert project.hakiri("postgres", "stop").code == 0
        project.assert_no_process_is_left()

    def test_is_pointed_at_postgres_even_where_nothing_was_ever_applied(self, new_project: NewProject) -> None:
        project = new_project("fresh")
        assert project.hakiri("init").code == 0
        assert project.hakiri("postgres", "start").code == 0
        try:
            told = project.command(_dagster("instance", "info"))
            assert "PostgresRunStorage" in told.out + told.err, told
        finally:
            project.hakiri("postgres", "stop")


def _dagster(*arguments: str) -> list[str]:
    """As one who has activated the environment would call it."""
    return [str(Path(HAKIRI).with_name("dagster")), *arguments]


HEADER = "event_id,at\n"
MANY_MONTHS = HEADER + "".join(f"{n},2024-{n % 12 + 1:02}-03T10:00:00Z\n" for n in range(3_000))


def events_project(project: ProjectFolder, *names: str) -> ProjectFolder:
    project.file("manifests/hakiri.toml", '[project]\nname = "p"\n')
    windows = {"events": "1mo", "days": "1w"}
    chosen = names or tuple(windows)
    for name in chosen:
        project.file(f"data/{name}.csv", MANY_MONTHS)
    appended = {"incremental": "at", "load": {"mode": "append"}}
    project.pipeline(
        {
            "id": "p",
            "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
            "tables": [{"name": name, "backfill": {"window": windows[name]}} | appended for name in chosen],
        }
    )
    return project


def loaded_exactly_once(project: ProjectFolder) -> bool:
    return all(
        project.rows(f"SELECT count(*), count(DISTINCT event_id) FROM public.{table}") == [(3_000, 3_000)]
        for table in ("events", "days")
    )


class TestRivalsAndInterruptions:
    def test_two_applies_at_once_share_the_work_and_double_nothing(self, new_project: NewProject) -> None:
        project = events_project(new_project("rivals"))
        rivals = [project.start("apply", "--json") for _ in range(2)]
        done = [project.finish(rival) for rival in rivals]
        assert [rival.code for rival in done] == [0, 0], done
        loads = project.rows(
            "SELECT table_name, chunk_key, count(*) FROM hakiri.ledger GROUP BY 1, 2 HAVING count(*) > 1"
        )
        assert loads == []
        assert loaded_exactly_once(project)
        assert project.hakiri("apply", env=SPARK_THAT_CANNOT_START).code == 0

    def test_an_interrupted_apply_leaves_no_process_behind_and_the_next_one_goes_on(
        self, new_project: NewProject
    ) -> None:
        project = events_project(new_project("interrupted"))
        for stop in (signal.SIGINT, signal.SIGTERM):
            apply = project.start("apply")
            left = set(project.state.glob(ATTEMPTS))
            assert eventually(lambda: bool(set(project.state.glob(ATTEMPTS)) - left))  # noqa: B023  # asked at once
            _stopped_as_by(stop, apply.pid)
            done = project.finish(apply)
            assert done.code == 130, done
            assert "the next apply goes on where this one stopped" in done.err
            assert "Traceback" not in done.err
            project.assert_no_process_is_left(10)
        again = project.hakiri("apply", "--json")
        assert again.code == 0, again
        assert not any(project.state.glob(ATTEMPTS))
        assert loaded_exactly_once(project)

    def test_an_apply_interrupted_while_its_engine_starts_leaves_no_engine(self, new_project: NewProject) -> None:
        project = events_project(new_project("interrupted-early"))
        apply = project.start("apply")
        assert eventually(lambda: bool(jvms(project)))
        _stopped_as_by(signal.SIGINT, apply.pid)
        done = project.finish(apply)
        assert (done.code, "Exception" in done.err) == (130, False), done
        project.assert_no_process_is_left(10)


class TestLostEngines:
    def test_a_connect_server_that_is_not_there_is_told(self, new_project: NewProject) -> None:
        project = events_project(new_project("no-connect"), "days")
        told = project.hakiri("apply", env={"HAKIRI_SPARK": "sc://127.0.0.1:1", "HAKIRI_RETRIES": "0"})
        assert told.code == 1
        assert "Spark Connect does not answer at 127.0.0.1:1" in told.out + told.err
        assert "hint: is that server up?" in told.out + told.err

    @pytest.mark.parametrize("moment", ["while it starts", "while it loads"])
    def test_an_apply_whose_jvm_dies_starts_another_and_ends_well(self, new_project: NewProject, moment: str) -> None:
        project = events_project(new_project("lost-java"))
        apply = project.start("apply", "--json")
        assert eventually(lambda: bool(jvms(project)) and (moment != "while it loads" or is_loading(project)))
        kill(min(jvms(project), key=lambda process: process.create_time()))
        done = project.finish(apply)
        assert done.code == 0, done.out + done.err
        assert loaded_exactly_once(project)


def jvms(project: ProjectFolder) -> list[psutil.Process]:
    return [process for process in project.processes() if name_of(process) == "java"]


def is_loading(project: ProjectFolder) -> bool:
    return any(project.state.glob(ATTEMPTS))


def _stopped_as_by(stop: signal.Signals, pid: int) -> None:
    """A terminal sends Ctrl-C to everything in its foreground; a supervisor tells the process that it started."""
    if stop == signal.SIGINT:
        os.killpg(pid, stop)
    else:
        os.kill(pid, stop)


class TestDemo:
    def test_loads_a_shop_into_an_empty_folder_and_has_nothing_to_do_the_second_time(
        self, new_project: NewProject
    ) -> None:
        project = new_project("demo")
        first = project.hakiri("demo")
        assert first.code == 0, first.err
        assert "hakiri --project hakiri-demo serve" in first.out
        landed = _cells(first.out)
        assert {name: cells[2] for name, cells in landed.items()} == {
            "tea-shop/customers": "truncate", "tea-shop/orders": "upsert", "tea-shop-items/order_items": "append"
        }  # fmt: skip
        assert landed["tea-shop/customers"][-2:] == ["2,000", "3"]
        again = project.hakiri("demo", env=SPARK_THAT_CANNOT_START)
        assert again.code == 0, again.err
        assert "Nothing to do: every table is converged" in again.out
        project.assert_no_process_is_left()


def _cells(text: str) -> dict[str, list[str]]:
    rows = [line.split() for line in text.splitlines() if line.startswith("tea-shop") and ": " not in line]
    return {row[0]: row for row in rows}
