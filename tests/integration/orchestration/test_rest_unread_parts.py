"""Parts that an API refuses, of a table that has others: these go on, and somebody is told."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from urllib.parse import unquote

import dagster as dg
import pytest

from hakiri_dagster.audit.alerts import AlertRecord
from hakiri_dagster.audit.database import SQLITE_FILE, open_audit
from hakiri_dagster.cli.apply_command import run
from hakiri_dagster.cli.explain import explain
from hakiri_dagster.cli.plan_command import plan
from hakiri_dagster.errors import SourceError
from hakiri_dagster.orchestration.apply import Applier
from hakiri_dagster.orchestration.names import asset_key
from hakiri_dagster.planning.states import ChunkState
from tests.integration.connectors.rest.api_server import Asked, Said, said
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.daemon import Daemon
from tests.integration.orchestration.test_rest import ago
from tests.integration.orchestration.test_rest_parts import (
    CURSOR,
    LINUX,
    PYTHON,
    Forge,
    declare,
    forging,
    issues,
    of,
    statuses,
    with_history,
)
from tests.span_receiver import span_receiver

OF_LINUX = "torvalds~2Flinux|"
WINDOWS = "forge/issues"


def open_alerts(shop: ShopProject) -> list[AlertRecord]:
    with shop.runtime() as runtime:
        return list(runtime.audit.alerts.newest())


def errors_in_status(shop: ShopProject) -> str:
    with open_audit(None, shop.root / ".hakiri") as audit:
        return "; ".join(one["error"] for one in audit.status("forge")["errors"])


def shown_in_dagster(shop: ShopProject) -> set[str]:
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
    return set(shop.instance.get_materialized_partitions(asset_key(table)))


def test_the_others_are_loaded_and_it_is_caught_up_with_when_it_is_back(shop: ShopProject) -> None:
    forge = with_history()
    with forging(shop, forge, **CURSOR):
        assert shop.apply()["issues"]["error"] is None
        known, shown = statuses(shop), shown_in_dagster(shop)
        before = of(forge, LINUX)
        forge.gone.add(LINUX)
        forge.put(LINUX, 8, ago(minutes=9))
        forge.put(PYTHON, 9, ago(minutes=5))

        with shop.runtime() as runtime:
            planned = runtime.plan(runtime.project.tables)
        assert "repo torvalds/linux cannot be read" in explain(planned.plan)
        told = shop.apply()["issues"]
        assert "repo torvalds/linux cannot be read: " in told["error"]
        assert "answered 404" in told["error"]
        assert "take it out of the partition keys" in told["error"]
        assert told["chunks"]["failed"] == 0
        assert issues(shop) == sorted([*before, *of(forge, PYTHON)])
        of_linux = {key: status for key, status in known.items() if key.startswith(OF_LINUX)}
        assert of_linux.items() <= statuses(shop).items(), "what was published of it stays so"
        assert shown <= shown_in_dagster(shop)

        assert "cannot be read" in errors_in_status(shop)

        assert "cannot be read" in shop.apply()["issues"]["error"], "also when nothing else is due"
        assert "cannot be read" in errors_in_status(shop)
        (alert,) = open_alerts(shop)
        assert (alert.kind, alert.subject, alert.severity, alert.times) == ("unread_part", LINUX, "error", 2)

        forge.gone.clear()
        assert shop.apply()["issues"]["error"] is None
        assert issues(shop) == of(forge)
        assert errors_in_status(shop) == ""


def test_one_that_the_api_does_not_answer_for_stops_no_other_and_is_an_alert_after_a_while(shop: ShopProject) -> None:
    forge = with_history()
    with forging(shop, forge, **CURSOR):
        shop.apply()
        known = statuses(shop)
        before = of(forge, LINUX)
        forge.silent.add(LINUX)
        forge.put(LINUX, 8, ago(minutes=9))
        forge.put(PYTHON, 9, ago(minutes=5))

        told = shop.apply()["issues"]
        assert "repo torvalds/linux cannot be read: " in told["error"]
        assert "answered 503" in told["error"]
        assert "and this one when it answers again" in told["error"]
        assert told["chunks"]["failed"] == 0
        assert issues(shop) == sorted([*before, *of(forge, PYTHON)])
        assert {key: one for key, one in known.items() if key.startswith(OF_LINUX)}.items() <= statuses(shop).items()
        assert last_run(shop) == ("partial", "transient")
        shop.apply()
        assert last_run(shop) == ("failed", "transient"), "also when nothing else is due"
        assert open_alerts(shop) == []

        an_hour_passes(shop)
        shop.apply()
        (alert,) = open_alerts(shop)
        assert (alert.kind, alert.subject, alert.severity) == ("unread_part", LINUX, "error")

        forge.silent.clear()
        assert shop.apply()["issues"]["error"] is None
        assert issues(shop) == of(forge)
        forge.silent.add(LINUX)
        shop.apply()
        assert open_alerts(shop)[0].times == alert.times, "it is silent anew"


def last_run(shop: ShopProject) -> tuple[str, str | None]:
    with open_audit(None, shop.root / ".hakiri") as audit:
        newest = audit.runs.recent("forge", "issues")[0]
    return newest.status, newest.error_kind


def an_hour_passes(shop: ShopProject) -> None:
    with closing(sqlite3.connect(shop.root / ".hakiri" / SQLITE_FILE)) as connection, connection:
        connection.execute("UPDATE silent_part SET since = ?", (ago(hours=1).isoformat(),))


def test_one_that_was_never_read_keeps_no_other_from_its_first_load(shop: ShopProject) -> None:
    forge = with_history()
    forge.gone.add(LINUX)
    with forging(shop, forge, **CURSOR):
        assert "torvalds/linux" in shop.apply()["issues"]["error"]
        assert issues(shop) == of(forge, PYTHON)
        forge.gone.clear()
        assert shop.apply()["issues"]["error"] is None
        assert issues(shop) == of(forge)


def test_who_asks_for_it_by_name_is_told_why_not(shop: ShopProject) -> None:
    forge = with_history()
    with forging(shop, forge, **CURSOR):
        shop.apply()
        keys = [key for key in statuses(shop) if key.startswith(OF_LINUX)]
        forge.gone.add(LINUX)
        with pytest.raises(AssertionError, match=r"Failure: forge/issues: 5 chunk\(s\) failed"):
            shop.again("issues", *keys)
        assert set(statuses(shop).values()) == {"done"}
        assert issues(shop) == of(forge)


def test_who_follows_the_run_sees_that_it_was_not_loaded_and_that_the_others_were(
    shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge = with_history()
    with forging(shop, forge, **CURSOR), span_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)  # the exporter reads it by itself, too
        shop.settings = replace(shop.settings, telemetry={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint})
        shop.apply()
        receiver.take()
        (of_linux, *_), (of_python, *_) = (
            [key for key in statuses(shop) if key.startswith(begins)] for begins in (OF_LINUX, "python")
        )
        forge.gone.add(LINUX)
        with pytest.raises(AssertionError, match=r"Failure: forge/issues: 1 chunk\(s\) failed"):
            shop.again("issues", of_linux, of_python)
        spans = {span.attributes.get("hakiri.chunk_id"): span for span in receiver.take() if span.kind == "chunk"}
    assert spans[of_python].attributes["hakiri.chunk.outcome"] == "published"
    assert spans[of_linux].attributes["hakiri.chunk.outcome"] == "failed"
    assert "answered 404" in (spans[of_linux].error or "")


def test_one_that_answers_who_looks_and_refuses_who_reads_fails_alone(shop: ShopProject) -> None:
    """They are read in one pass, which breaks off for both."""
    forge = Forge()
    forge.put(LINUX, 1, ago(minutes=3))
    forge.put(PYTHON, 2, ago(minutes=2))
    with forging(shop, RefusesReaders(forge.repos), **CURSOR):
        told = shop.apply()["issues"]
    assert "answered 410" in told["error"]
    assert issues(shop) == of(forge, PYTHON)


def test_one_that_asks_to_be_left_alone_is_not_asked_for_each_part_by_itself(shop: ShopProject) -> None:
    forge = with_history()
    with forging(shop, ThrottlesReaders(forge.repos), **CURSOR, backfill={"window": "10y"}) as api:
        told = shop.apply()["issues"]
        assert "it asks to be left alone for 86400 s" in told["error"]
        assert sum("since" in asked.params for asked in api.asked) <= 2, "of one pass"


def test_one_that_asks_to_be_left_alone_is_asked_for_no_more_windows_either(shop: ShopProject) -> None:
    forge = Forge()
    for number in range(1, 25):
        forge.put(PYTHON, number, ago(days=30 * number))
    with forging(shop, ThrottlesReaders(forge.repos), PYTHON, **CURSOR, backfill={"window": "1mo"}) as api:
        told = shop.apply()["issues"]
        assert "it asks to be left alone for 86400 s" in told["error"]
        assert sum("since" in asked.params for asked in api.asked) <= 4, "of one pass"
    assert told["chunks"]["failed"] <= 4
    assert told["chunks"]["pending"] + told["chunks"]["skipped"] >= 20
    assert set(statuses(shop).values()) == {"failed", "pending"}


class ThrottlesReaders(Forge):
    def answer(self, asked: Asked) -> Said:
        if "since" in asked.params:
            return Said(status=429, headers=[("Retry-After", "86400")])
        return super().answer(asked)


class RefusesReaders(Forge):
    """Those of one part always, those of others once."""

    refused_once = False

    def answer(self, asked: Asked) -> Said:
        if "since" in asked.params and (LINUX in unquote(asked.path) or not self.refused_once):
            self.refused_once = True
            return said({"message": "Gone"}, 410)
        return super().answer(asked)


def test_where_all_are_refused_the_table_is(shop: ShopProject) -> None:
    forge = with_history()
    forge.gone.update(forge.repos)
    with forging(shop, forge, **CURSOR):
        assert "answered 404" in shop.apply()["issues"]["error"]
        assert open_alerts(shop) == []


def test_a_table_that_is_loaded_whole_needs_all_of_them(shop: ShopProject) -> None:
    forge = with_history()
    with forging(shop, forge, load={"mode": "truncate"}):
        assert shop.apply()["issues"]["error"] is None
        forge.gone.add(LINUX)
        assert "answered 404" in shop.apply()["issues"]["error"]
        assert issues(shop) == of(forge)


def test_what_it_owes_nothing_of_does_not_fail_with_it(shop: ShopProject) -> None:
    """A run that was asked for before, of chunks that another has loaded meanwhile."""
    forge = with_history()
    with forging(shop, forge, **CURSOR):
        with shop.runtime() as runtime:
            (table,) = runtime.project.tables
            before = runtime.survey(table)
        shop.apply()
        forge.gone.add(LINUX)
        forge.put(PYTHON, 9, ago(minutes=5))
        with shop.runtime() as runtime:
            assert Applier(runtime, shop.instance).load_due(table, before) == ()
    assert (PYTHON, 9) in issues(shop)


def test_another_window_than_it_was_loaded_by_brings_no_chunk_of_it_back(shop: ShopProject) -> None:
    forge = with_history()
    daily = CURSOR | {"backfill": {"window": "1d", "start_from": f"{ago(days=40):%Y-%m-%d}"}}
    with forging(shop, forge, **CURSOR) as api:
        shop.apply()
        declare(shop, api, **daily)
        shop.apply()
        planned = keys(shop)
        forge.gone.add(LINUX)
        forge.put(PYTHON, 9, ago(minutes=5))
        shop.apply()
        assert keys(shop) >= planned
        assert {key for key in keys(shop) if key.startswith(OF_LINUX)} <= planned
        declare(shop, api, **CURSOR)
        shop.apply()
        assert not any(key.startswith(OF_LINUX) for key in keys(shop)), "nobody knows how its windows would be cut"
        forge.gone.clear()
        assert shop.apply()["issues"]["error"] is None
        assert keys(shop) == {state.key for state in newest_states(shop)}
        assert issues(shop) == of(forge)


def keys(shop: ShopProject) -> set[str]:
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        return {chunk.key for chunk in runtime.survey(table).chunks}


def newest_states(shop: ShopProject) -> list[ChunkState]:
    with open_audit(None, shop.root / ".hakiri") as audit:
        states = audit.chunks.states("forge", "issues")
    return [state for state in states if state.generation == max(one.generation for one in states)]


def test_the_planner_tells_of_it(shop: ShopProject) -> None:
    forge = with_history()
    with forging(shop, forge, **CURSOR):
        shop.apply()
        forge.gone.add(LINUX)
        with dg.instance_for_test() as instance:
            Daemon(replace(shop, instance=instance)).look()
        assert [(alert.kind, alert.subject) for alert in open_alerts(shop)] == [("unread_part", LINUX)]


def test_plan_and_run_say_what_they_could_not_read(
    shop: ShopProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forge = with_history()
    forge.gone.add(LINUX)
    with forging(shop, forge, **CURSOR):
        for name, value in {**shop.env, "HAKIRI_DAGSTER_URL": shop.url}.items():
            monkeypatch.setenv(name, value)
        assert plan(shop.root, ["forge"], as_json=True) == 1
        assert "repo torvalds/linux cannot be read" in capsys.readouterr().out
        assert run(shop.root, "forge", table=None, chunk=None, as_json=True) == 1
        assert "repo torvalds/linux cannot be read" in capsys.readouterr().out
        assert issues(shop) == of(forge, PYTHON)
        with pytest.raises(SourceError, match="answered 404"):
            run(shop.root, "forge", table=None, chunk=f"{OF_LINUX}2026-11", as_json=True)


class Numbered(Forge):
    """In the order of their numbers."""

    def answer(self, asked: Asked) -> Said:
        repo = unquote(asked.path).removeprefix("/repos/").removesuffix("/issues")
        if repo in self.gone:
            return said({"message": "Not Found"}, 404)
        first = int(asked.params.get("from", 0))
        rows = [self.repos[repo][number] for number in sorted(self.repos[repo]) if number >= first]
        return said(rows[::-1] if asked.params.get("direction") == "desc" else rows)


def test_its_windows_stay_where_dagster_knows_only_those_that_it_is_told(shop: ShopProject) -> None:
    forge = Numbered(with_history().repos)
    forge.put(LINUX, 40, ago(days=1))
    numbers = {"newest": {"direction": "desc"}, "lower": "from", "order": "ascending", "format": "number"}
    with forging(shop, forge, incremental="number", cursor_params=numbers, backfill={"window": 10}):
        assert shop.apply()["issues"]["error"] is None
        shown, partitions = shown_in_dagster(shop), shop.instance.get_dynamic_partitions(WINDOWS)
        assert len(partitions) == 5
        forge.gone.add(LINUX)
        forge.put(PYTHON, 4, ago(days=1))
        told = shop.apply()["issues"]
        assert "cannot be read" in told["error"]
        assert (PYTHON, 4) in issues(shop)
        assert shown_in_dagster(shop) == shown
        assert shop.instance.get_dynamic_partitions(WINDOWS) == partitions
