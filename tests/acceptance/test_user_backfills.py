"""Backfills that are launched in the UI, to their ends: hundreds of partitions, cancelled, failed, executed again."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.acceptance.browser import keep_screenshot, opened_page, visit
from tests.acceptance.command_line import ProjectFolder, Running, eventually
from tests.acceptance.conftest import NewProject
from tests.acceptance.interface import Interface, answers, free_port

TODAY = datetime.now(UTC).date()
DAYS = [str(TODAY - timedelta(days=back)) for back in reversed(range(300))]
ROWS_A_DAY = 3
LATE = DAYS[-80:]
"""Of a table that gets one block of rows a second."""
FEW = DAYS[-6:]
DAEMON_PATIENCE_MS = 240_000


def _orders(days: list[str], bad: str | None = None) -> str:
    lines = (
        f"{number * ROWS_A_DAY + n},{day}T12:00:00Z,{'' if day == bad else 'x'}\n"
        for number, day in enumerate(days)
        for n in range(ROWS_A_DAY)
    )
    return "order_id,placed_at,note\n" + "".join(lines)


def _pipeline(name: str, **table: Any) -> dict[str, Any]:
    return {
        "id": name,
        "source": {"connector": "files", "config": {"path": "data", "format": "csv"}},
        "backfill": {"window": "1d", **table.pop("backfill", {})},
        "tables": [{"name": f"{name}_orders", "incremental": "placed_at", "load": {"mode": "append"}, **table}],
    }


@dataclass
class Served:
    project: ProjectFolder
    process: Running
    page: Page
    interface: Interface

    def audit(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.project.state / "audit.sqlite", timeout=30)) as connection:
            return connection.execute(query).fetchall()

    def statuses(self, pipeline: str) -> dict[str, str]:
        rows = self.audit(f"SELECT chunk_id, status FROM pipeline_chunks WHERE pipeline_id = '{pipeline}'")
        return {str(key): str(status) for key, status in rows}

    def loads(self, pipeline: str) -> dict[str, int]:
        query = f"SELECT chunk_key, count(*) FROM hakiri.ledger WHERE pipeline_id = '{pipeline}' GROUP BY 1"
        return {str(key): int(count) for key, count in self.project.rows(query)}

    def ids(self, pipeline: str) -> list[int]:
        return [row[0] for row in self.project.rows(f"SELECT order_id FROM public.{pipeline}_orders ORDER BY 1")]


@pytest.fixture(scope="module")
def served(new_project: NewProject) -> Iterator[Served]:
    project = new_project("backfills")
    project.file("manifests/hakiri.toml", '[project]\nname = "shop"\n')
    project.file("data/many_orders.csv", _orders(DAYS))
    project.file("data/slow_orders.csv", _orders(LATE))
    project.file("data/broken_orders.csv", _orders(FEW, bad=FEW[2]))
    project.pipeline(_pipeline("many"))
    project.pipeline(_pipeline("slow", backfill={"destination_writes_per_sec": 1}))
    project.pipeline(_pipeline("broken", row_level=[{"type": "not_null", "field": "note", "on_fail": "abort"}]))
    port = free_port()
    process = project.start("serve", "--port", str(port))
    assert eventually(lambda: answers(port) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    interface = Interface(port)
    assert eventually(lambda: interface.partitions("many", "many_orders") == len(DAYS))
    with opened_page(f"http://127.0.0.1:{port}") as page:
        yield Served(project, process, page, interface)


@pytest.fixture(scope="module")
def slow(served: Served) -> str:
    return served.interface.backfill("slow", "slow_orders", partitions=LATE)


@pytest.fixture(scope="module")
def broken(served: Served) -> str:
    return served.interface.backfill("broken", "broken_orders", partitions=FEW)


@pytest.fixture(scope="module")
def many(served: Served, slow: str, broken: str) -> str:
    """By clicking. The others are launched before it, lest each waits for Dagster's daemon anew."""
    page = served.page
    visit(page, "/assets/many/many_orders?view=partitions", "Missing (300)")
    page.get_by_role("button", name="Materialize").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Show all partitions").click()
    dialog.get_by_role("button", name="All", exact=True).click()
    dialog.get_by_text("300 partitions", exact=True).first.wait_for()
    keep_screenshot(page, "backfill_dialog")
    dialog.get_by_role("button", name="Launch backfill").click()
    dialog.wait_for(state="hidden")
    return served.interface.newest_backfill()


def test_a_cancelled_backfill_keeps_what_is_published_and_gives_the_rest_back(
    served: Served, slow: str, many: str
) -> None:
    assert eventually(lambda: "done" in served.statuses("slow").values())
    served.interface.cancel(slow)
    assert served.interface.end_of_backfill(slow) == ("CANCELED", ["CANCELED"])
    statuses = served.statuses("slow")
    done = [day for day in LATE if statuses[day] == "done"]
    assert 0 < len(done) < len(LATE)
    assert {statuses[day] for day in LATE} == {"done", "pending"}
    assert served.loads("slow") == dict.fromkeys(done, 1)
    assert len(served.ids("slow")) == ROWS_A_DAY * len(done)
    held = "SELECT * FROM pipeline_chunks WHERE pipeline_id = 'slow' AND leased_until IS NOT NULL"
    assert served.audit(held) == []
    assert served.audit("SELECT * FROM pass_place WHERE pipeline_id = 'slow'") == []
    assert list(served.project.state.glob("candidates/slow*/*/attempt-*")) == []
    assert served.audit("SELECT status FROM pipeline_run WHERE pipeline_id = 'slow'") == [("partial",)]


def test_a_retry_from_failure_runs_what_failed_alone(served: Served, broken: str, many: str) -> None:
    assert served.interface.end_of_backfill(broken) == ("COMPLETED_FAILED", ["FAILURE"])
    published = [day for day in FEW if day != FEW[2]]
    assert served.loads("broken") == dict.fromkeys(published, 1)
    served.project.file("data/broken_orders.csv", _orders(FEW))
    again = served.interface.backfill_again(broken, "FROM_FAILURE")
    assert served.interface.end_of_backfill(again) == ("COMPLETED_SUCCESS", ["SUCCESS"])
    assert served.loads("broken") == dict.fromkeys(FEW, 1)
    assert served.ids("broken") == list(range(ROWS_A_DAY * len(FEW)))


def test_three_hundred_partitions_that_are_selected_in_the_ui_are_loaded(served: Served, many: str) -> None:
    page = served.page
    assert served.interface.end_of_backfill(many) == ("COMPLETED_SUCCESS", ["SUCCESS"] * 3)
    visit(page, f"/runs/b/{many}", many)
    keep_screenshot(page, "backfill_of_300")
    visit(page, "/assets/many/many_orders?view=partitions", "Materialized (300)", "Missing (0)")
    assert served.ids("many") == list(range(ROWS_A_DAY * len(DAYS)))
    assert served.loads("many") == dict.fromkeys(DAYS, 1)


def test_a_finished_run_that_is_executed_again_loads_again(served: Served, many: str) -> None:
    served.interface.end_of_backfill(many)
    run = served.interface.runs_of(many)[0]
    again = served.interface.execute_again(run, "ALL_STEPS")
    assert served.interface.end_of_run(again) == "SUCCESS"
    assert sorted(served.loads("many").values()) == [1] * 200 + [2] * 100
    assert served.ids("many") == list(range(ROWS_A_DAY * len(DAYS)))


def test_nothing_is_left_when_it_is_stopped(served: Served) -> None:
    os.killpg(served.process.pid, signal.SIGINT)
    done = served.project.finish(served.process)
    assert done.code == 0, done
    served.project.assert_no_process_is_left(10)
