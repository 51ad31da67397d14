"""A stretch of the cursor is taken back and loaded again, in every load mode that has chunks of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.audit.chunks import ChunkStore
from hakiri_dagster.audit.rewinds import RewindAnswer
from hakiri_dagster.cli.explain import document, explain
from hakiri_dagster.engine.process_identity import ProcessIdentity
from hakiri_dagster.errors import AuditUnavailable, ChunkBusy, HakiriError, LeaseLost, UsageError
from hakiri_dagster.pipeline.chunk_run import run_chunks
from hakiri_dagster.pipeline.claims import claimed
from hakiri_dagster.pipeline.rewinding import Wish, reached, refuse_without_cursor, rewind, stretch_of
from hakiri_dagster.pipeline.steps import FailedChunk, PreparedChunk, PublishedChunk
from hakiri_dagster.pipeline.wanted import Wanted
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.plan import ProjectPlan
from tests.integration.orchestration.conftest import ShopProject

MODES = ("append", "upsert", "incremental_watermark", "scd2")
WHY = "vendor-side data correction RT-481"


def take_back(shop: ShopProject, table: str, lower: str, upper: str, why: str = WHY) -> RewindAnswer:
    with shop.runtime() as runtime:
        (found,) = [one for one in runtime.project.tables if one.name == table]
        refuse_without_cursor(found, runtime.source(found))
        survey = runtime.survey(found)
        wish = Wish(lower, upper, why, "ada")
        return rewind(runtime, survey, stretch_of(survey, wish), wish)


def plan(shop: ShopProject) -> ProjectPlan:
    with shop.runtime() as runtime:
        return runtime.plan(runtime.project.tables).plan


def status(shop: ShopProject, pipeline_id: str = "shop") -> Any:
    with shop.runtime() as runtime:
        return runtime.audit.status(pipeline_id)


def ledger(shop: ShopProject, table: str) -> list[tuple[Any, ...]]:
    return shop.rows(
        f"SELECT load_id, chunk_key, rows FROM hakiri.ledger WHERE table_name = '{table}' ORDER BY load_id"
    )


def table_of(mode: str) -> dict[str, Any]:
    load: dict[str, Any] = {"mode": mode}
    if mode == "incremental_watermark":
        load["watermark_column"] = "day"
    return {"name": mode, "incremental": "day", "load": load} | (
        {"primary_key": ["id"]} if mode in ("upsert", "scd2") else {}
    )


@pytest.fixture
def days(shop: ShopProject) -> ShopProject:
    """One source for a table of each mode: views of it, with a row a month."""
    shop.execute(
        "CREATE SCHEMA src; CREATE TABLE src.days (id int, v text, day date);"
        "INSERT INTO src.days VALUES (1, 'a', '2024-01-10'), (2, 'b', '2024-02-10'), (3, 'c', '2024-03-10'),"
        " (4, 'd', '2024-04-10'), (9, 'none', NULL);"
        + "".join(f"CREATE VIEW src.{mode} AS SELECT * FROM src.days;" for mode in MODES[:-1])
        + "CREATE VIEW src.scd2 AS SELECT * FROM src.days WHERE day IS NOT NULL"
    )
    source = {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}}
    shop.manifest({"id": "shop", "source": source, "tables": [table_of(mode) for mode in MODES]})
    return shop


def rows(shop: ShopProject, table: str) -> list[tuple[Any, ...]]:
    return shop.rows(f"SELECT id, v FROM raw.{table} ORDER BY id")


def test_a_stretch_is_loaded_again_in_every_mode_and_nothing_else_is(days: ShopProject) -> None:
    days.apply()
    days.execute("INSERT INTO src.days VALUES (5, 'e', '2024-04-20')")
    days.apply()  # the open chunk has two loads by now
    before = {mode: rows(days, mode) for mode in MODES}
    known = {mode: ledger(days, mode) for mode in MODES}
    days.execute("UPDATE src.days SET v = 'B' WHERE id = 2; DELETE FROM src.days WHERE id = 3")
    days.execute("UPDATE src.days SET v = 'D' WHERE id = 4; UPDATE src.days SET v = 'A' WHERE id = 1")
    assert all(table["rows"] == 0 for table in days.apply().values()), "nothing tells of it"

    for mode in MODES:
        answer = take_back(days, mode, "2024-02-20", "2024-04-15")
        assert [state.key for state in answer.reach.published] == ["2024-02", "2024-03", "2024-04"]
    assert {mode: rows(days, mode) for mode in MODES} == before, "readers see the old rows until the new are published"
    told = status(days)
    assert (told["phase"], told["chunks"]["pending"], told["chunks"]["total"]) == ("backfilling", 12, 19)
    assert [(one["table"], one["reason"], one["chunks"]) for one in told["rewinds"]] == [
        (mode, WHY, 3) for mode in MODES
    ]
    planned = plan(days)
    assert f"3 of them rewound: {WHY} (2024-02, 2024-03, 2024-04)" in explain(planned)

    applied = days.apply()
    assert {mode: applied[mode]["chunks"]["done"] for mode in MODES} == dict.fromkeys(MODES, 3)
    loaded_again = [(1, "a"), (2, "B"), (4, "D"), (5, "e"), (9, "none")]
    assert rows(days, "append") == rows(days, "incremental_watermark") == loaded_again
    never_deleted = sorted([*loaded_again, (3, "c")])
    assert rows(days, "upsert") == never_deleted
    current = "SELECT id, v FROM raw.scd2 WHERE is_current ORDER BY id"
    assert days.rows(current) == [row for row in never_deleted if row[0] != 9]
    for mode in MODES:
        new = ledger(days, mode)[len(known[mode]) :]
        assert [key for _, key, _ in new] == ["2024-02", "2024-03", "2024-04"]
    assert plan(days).is_converged
    assert (status(days)["phase"], status(days)["rewinds"]) == ("streaming", [])


def test_why_and_what_was_replaced_shows_in_dagster_and_stays_in_the_audit_db(days: ShopProject) -> None:
    days.apply("shop")
    days.execute("INSERT INTO src.days VALUES (5, 'e', '2024-04-20')")
    days.apply()
    (first, second) = [load for load, key, _ in ledger(days, "append") if key == "2024-04"]
    answer = take_back(days, "append", "2024-04-01", "2024-05-01")
    days.apply()
    asset = dg.AssetKey(["shop", "append"])
    newest = days.instance.fetch_materializations(asset, limit=1).records[0].asset_materialization
    assert newest is not None
    shown = {name: newest.metadata[name].value for name in ("rewind", "rewind_reason", "rewound_by", "replaces_loads")}
    assert shown == {
        "rewind": answer.rewind_id, "rewind_reason": WHY, "rewound_by": "ada", "replaces_loads": f"{first}, {second}",
    }  # fmt: skip
    with days.runtime() as runtime:
        (kept,) = runtime.audit.rewinds.history("shop")
    (chunk,) = kept.chunks
    assert (kept.reason, kept.asked_by, kept.asked_from, kept.asked_to) == (WHY, "ada", "2024-04-01", "2024-05-01")
    assert (chunk.key, chunk.load_ids, chunk.rows, chunk.attempts) == ("2024-04", (second,), 2, 2)
    assert chunk.completed_at is not None
    days.apply()
    again = days.instance.fetch_materializations(asset, limit=1).records[0].asset_materialization
    assert again == newest, "it is told once"


@pytest.fixture
def events(shop: ShopProject) -> ShopProject:
    """In order, with windows of ten ids."""
    shop.execute("CREATE SCHEMA src; CREATE TABLE src.events AS SELECT n AS id FROM generate_series(1, 45, 4) AS n")
    table = {"name": "events", "loadMode": "incremental_watermark", "watermarkColumn": "id"}
    source = {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}}
    shop.manifest({"id": "shop", "source": source, "tables": [table], "backfill": {"window": 10}})
    return shop


MARK = "SELECT position FROM hakiri.pipeline_watermarks"


class TestAWatermark:
    def test_goes_back_with_the_first_publish_and_forth_with_those_after_it(self, events: ShopProject) -> None:
        events.apply()
        assert events.rows(MARK) == [(45,)]
        take_back(events, "events", "15", "50")
        assert events.rows(MARK) == [(45,)], "a rewind moves nothing by itself"
        marks = list(self._marks_after_each_publish(events))
        assert marks == [("id-0000000010..0000000020", 17), ("id-0000000020..0000000030", 29),
                         ("id-0000000030..0000000040", 37), ("id-0000000040..0000000050", 45)]  # fmt: skip
        assert events.column("events", "id") == list(range(1, 46, 4))

    def test_stays_where_it_is_when_the_chunk_that_holds_it_is_not_taken_back(self, events: ShopProject) -> None:
        events.apply()
        take_back(events, "events", "10", "30")
        assert [mark for _, mark in self._marks_after_each_publish(events)] == [45, 45]

    def test_hides_nothing_that_fills_in_where_the_source_has_lost_its_rows(self, events: ShopProject) -> None:
        events.apply()
        events.execute("DELETE FROM src.events WHERE id > 17")  # restored from a dump, say: its ids are given out again
        assert len(take_back(events, "events", "10", "50").reach.published) == 4
        events.apply()
        assert events.rows(MARK) == [(17,)]
        events.execute("INSERT INTO src.events SELECT * FROM generate_series(18, 44)")
        events.apply()
        assert events.column("events", "id") == [1, 5, 9, 13, *range(17, 45)]
        assert events.rows(MARK) == [(44,)]
        assert plan(events).is_converged

    def test_hides_nothing_of_chunks_that_the_source_held_no_row_of_when_they_were_taken_back(
        self, events: ShopProject
    ) -> None:
        events.apply()
        events.execute("DELETE FROM src.events WHERE id > 17")
        taken = take_back(events, "events", "20", "50").reach.published
        assert next(state.key for state in taken) == "id-0000000020..0000000030"
        assert plan(events).is_converged, "their rows stay"
        assert events.column("events", "id") == list(range(1, 46, 4))
        events.execute("INSERT INTO src.events VALUES (26), (44)")
        events.apply()
        assert events.column("events", "id") == [1, 5, 9, 13, 17, 26, 44]
        assert events.rows(MARK) == [(44,)]

    def _marks_after_each_publish(self, shop: ShopProject) -> Iterator[tuple[str, int]]:
        with shop.runtime() as runtime:
            (table,) = runtime.project.tables
            keys = runtime.survey(table).due_keys
            way = runtime.way(table, runtime.open_spark, run_id="r", log=print)
            for step in run_chunks(way, Wanted(keys, due_only=True, partitions=frozenset(keys))):
                assert isinstance(step, PreparedChunk)
                published = step.publish()
                assert isinstance(published, PublishedChunk), published
                yield step.key, shop.rows(MARK)[0][0]


class TestSomebodyAtWork:
    """One prepared load of a chunk that is rewound meanwhile."""

    @pytest.fixture
    def corrected(self, days: ShopProject) -> ShopProject:
        source = {"connector": "postgres", "config": {"url": days.url, "schema": "src"}}
        days.manifest({"id": "shop", "source": source, "tables": [table_of("append")]})
        days.apply()
        return days

    def test_keeps_a_chunk_from_being_taken_back_and_nothing_is_changed(self, corrected: ShopProject) -> None:
        before = status(corrected)
        with corrected.runtime() as runtime:
            steps = run_chunks(self._way(runtime), self._again("2024-02"))
            prepared = next(steps)
            assert isinstance(prepared, PreparedChunk)
            with pytest.raises(ChunkBusy, match=r"1 chunk\(s\) are being loaded \(2024-02\), by process"):
                take_back(corrected, "append", "2024-01-01", "2024-04-01")
            assert isinstance(prepared.publish(), PublishedChunk)
            assert list(steps) == []
        assert status(corrected)["chunks"] == before["chunks"]
        assert take_back(corrected, "append", "2024-01-01", "2024-04-01").rewind_id is not None

    def test_that_is_taken_for_dead_publishes_nothing_any_more(self, corrected: ShopProject) -> None:
        here = ProcessIdentity.current()
        dead = str(ProcessIdentity(here.host, here.boot_id, here.pid, "0"))
        with corrected.runtime() as runtime:
            steps = run_chunks(replace(self._way(runtime), holder=dead), self._again("2024-02"))
            prepared = next(steps)
            assert isinstance(prepared, PreparedChunk)
            corrected.execute("UPDATE src.days SET v = 'B' WHERE id = 2")
            take_back(corrected, "append", "2024-02-01", "2024-03-01")
            lost = prepared.publish()
            assert isinstance(lost, FailedChunk)
            assert isinstance(lost.error, LeaseLost)
            steps.close()
        assert rows(corrected, "append")[1] == (2, "b")
        corrected.apply()
        assert rows(corrected, "append")[1] == (2, "B")

    def test_that_has_published_just_before_it_died_is_loaded_again_all_the_same(
        self, corrected: ShopProject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The ledger is heard before the chunk is taken back, or that older row would count as the answer."""
        corrected.execute("UPDATE src.days SET v = 'between' WHERE id = 2")
        here = ProcessIdentity.current()
        dead = str(ProcessIdentity(here.host, here.boot_id, here.pid, "0"))
        with corrected.runtime() as runtime, monkeypatch.context() as away:
            away.setattr(ChunkStore, "done", _cannot_be_told)
            for step in run_chunks(replace(self._way(runtime), holder=dead), self._again("2024-02")):
                assert isinstance(step, PreparedChunk)
                step.publish()
        assert rows(corrected, "append")[1] == (2, "between")
        corrected.execute("UPDATE src.days SET v = 'last' WHERE id = 2")
        take_back(corrected, "append", "2024-02-01", "2024-03-01")
        assert corrected.apply()["append"]["chunks"]["done"] == 1
        assert rows(corrected, "append")[1] == (2, "last")

    def _way(self, runtime: Any) -> Way:
        (table,) = runtime.project.tables
        return runtime.way(table, runtime.open_spark, run_id="r", log=print)  # type: ignore[no-any-return]  # of Any

    def _again(self, key: str) -> Wanted:
        return Wanted((key,), due_only=False, partitions=frozenset({key}))


def _cannot_be_told(*_: object) -> None:
    raise AuditUnavailable("gone")


def test_what_was_looked_at_before_a_rewind_is_neither_stored_nor_claimed(days: ShopProject) -> None:
    days.apply()
    days.execute("INSERT INTO src.days VALUES (5, 'e', '2024-04-20')")
    with days.runtime() as runtime:
        (table,) = [one for one in runtime.project.tables if one.name == "append"]
        way = runtime.way(table, runtime.open_spark, run_id="r", log=print)
        survey = runtime.survey(table)
        take_back(days, "append", "2024-01-01", "2024-05-01")
        with claimed(way, survey, Wanted(survey.due_keys, due_only=True, partitions=frozenset(survey.due_keys))) as had:
            assert (had.slices, had.overtaken) == ((), ("2024-04",))
    assert days.apply()["append"]["chunks"]["done"] == 4
    assert plan(days).is_converged


def test_the_same_rewind_twice_is_told_and_loads_once(days: ShopProject) -> None:
    days.apply()
    first = take_back(days, "append", "2024-02-01", "2024-03-01")
    second = take_back(days, "append", "2024-02-01", "2024-03-01", "again")
    assert (second.rewind_id, [state.key for state in second.reach.owed]) == (None, ["2024-02"])
    with days.runtime() as runtime:
        assert [kept.rewind_id for kept in runtime.audit.rewinds.history("shop")] == [first.rewind_id]
    assert days.apply()["append"]["chunks"]["done"] == 1
    assert days.apply()["append"]["chunks"]["done"] == 0


def test_tables_without_chunks_of_a_cursor_are_refused_with_the_way_that_works(shop: ShopProject) -> None:
    source = {"connector": "files", "config": {"path": "data", "format": "csv"}}
    files = {"name": "files", "path": "data/*.csv"}
    whole = {"name": "whole", "path": "data/*.csv", "load": {"mode": "truncate"}, "incremental": "id"}
    shop.manifest({"id": "shop", "source": source, "tables": [files, whole]})
    shop.file("data/a.csv", "id\n1\n")
    for table, why, way in (
        ("files", "its chunks are files", "hakiri run shop --table files --chunk KEY"),
        ("whole", "load mode truncate loads the table whole", "hakiri run shop --table whole --chunk full"),
    ):
        with pytest.raises(UsageError, match=why) as told:
            take_back(shop, table, "1", "2")
        assert way in (told.value.hint or "")


def test_a_stretch_outside_the_plan_reaches_no_chunk(days: ShopProject) -> None:
    with days.runtime() as runtime:
        (table,) = [one for one in runtime.project.tables if one.name == "append"]
        survey = runtime.survey(table)
        for lower, upper in (("1999-01-01", "2000-01-01"), ("2024-05-01", "2025-01-01")):
            wish = Wish(lower, upper, WHY, "ada")
            assert reached(survey, stretch_of(survey, wish)).states == ()


def test_rows_of_the_future_are_reached_by_their_dates_and_those_without_any_are_left_alone(days: ShopProject) -> None:
    days.execute("INSERT INTO src.days VALUES (7, 'far', '2990-01-01')")
    days.apply()
    days.execute("UPDATE src.days SET v = 'FAR' WHERE id = 7; UPDATE src.days SET v = 'NONE' WHERE id = 9")
    answer = take_back(days, "append", "2989-01-01", "2991-01-01")
    assert [state.key for state in answer.reach.published] == ["outside"]
    planned = json.loads(json.dumps(document(plan(days))))
    (append,) = [table for table in planned["pipelines"][0]["tables"] if table["table"] == "append"]
    assert [chunk["chunk"] for chunk in append["rewound"]] == ["outside"]
    days.apply()
    assert (7, "FAR") in rows(days, "append")


@pytest.mark.parametrize("why", ["", "  ", "two\nlines", "x" * 1001, "bell\x07"])
def test_a_reason_is_one_line(why: str) -> None:
    with pytest.raises(HakiriError, match="--reason") as told:
        Wish("1", "2", why, "ada")
    assert told.value.exit_code == 2
