"""incremental_watermark from the manifest to the warehouse."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from hakiri_dagster.orchestration.apply import Applier
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

MARK = "SELECT value FROM hakiri.pipeline_watermarks"


@pytest.fixture
def events(shop: ShopProject) -> ShopProject:
    """A table of a database with windows of ten ids."""
    shop.execute("CREATE SCHEMA src; CREATE TABLE src.events (id bigint, v text)")
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}},
            "tables": [{"name": "events", "loadMode": "incremental_watermark", "watermarkColumn": "id"}],
            "backfill": {"window": 10},
        }
    )
    return shop


def add(shop: ShopProject, *ids: int) -> None:
    with psycopg.connect(shop.url) as connection:
        connection.cursor().executemany("INSERT INTO src.events VALUES (%s, 'x')", [(n,) for n in ids])


def again(shop: ShopProject, *keys: str) -> tuple[str, ...]:
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        return Applier(runtime, shop.instance).load_again(table, runtime.survey(table), keys)


def test_what_is_above_the_mark_is_added_and_ties_are_not_doubled(events: ShopProject) -> None:
    add(events, 1, 5, 12)
    assert events.apply()["events"]["chunks"]["done"] == 2
    add(events, 12, 14, 31)
    assert events.apply()["events"]["rows"] == 4
    assert events.column("events", "id") == [1, 5, 12, 12, 14, 31]
    assert events.rows(MARK) == [("31",)]
    assert events.apply()["events"]["chunks"] == {"done": 0, "failed": 0, "skipped": 0, "pending": 0}


def test_a_chunk_that_fails_leaves_those_after_it_pending_until_it_is_mended(events: ShopProject) -> None:
    add(events, 1, 12, 25)
    events.execute("CREATE SCHEMA raw; CREATE TABLE raw.events (id bigint CHECK (id <> 12), v text)")
    told = events.apply()["events"]
    assert told["chunks"] == {"done": 1, "failed": 1, "skipped": 0, "pending": 1}
    assert "id-0000000010..0000000020" in told["error"]
    assert (events.column("events", "id"), events.rows(MARK)) == ([1], [("1",)])
    assert events.apply()["events"]["chunks"] == {"done": 0, "failed": 1, "skipped": 0, "pending": 1}
    events.execute("ALTER TABLE raw.events DROP CONSTRAINT events_id_check")
    assert events.apply()["events"]["chunks"] == {"done": 2, "failed": 0, "skipped": 0, "pending": 0}
    assert (events.column("events", "id"), events.rows(MARK)) == ([1, 12, 25], [("25",)])


def test_a_later_chunk_alone_is_refused_with_the_one_that_comes_first(events: ShopProject) -> None:
    add(events, 1, 12, 25)
    (failure,) = again(events, "id-0000000020..0000000030")
    assert "comes after id-0000000000..0000000010, which is owed and not loaded yet" in failure
    assert "hakiri apply shop" in failure
    assert events.rows("SELECT to_regclass('raw.events')") == [(None,)]


def test_a_chunk_below_the_mark_is_loaded_again_and_keeps_its_rows_if_that_fails(events: ShopProject) -> None:
    add(events, 1, 12, 25)
    events.apply()
    events.execute("UPDATE src.events SET v = 'y' WHERE id = 12")
    events.execute("ALTER TABLE raw.events ADD CHECK (v <> 'y')")
    assert again(events, "id-0000000010..0000000020")
    assert events.rows("SELECT id, v FROM raw.events ORDER BY id") == [(1, "x"), (12, "x"), (25, "x")]
    events.execute("ALTER TABLE raw.events DROP CONSTRAINT events_v_check")
    assert not again(events, "id-0000000010..0000000020")
    assert events.rows("SELECT id, v FROM raw.events ORDER BY id") == [(1, "x"), (12, "y"), (25, "x")]
    assert events.rows(MARK) == [("25",)]


def test_rows_that_come_below_the_mark_are_not_loaded(events: ShopProject) -> None:
    add(events, 15, 25)
    events.apply()
    add(events, 3, 16, 26)
    events.apply()
    assert events.column("events", "id") == [15, 25, 26]
    assert events.apply()["events"]["chunks"]["done"] == 0


def test_the_first_run_over_a_table_of_somebody_elses_begins_at_its_highest_value(events: ShopProject) -> None:
    add(events, 1, 5, 12, 12, 14, 25)
    events.execute("CREATE SCHEMA raw; CREATE TABLE raw.events AS SELECT * FROM src.events WHERE id <= 12")
    told = events.apply()["events"]
    assert told["chunks"]["done"] == 2
    assert events.column("events", "id") == [1, 5, 12, 12, 14, 25]
    assert events.apply()["events"]["chunks"]["done"] == 0
    add(events, 7, 26)
    events.apply()
    assert events.column("events", "id") == [1, 5, 12, 12, 14, 25, 26]


def test_an_audit_db_that_was_lost_replays_no_history(events: ShopProject) -> None:
    add(events, 1, 12, 25)
    events.apply()
    for path in (events.root / ".hakiri").glob("audit.sqlite*"):
        path.unlink()
    events.execute("DELETE FROM raw.events WHERE id = 1")  # would come back with the history
    add(events, 27)
    events.apply()
    assert events.column("events", "id") == [12, 25, 27]


def test_files_are_taken_from_the_mark_on(csv_shop: Declare) -> None:
    shop = csv_shop(loadMode="incremental_watermark", watermarkColumn="day", columns={"day": "date"}, path="data/*.csv")
    shop.file("data/a.csv", "id,day\n1,2024-01-05\n2,2024-02-05\n,\n")
    shop.apply()
    shop.file("data/b.csv", "id,day\n3,2024-01-20\n4,2024-03-05\n5,2024-02-05\n")
    shop.apply()
    assert shop.column("orders", "id") == [1, 2, 4, 5, None]
    assert shop.rows(MARK) == [("2024-03-05",)]
    assert shop.apply()["orders"]["chunks"]["done"] == 0


class TestALag:
    """Rows that come late, but not later than the lag, are loaded once."""

    @pytest.fixture
    def lagging(self, events: ShopProject) -> ShopProject:
        source = {"connector": "postgres", "config": {"url": events.url, "schema": "src"}}
        load = {"mode": "incremental_watermark", "watermark_column": "id", "lag": 15}
        table = {"name": "events", "load": load}
        events.manifest({"id": "shop", "source": source, "tables": [table], "backfill": {"window": 10}})
        return events

    def test_covers_late_rows_in_windows_that_were_closed_without_doubling_any(self, lagging: ShopProject) -> None:
        add(lagging, 1, 12, 25)
        lagging.apply()
        add(lagging, 11, 13, 24)  # without anything new above the mark
        assert lagging.apply()["events"]["chunks"]["done"] == 2
        assert lagging.column("events", "id") == [1, 11, 12, 13, 24, 25]
        assert lagging.apply()["events"]["chunks"]["done"] == 0
        add(lagging, 9, 26)  # 9 is later than the lag
        lagging.apply()
        assert lagging.column("events", "id") == [1, 11, 12, 13, 24, 25, 26]
        assert lagging.apply()["events"]["chunks"]["done"] == 0

    def test_looks_into_a_target_of_somebody_elses_without_doubling_what_is_there(self, lagging: ShopProject) -> None:
        add(lagging, 1, 5, 12, 12, 14, 18, 25)
        lagging.execute("CREATE SCHEMA raw; CREATE TABLE raw.events AS SELECT * FROM src.events WHERE id IN (12, 18)")
        lagging.execute("DELETE FROM raw.events WHERE ctid = (SELECT min(ctid) FROM raw.events)")
        told = lagging.apply()["events"]
        assert lagging.column("events", "id") == [5, 12, 12, 14, 18, 25]  # 1 is before the lag
        assert any(
            "2 row(s) not loaded, for they were in the target before our first load" in warning
            for warning in told["warnings"]
        )
        assert lagging.apply()["events"]["chunks"]["done"] == 0

    def test_of_another_kind_than_the_watermark_is_told_by_the_plan(self, lagging: ShopProject) -> None:
        add(lagging, 1)
        document = lagging.root / "manifests/pipelines/shop.json"
        document.write_text(document.read_text().replace('"lag": 15', '"lag": "2d"'))
        assert "the watermark is a numeric, so the lag '2d' does not fit it" in lagging.apply()["events"]["error"]


class TestAMirror:
    @pytest.fixture
    def mirror(self, events: ShopProject) -> ShopProject:
        add(events, 1)
        table = {"name": "events", "target": "mirror", "loadMode": "cdc_mirror", "cdcSource": "src.events"}
        source = {"connector": "postgres", "config": {"url": events.url, "schema": "src"}}
        events.manifest({"id": "stream", "source": source, "tables": [table]})
        return events

    def test_is_refused_while_streaming_is_off_and_other_tables_go_on(self, mirror: ShopProject) -> None:
        with mirror.runtime() as runtime:
            plans = {plan.pipeline_id: plan for plan in runtime.plan(runtime.project.tables).plan.tables}
        assert plans["stream"].verdict == "refused"
        assert plans["stream"].refusals[0].startswith("streaming disabled; ")
        assert plans["shop"].verdict == "load"
        told = mirror.apply("stream")["events"]
        assert "stream/events: streaming disabled" in told["error"]
        assert mirror.apply("shop")["events"]["rows"] == 1

    def test_is_refused_for_want_of_a_connector_when_it_is_on(self, mirror: ShopProject) -> None:
        mirror.settings = type(mirror.settings)(streaming_enabled=True)
        error = mirror.apply("stream")["events"]["error"]
        assert "Debezium connector not configured" in error
        assert "https://debezium.io/documentation/" in error

    def test_does_not_run_in_the_ui_either(self, mirror: ShopProject) -> None:
        with mirror.runtime() as runtime:
            (table,) = [t for t in runtime.project.tables if t.streams]
            with pytest.raises(Exception, match="streaming disabled"):
                runtime.way(table, lambda: None, run_id="r", log=print)  # type: ignore[arg-type,return-value] # never asked


class TestAChangedModeOrKey:
    def test_is_told_with_the_load_that_brings_it_about_and_not_again(self, csv_shop: Declare) -> None:
        shop = csv_shop(columns={"id": "int"})
        shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
        shop.apply()
        csv_shop(columns={"id": "int"}, load={"mode": "blue_green"})
        told = shop.apply()["orders"]
        assert told["warnings"] == [
            "load mode append becomes blue_green: the next load replaces all rows of the target, "
            "those that others put there too"
        ]
        assert shop.apply()["orders"]["warnings"] == []
        assert shop.column("orders", "id") == [1, 2]

    def test_of_the_primary_key_is_refused_with_the_ways_out(self, csv_shop: Declare) -> None:
        shop = csv_shop(columns={"id": "int"}, primary_key=["id"])
        shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
        shop.apply()
        csv_shop(columns={"id": "int"}, primary_key=["v"])
        assert "the primary key was (id) at the last load and is (v) now" in shop.apply()["orders"]["error"]
        shop.execute("DROP TABLE raw.orders")
        assert shop.apply()["orders"]["error"] is None
