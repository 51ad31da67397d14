"""`hakiri serve` in a real browser: what a user sees, and what a click does."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from hakiri_dagster.hooks.signed_post import send
from tests.acceptance.browser import keep_screenshot, opened_page, see, visit
from tests.acceptance.command_line import ProjectFolder, Running, eventually
from tests.acceptance.conftest import NewProject
from tests.acceptance.interface import Interface, answers, free_port
from tests.span_receiver import SpanReceiver, span_receiver

TICKETS = "ticket_id,seat\n1,A1\n2,B2\n3,B2\n4,\n"


def _recent_months(count: int) -> list[str]:
    """Dagster shows windows up to now, so the orders reach until now, too."""
    number = datetime.now(UTC).year * 12 + datetime.now(UTC).month - 1
    return [f"{n // 12}-{n % 12 + 1:02}" for n in range(number - count + 1, number + 1)]


MONTHS = _recent_months(6)
ORDERS = "order_id,placed_at,total\n" + "".join(f"{n},{MONTHS[n % 6]}-01,{n}.50\n" for n in range(60))
GUESTS = "guest_id,signed_up\n1,2024-01-05\n2,2021-02-30\n"

HOOK_SECRET = "a-secret-of-some-length"

DAEMON_PATIENCE_MS = 120_000
"""Dagster's daemon looks at backfills twice a minute: once to begin, once more to see that it is done."""


@dataclass
class Served:
    project: ProjectFolder
    process: Running
    page: Page
    receiver: SpanReceiver
    inbox_port: int


def _declare(project: ProjectFolder) -> None:
    """Tables whose checks pass, warn and fail, and pipelines that a webhook or a file starts."""
    project.file("manifests/hakiri.toml", '[project]\nname = "shop"\n')
    project.file("data/orders.csv", ORDERS)
    project.file("data/guests.csv", GUESTS)
    project.file("data/visits.csv", "visit_id\n")
    project.file("data/tickets.csv", TICKETS)
    files = {"connector": "files", "config": {"path": "data", "format": "csv"}}
    project.pipeline(
        {
            "id": "shop",
            "source": files,
            "schedule": "every 6h",
            "tables": [{"name": "orders", "incremental": "placed_at", "load": {"mode": "append"}}],
        }
    )
    project.pipeline(
        {
            "id": "people",
            "source": files,
            "tables": [
                {
                    "name": "guests",
                    "columns": {"signed_up": "date"},
                    "load": {"mode": "truncate"},
                    "row_level": [
                        {"type": "not_null", "field": "guest_id"},
                        {"type": "range", "field": "signed_up", "min": "2024-06-01", "on_fail": "warn"},
                    ],
                },
                {
                    "name": "tickets",
                    "load": {"mode": "truncate"},
                    "dataset_level": {
                        "row_count": {"min": 2},
                        "duplicate_key": {"columns": ["seat"]},
                        "null_ratio": {"column": "seat", "max": 0.1, "on_fail": "warn"},
                    },
                },
                {
                    "name": "visits",
                    "load": {"mode": "truncate", "fail_on_empty_source": False, "on_miss_action": "alert"},
                },
            ],
        }
    )
    project.env["HOOK_SECRET"] = HOOK_SECRET
    project.pipeline(
        {
            "id": "calls",
            "source": files,
            "tables": [{"name": "calls", "path": "data/calls/", "load": {"mode": "append"}}],
            "triggers": [{"type": "webhook", "secret": "${HOOK_SECRET}"}],
        }
    )
    project.file("data/calls/1.csv", "call_id\n1\n")
    project.pipeline(
        {
            "id": "drop",
            "source": {"connector": "files", "config": {"path": "drop", "format": "csv"}},
            "triggers": [{"type": "files", "settle": "1s"}],
            "tables": ["parcels"],
        }
    )
    project.file("drop/parcels/.keep", "")


@pytest.fixture(scope="module")
def served(new_project: NewProject) -> Iterator[Served]:
    project = new_project("served")
    _declare(project)
    applied = project.hakiri("apply", "--json")
    assert (applied.code, "duplicate_key_seat: 2 of 4 row(s)" in applied.out) == (1, True), applied
    port, inbox_port = free_port(), free_port()
    with span_receiver() as receiver:
        collector = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint}
        process = project.start("serve", "--port", str(port), "--inbox-port", str(inbox_port), env=collector)
        assert eventually(lambda: answers(port) or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        assert eventually(lambda: Interface(port).partitions("shop", "orders") > 0), "the project is loaded"
        with opened_page(f"http://127.0.0.1:{port}") as page:
            yield Served(project, process, page, receiver, inbox_port)


def test_the_catalog_shows_every_table_in_the_group_of_its_pipeline(served: Served) -> None:
    page = served.page
    visit(page, "/assets", "shop / orders", "people / guests")
    for asset, group in (("shop / orders", "shop"), ("people / guests", "people")):
        row = page.locator("[class*=VirtualizedTable_row]", has_text=asset)
        expect(row.get_by_text(group, exact=True)).to_be_visible()
    see(page, "6 partitions")
    keep_screenshot(page, "catalog")


def test_the_windows_that_apply_loaded_show_as_materialized_partitions(served: Served) -> None:
    visit(served.page, "/assets/shop/orders?view=partitions", MONTHS[0], MONTHS[-1], "Materialized (6)", "Missing (0)")
    keep_screenshot(served.page, "partitions")


def test_rows_that_were_set_aside_show_as_a_warning_with_their_reason(served: Served) -> None:
    visit(served.page, "/assets/people/guests?view=checks", "no_rows_set_aside", "Failed", "rows_set_aside")
    see(served.page, "`signed_up` is no date")
    keep_screenshot(served.page, "check")


def test_each_row_rule_shows_as_a_check_with_what_it_asks_for(served: Served) -> None:
    visit(served.page, "/assets/people/guests?view=checks", "not_null_guest_id", "range_signed_up", "Succeeded")
    served.page.get_by_text("range_signed_up").first.click()
    see(served.page, "signed_up is at least 2024-06-01", "violations")
    keep_screenshot(served.page, "rules")


def test_a_gate_that_failed_shows_beside_a_warning_and_a_pass(served: Served) -> None:
    page = served.page
    visit(page, "/assets/people/tickets?view=checks", "duplicate_key_seat", "null_ratio_seat", "row_count")
    page.get_by_text("duplicate_key_seat").first.click()
    see(page, "2 of 4 row(s) share (seat) with others: (B2) 2 times", "no two rows share (seat)")
    see(page, "blocking")
    keep_screenshot(page, "gate")
    assert served.project.rows("SELECT count(*) FROM public.tickets") == [(0,)]


def test_each_partition_shows_what_its_own_check_said(served: Served) -> None:
    page = served.page
    visit(page, "/assets/shop/orders?view=checks", "no_rows_set_aside")
    page.get_by_text("no_rows_set_aside").first.click()
    page.get_by_role("tab", name="Partitions").last.click()
    see(page, "6 Partitions Selected", "Passed (6)", "Missing (0)")
    keep_screenshot(page, "check_partitions")


def test_a_check_executed_alone_asks_the_table_as_it_is(served: Served) -> None:
    """It loads nothing: the table is still as empty as the failed gate has left it."""
    page = served.page
    visit(page, "/assets/people/tickets?view=checks", "row_count")
    page.get_by_text("row_count").first.click()
    see(page, "4 row(s)")
    page.locator("button:has-text('Execute')").nth(1).click()
    page.get_by_text("0 row(s)").first.wait_for(timeout=DAEMON_PATIENCE_MS)
    keep_screenshot(page, "check_alone")
    loads = "SELECT count(*) FROM hakiri.ledger WHERE table_name = 'tickets'"
    assert served.project.rows(loads) == [(0,)]


def test_an_alert_shows_as_an_observation_with_its_reason(served: Served) -> None:
    visit(served.page, "/assets/people/visits?view=events", "Observed", "the source came up empty")
    keep_screenshot(served.page, "alert")


def test_schedules_and_sensors_are_there_and_running(served: Served) -> None:
    names = ["shop", "_planner", "_killed_runs", "_stale_leases", "_alerts", "_deliveries", "_file_arrivals"]
    visit(served.page, "/automation", *names)
    see(served.page, "Scheduled")
    expect(served.page.locator("input[type=checkbox]:checked")).to_have_count(7)
    keep_screenshot(served.page, "automation")


def test_a_signed_webhook_starts_its_pipeline_and_is_shown_with_its_run(served: Served) -> None:
    served.project.file("data/calls/2.csv", "call_id\n2\n")
    sent = send(
        f"http://127.0.0.1:{served.inbox_port}/hooks/calls",
        {"call": 2},
        secret=HOOK_SECRET,
        idempotency_key="call-2",
        allow_loopback=True,
    )
    assert sent.status == 202

    def told() -> dict[str, Any]:
        (delivery,) = served.project.hakiri("deliveries", "calls", "--json").document["deliveries"]
        return dict(delivery)

    assert eventually(lambda: told()["state"] == "done")
    (run_id,) = told()["run_ids"]
    assert served.project.rows("SELECT call_id FROM public.calls ORDER BY 1") == [(1,), (2,)]
    visit(served.page, f"/runs/{run_id}", "Success")
    keep_screenshot(served.page, "delivery")


def test_a_file_that_arrives_is_loaded_without_a_word(served: Served) -> None:
    """By the daemon's own queue, in a run that the UI shows."""
    served.project.file("drop/parcels/one.csv", "parcel_id\n1\n2\n")
    there = "SELECT to_regclass('public.parcels') IS NOT NULL"
    assert eventually(lambda: served.project.rows(there) == [(True,)])
    assert eventually(lambda: served.project.rows("SELECT count(*) FROM public.parcels") == [(2,)])
    visit(served.page, "/runs", "_file_arrivals")


def test_clicking_materialize_loads_all_partitions_again_and_shows_when_they_are_done(served: Served) -> None:
    page = served.page
    visit(page, "/assets/shop/orders?view=partitions", "Materialized (6)")
    page.get_by_role("button", name="Materialize").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="All", exact=True).click()
    dialog.get_by_text("6 partitions").first.wait_for()
    dialog.get_by_role("button", name="Launch backfill").click()
    dialog.wait_for(state="hidden")
    visit(page, "/runs?view=backfills", "6 partitions")
    page.get_by_text("Success", exact=True).first.wait_for(timeout=DAEMON_PATIENCE_MS)
    keep_screenshot(page, "backfill")
    visit(page, "/assets/shop/orders?view=partitions", "Materialized (6)")
    loads = "SELECT chunk_key, count(*) FROM hakiri.ledger WHERE table_name = 'orders' GROUP BY 1 ORDER BY 1"
    assert served.project.rows(loads) == [(month, 2) for month in MONTHS]
    assert served.project.rows("SELECT count(*), count(DISTINCT order_id) FROM public.orders") == [(60, 60)]
    spans = served.receiver.take()
    assert sorted(span.attributes["hakiri.chunk_id"] for span in spans if span.name == "chunk shop/orders") == MONTHS
    (load,) = [span for span in spans if span.name == "load shop/orders"]
    assert load.trace_id == load.attributes["hakiri.run_id"].replace("-", "")


def test_ctrl_c_stops_everything(served: Served) -> None:
    os.killpg(served.process.pid, signal.SIGINT)
    done = served.project.finish(served.process)
    assert done.code == 0, done
    assert "Traceback" not in done.err
    served.project.assert_no_process_is_left(10)


def test_a_serve_that_is_killed_takes_everything_along(served: Served) -> None:
    port = free_port()
    process = served.project.start("serve", "--port", str(port), "--inbox-port", str(free_port()))
    assert eventually(lambda: answers(port) or process.poll() is not None)
    workspace = served.project.state / "dagster" / "workspace.yaml"
    own = workspace.read_text()
    told = served.project.hakiri("serve", "--port", str(free_port()))
    assert (told.code, f"this project is served already, by process {process.pid}" in told.err) == (2, True), told
    assert workspace.read_text() == own
    process.kill()
    process.communicate()
    served.project.assert_no_process_is_left(60)
