"""A source that is a replica, and an address that leads to several servers which have come another way with the log."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from hakiri_dagster.connectors.contract import Known
from hakiri_dagster.engine.postgres_account import Account, clean_environment, reachable_binaries
from hakiri_dagster.engine.postgres_settings import free_port
from hakiri_dagster.errors import SourceUnavailable
from hakiri_dagster.planning.chunks import WHOLE
from hakiri_dagster.planning.horizon import DEFAULT_LOOKBACK_IDS, CursorHistory, Horizon, Lookback
from tests.acceptance.command_line import eventually

from .conftest import Source, no_spark


@dataclass(frozen=True)
class Cluster:
    data: Path
    port: int
    account: Account

    @property
    def url(self) -> str:
        return f"postgresql://hakiri@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(reachable_binaries(self.account) / program), *arguments], check=True, cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=clean_environment(), **self.account.run_as,
        )  # fmt: skip

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self.run("pg_ctl", "start", "-D", str(self.data), "-w", "-s", "-l", f"{self.data}.log", "-o", options)

    def stop(self) -> None:
        self.run("pg_ctl", "stop", "-D", str(self.data), "-m", "immediate", "-s")


@pytest.fixture(scope="module")
def folder(open_folder: Path) -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="pair-", dir=open_folder))
    Account.for_directory(made).give(made)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def pair(folder: Path) -> Iterator[tuple[Cluster, Cluster]]:
    account = Account.for_directory(folder)
    primary = Cluster(folder / "primary", free_port(), account)
    with ExitStack() as stack:
        options = ("-U", "hakiri", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions")
        primary.run("initdb", "-D", str(primary.data), *options)
        primary.start()
        stack.callback(primary.stop)
        with psycopg.connect(primary.url) as connection:
            connection.execute(
                "CREATE TABLE t (id bigserial PRIMARY KEY); INSERT INTO t SELECT FROM generate_series(1, 9)"
            )
        standby = Cluster(folder / "standby", free_port(), account)
        standby.run("pg_basebackup", "-R", "-D", str(standby.data), "-d", primary.url, "-c", "fast", "--no-sync")
        standby.start()
        stack.callback(standby.stop)
        yield primary, standby


def judge(source: Source) -> Horizon:
    found = source.table("t").discover(cursor="id", known=Known(), spark=no_spark, lookback=Lookback())
    assert found.horizon is not None
    return found.horizon


def test_a_standby_has_no_horizon_and_what_its_primary_shows_is_not_read_from_it(
    pair: tuple[Cluster, Cluster], spark: SparkSession
) -> None:
    primary, standby = (Source(cluster.url, spark) for cluster in pair)
    behind = judge(standby)
    assert behind.transactions.unknown is not None
    assert "hot standby" in behind.transactions.unknown.reason
    assert behind.safe == 9 - DEFAULT_LOOKBACK_IDS, "the default lookback applies"
    standby.run("SELECT pg_wal_replay_pause()")
    assert eventually(lambda: standby.ask("SELECT pg_get_wal_replay_pause_state()") == [("paused",)])
    primary.run("INSERT INTO t DEFAULT VALUES")
    ahead = judge(primary)
    assert ahead.safe == 10
    table = standby.table("t")
    schema = table.discover(cursor=None, known=Known(), spark=no_spark).schema
    assert schema is not None
    with pytest.raises(SourceUnavailable, match="replayed less of the log"):
        table.read(spark, schema, None, [WHOLE], {}, horizon=ahead)
    moved = replace(ahead.history, place=judge(standby).transactions.place)

    def look(history: CursorHistory) -> Horizon | None:
        return table.discover(cursor="id", known=Known(), spark=no_spark, lookback=Lookback(history)).horizon

    with pytest.raises(SourceUnavailable, match=r"replayed less .* than the one that was looked at before"):
        look(moved)
    kept = look(replace(moved, wal="0/0"))
    assert kept is not None
    assert kept.clock_went_back_to is None, "a replica that is behind is no clock that was put back"
    assert look(replace(moved, wal="FFFF/0", wal_clock=0)) is not None, "the primary was built anew"
    standby.run("SELECT pg_wal_replay_resume()")
    assert eventually(lambda: standby.ask(f"SELECT pg_last_wal_replay_lsn() >= '{moved.wal}'") == [(True,)])
    assert look(moved) is not None
    reading = table.read(spark, schema, None, [WHOLE], {}, horizon=behind)
    assert reading.frame.count() >= 9
    reading.close()
