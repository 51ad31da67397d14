from __future__ import annotations

import logging

import psycopg
import pytest

from hakiri_dagster.connectors.postgres import snapshot
from hakiri_dagster.connectors.postgres.config import SourceConfig
from hakiri_dagster.errors import SourceUnavailable
from tests.acceptance.command_line import eventually

from .conftest import Source, part, parts_of

LARGE = "CREATE TABLE t AS SELECT n AS id, 0 AS version, repeat('x', 100) AS pad FROM generate_series(1, 5000) AS n"


def test_parts_that_are_read_at_different_times_show_the_same_moment(source: Source, many_parts: None) -> None:
    source.run(LARGE)
    reading = source.read("t")
    rows = part(reading, 0)
    for number in range(1, parts_of(reading)):
        source.run(
            f"UPDATE t SET version = {number}",  # every row moves to another block
            f"INSERT INTO t VALUES ({5000 + number}, {number})",
            f"DELETE FROM t WHERE id = {number}",
        )
        rows += part(reading, number)
    reading.close()

    assert sorted(row["id"] for row in rows) == list(range(1, 5001))
    assert {row["version"] for row in rows} == {0}


def test_a_frame_that_is_run_twice_gives_the_same_rows(source: Source, many_parts: None) -> None:
    source.run(LARGE)
    reading = source.read("t")
    first = reading.frame.count()
    source.run("DELETE FROM t")
    assert reading.frame.count() == first == 5000
    reading.close()


def test_closing_a_reading_lets_go_of_the_source(source: Source, many_parts: None) -> None:
    source.run(LARGE)
    reading = source.read("t")
    held = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
    assert eventually(lambda: source.ask(held) == [(1,)]), "those of the look may be on their way out"
    reading.close()
    reading.close()
    source.run("DROP TABLE t")
    with pytest.raises(SourceUnavailable, match="is gone"):
        part(reading, 0)


def test_a_table_cannot_change_its_shape_while_it_is_read(source: Source, many_parts: None) -> None:
    source.run(LARGE)
    reading = source.read("t")
    with psycopg.connect(source.url, autocommit=True) as other:
        other.execute("SET lock_timeout = '50ms'")
        for change in ("DROP TABLE t", "TRUNCATE t", "ALTER TABLE t DROP COLUMN pad"):
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute(change)
    reading.close()


def test_a_small_table_holds_nothing_open(source: Source) -> None:
    source.run("CREATE TABLE t AS SELECT 1 AS id")
    source.read("t")
    held = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend' AND state <> 'idle'"
    )
    assert eventually(lambda: source.ask(held) == [(0,)]), "a backend ends a moment after its client"


def test_where_no_snapshot_can_be_shared_one_connection_reads_everything(
    source: Source, many_parts: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As behind a pooler that sends the second connection to another server."""
    source.run(LARGE)

    def elsewhere(config: SourceConfig, where: str) -> psycopg.Connection[psycopg.rows.TupleRow]:
        other = SourceConfig.of({"url": source.url.rpartition("/")[0] + "/postgres"})
        return psycopg.connect(other.conninfo)

    monkeypatch.setattr(snapshot, "connect", elsewhere)
    with caplog.at_level(logging.WARNING):
        reading = source.read("t")
    assert parts_of(reading) == 1
    assert "shop/orders: no snapshot can be shared" in caplog.text
    assert len(part(reading, 0)) == 5000
