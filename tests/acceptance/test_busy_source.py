"""Loads back to back, killed now and then, from a source that is written to all the time: no row is lost or doubled.

`HAKIRI_SOAK_SEEDS` and `HAKIRI_SOAK_SECONDS` say how many workloads there are and how long each takes,
`HAKIRI_SOAK_SEED` repeats one.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from hakiri_dagster.engine.embedded_postgres import Server, hold
from tests.acceptance.command_line import ProjectFolder
from tests.acceptance.conftest import NewProject
from tests.acceptance.victims import Killer, Victim
from tests.busy_source import ADDED_TO, CHANGED, BusySource

WINDOW = {"window": "1m"}
"""So short that windows close while transactions are open."""
BY_TIME: dict[str, Any] = {"incremental": "updated_at", "primary_key": ["id"], "backfill": WINDOW}
TABLES: list[dict[str, Any]] = [
    {"name": "notes", "incremental": "created_at", "load": {"mode": "append"}},
    {"name": "logs", "incremental": "local_at", "load": {"mode": "append"}, "backfill": WINDOW},
    {"name": "events", "incremental": "id", "load": {"mode": "append"}, "backfill": {"window": 500}},
    {
        "name": "ticks",
        "load": {"mode": "incremental_watermark", "watermark_column": "id"},
        "backfill": {"window": 700},
    },
    {"name": "accounts", **BY_TIME, "load": {"mode": "upsert"}},
    {"name": "prices", **BY_TIME, "load": {"mode": "scd2"}},
]
COLUMNS = "id, created_at, updated_at, local_at, body"
BROKEN_HISTORIES = """
SELECT count(*) FROM (
    SELECT valid_from, valid_to, is_current, lead(valid_from) OVER (PARTITION BY id ORDER BY valid_from) AS next
    FROM prices) AS versions
WHERE (valid_to, is_current) IS DISTINCT FROM (next, next IS NULL)
"""
"""Versions that do not end where the next of the same row begins, or are not current though there is none."""


@pytest.fixture(scope="module")
def source_server(open_folder: Path) -> Iterator[Server]:
    """A server whose sessions may prepare transactions. Nobody kills it."""
    folder = open_folder / "busy"
    with hold(folder, durable=False) as server, psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET max_prepared_transactions = 64")
    with hold(folder, durable=False) as server:
        yield server


def test_source_and_target_are_equal_once_the_writers_have_stopped(
    new_project: NewProject, source_server: Server
) -> None:
    seconds = float(os.environ.get("HAKIRI_SOAK_SECONDS", "10"))
    first = os.environ.get("HAKIRI_SOAK_SEED")
    seeds = 1 if first else int(os.environ.get("HAKIRI_SOAK_SEEDS", "1"))
    for _ in range(seeds):
        seed = int(first) if first else Random().randrange(1_000_000)
        print(f"\nbusy source: {seconds:g} s, HAKIRI_SOAK_SEED={seed}", flush=True)  # noqa: T201  # how to repeat it
        source_server.ensure_database(f"busy_{seed}")
        source = BusySource(source_server.url(f"busy_{seed}"), seed, longest=min(10.0, seconds / 3))
        source.create()
        project = new_project(f"busy-{seed}")
        project.env = {"HAKIRI_TRANSACTION_WAIT": "1"}  # more loads a minute
        (project.root / "manifests/pipelines").mkdir(parents=True)
        manifest = {"id": "busy", "source": {"connector": "postgres", "config": {"url": source.url}}, "tables": TABLES}
        (project.root / "manifests/pipelines/busy.json").write_text(json.dumps(manifest))
        with source.under_load():
            told = load_back_to_back(project, Random(seed), seconds)
        last = project.hakiri("apply", "--json")
        assert last.code == 0, last
        assert differences(project, source) == {}
        print(f"{told}; {rows(source)} rows", flush=True)  # noqa: T201


def load_back_to_back(project: ProjectFolder, random: Random, seconds: float) -> str:
    """Half of the loads are left alone. Of the others some process is killed, if they are not done before."""
    ends, loads, killed = time.monotonic() + seconds, 0, list[Victim]()
    killer = Killer(project, random)
    while time.monotonic() < ends or not loads:
        apply = project.start("apply", "--json")
        loads += 1
        if random.random() < 0.5:
            done = project.finish(apply)
            assert done.code == 0, done
            continue
        with suppress(subprocess.TimeoutExpired):
            apply.communicate(timeout=random.uniform(2, 12))
        if apply.poll() is None:
            killed.append(killer.kill_any(apply))
        apply.communicate()
    return f"{loads} loads, killed: {', '.join(killed) or 'none'}"


def differences(project: ProjectFolder, source: BusySource) -> dict[str, tuple[int, int]]:
    """How many rows the target lacks, and how many it has too many, by table."""
    found = {}
    with psycopg.connect(source.url) as at_source, project.database() as at_target:
        for name in (*ADDED_TO, *CHANGED):
            current = " WHERE is_current" if name == "prices" else ""
            expected = Counter(at_source.execute(f"SELECT {COLUMNS} FROM {name}".encode()).fetchall())
            actual = Counter(at_target.execute(f"SELECT {COLUMNS} FROM {name}{current}".encode()).fetchall())
            if expected != actual:
                found[name] = ((expected - actual).total(), (actual - expected).total())
        (broken,) = at_target.execute(BROKEN_HISTORIES).fetchone() or (0,)
        if broken:
            found["versions of prices"] = (0, broken)
    return found


def rows(source: BusySource) -> int:
    with psycopg.connect(source.url) as connection:
        return sum(
            row[0]
            for name in (*ADDED_TO, *CHANGED)
            for row in connection.execute(f"SELECT count(*) FROM {name}".encode()).fetchall()
        )
