"""Kill what can be killed at any moment of an apply: the next one starts at once and ends with the right rows.

`HAKIRI_SOAK_KILLS` says how often, `HAKIRI_SOAK_SEED` repeats a run.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

import psycopg
import pytest

from hakiri_dagster.engine.embedded_postgres import Server, hold
from tests.acceptance.changing_source import ChangingSource
from tests.acceptance.command_line import Done, ProjectFolder, eventually
from tests.acceptance.conftest import NewProject
from tests.acceptance.victims import FATAL, Killer

NOTHING = "nothing"
BOUND_SECONDS = 90.0
"""An apply after a kill. The leases of the dead run until ten minutes after it began."""

Relations = frozenset[tuple[str, str]]


@pytest.fixture
def source_url(postgres_server: Server) -> Iterator[str]:
    """On a server of its own, which nobody kills."""
    postgres_server.ensure_database("soak_source")
    yield postgres_server.url("soak_source")
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("DROP DATABASE soak_source WITH (FORCE)")


def test_killed_at_any_moment_the_next_apply_starts_at_once_and_converges(
    new_project: NewProject, source_url: str
) -> None:
    rounds = int(os.environ.get("HAKIRI_SOAK_KILLS", "3"))
    seed = os.environ.get("HAKIRI_SOAK_SEED") or str(Random().randrange(1_000_000))
    print(f"\nsoak: {rounds} kills, HAKIRI_SOAK_SEED={seed}")  # noqa: T201  # how to repeat it
    soak = Soak(new_project("soak"), source_url, Random(seed))
    soak.begin()
    killed = 0
    while killed < rounds:
        told = soak.round()
        killed += not told.startswith(NOTHING)  # an apply that ended before its moment does not count
        print(f"{killed:>4}/{rounds} {told}", flush=True)  # noqa: T201


@dataclass(frozen=True)
class HeldChunk:
    attempts: int
    leased_until: datetime


class Soak:
    def __init__(self, project: ProjectFolder, source_url: str, random: Random) -> None:
        self.project = project
        self.random = random
        self.killer = Killer(project, random)
        self.source = ChangingSource(project, source_url, random)
        self.relations: Relations = frozenset()
        self.start_seconds = self.load_seconds = 0.0

    def begin(self) -> None:
        """An undisturbed load: how long it takes, and which relations there are when nothing went wrong."""
        self.source.begin()
        process = self.project.start("apply", "--json")
        eventually(lambda: self._is_loading() or process.poll() is not None)
        self.start_seconds = time.monotonic() - process.began
        done = self.project.finish(process)
        assert done.code == 0, done
        self.load_seconds = done.seconds - self.start_seconds
        with self.project.database() as connection:
            self.relations = _relations(connection)
        self._check_rows()

    def round(self) -> str:
        changes = self.source.change()
        with ExitStack() as stack:
            kept = self.random.random() < 0.5
            if kept:  # somebody else uses the server, so it outlives the killed apply
                stack.enter_context(hold(self.project.state / "postgres"))
            told, killed = self._killed_apply()
            if killed is not None and killed.code == 0:  # it helped itself, so there is nothing left to do
                self._check_rows()
            held = self._held_chunks()
            again = self.project.hakiri("apply", "--json")
            assert again.code == 0, again
            assert again.seconds < BOUND_SECONDS
            self._check_taken_over(held)
            self._check_rows()
            if kept:
                self._check_backends()
        self._check_leftovers()
        left = _outcome(killed) if killed is not None else f"{len(held)} held"
        return f"{told}; {left}; {again.seconds:.1f} s to converge; {', '.join(changes)}{'; server kept' * kept}"

    def _killed_apply(self) -> tuple[str, Done | None]:
        """Answers how the apply ended, unless it was itself the victim."""
        process = self.project.start("apply", "--json")
        phase = self.random.choice(["at", "in the load at"])
        if phase == "at":
            moment = self.random.uniform(0, self.start_seconds + self.load_seconds)
        else:
            moment = self.random.uniform(0, self.load_seconds)
            eventually(lambda: self._is_loading() or process.poll() is not None)
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            victim: str = self.killer.kill_any(process)
        else:
            victim = NOTHING
        told = f"{victim} killed {phase} {moment:.1f} s"
        if victim in FATAL:
            process.communicate()
            return told, None
        done = self.project.finish(process)
        assert done.code in (0, 1), done
        return told, done

    def _is_loading(self) -> bool:
        return any(self._attempt_folders())

    def _attempt_folders(self) -> list[str]:
        return [str(path) for path in self.project.state.glob("candidates/*/*/attempt-*")]

    def _held_chunks(self) -> dict[tuple[str, str], HeldChunk]:
        query = "SELECT table_name, chunk_id, attempts, leased_until FROM pipeline_chunks WHERE status = 'running'"
        return {
            (table, key): HeldChunk(attempts, datetime.fromisoformat(until))
            for table, key, attempts, until in self._audit(query)
        }

    def _check_taken_over(self, held: dict[tuple[str, str], HeldChunk]) -> None:
        """By a new attempt that began while the dead one's lease still ran; or its rows turned out to be published."""
        query = "SELECT table_name, chunk_id, attempts, status, started_at, winning_attempt FROM pipeline_chunks"
        now = {(table, key): rest for table, key, *rest in self._audit(query)}
        for chunk, before in held.items():
            attempts, status, started_at, winner = now[chunk]
            assert status == "done", (chunk, status)
            if attempts > before.attempts:
                assert datetime.fromisoformat(started_at) < before.leased_until, chunk
                assert winner.endswith(f"/attempt-{attempts}")
        assert not self._held_chunks()

    def _audit(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.project.state / "audit.sqlite", timeout=30)) as connection:
            return connection.execute(query).fetchall()

    def _check_rows(self) -> None:
        with self.project.database() as connection:
            for target in ChangingSource.TARGETS:
                actual, expected = self.source.actual(connection, target), self.source.expected(target)
                lost, extra = expected - actual, actual - expected
                assert (lost + extra) == Counter(), (
                    f"{target}: {lost.total()} lost, {extra.total()} too many; "
                    f"e.g. {[*lost][:3]} lost, {[*extra][:3]} too many"
                )
            for target in ChangingSource.APPENDED:
                _check_ledger(connection, target)
            assert _relations(connection) == self.relations

    def _check_backends(self) -> None:
        with self.project.database("postgres") as connection:

            def rest() -> list[tuple[Any, ...]]:
                return connection.execute(
                    "SELECT application_name, state, query FROM pg_stat_activity"
                    " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
                ).fetchall()

            assert eventually(lambda: not rest(), within=5), rest()  # the end of a client is seen a moment later
            assert connection.execute("SELECT gid FROM pg_prepared_xacts").fetchall() == []

    def _check_leftovers(self) -> None:
        self.project.assert_no_process_is_left()
        assert self._attempt_folders() == []


def _outcome(done: Done) -> str:
    errors = [table["error"] for table in done.tables().values() if table["error"]] if done.out else [done.err]
    first = f" ({errors[0].strip().splitlines()[0][:120]})" if done.code else ""
    return f"exit {done.code} after {done.seconds:.1f} s{first}"


def _relations(connection: psycopg.Connection[Any]) -> Relations:
    query = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    return frozenset(connection.execute(query.encode()).fetchall())


def _check_ledger(connection: psycopg.Connection[Any], target: str) -> None:
    """Live rows belong to standing loads, and the newest load of a chunk is there whole: older ones may have lost
    rows to slices that replaced a part of them."""
    counted = connection.execute(f"SELECT _hakiri_load_id, count(*) FROM raw.{target} GROUP BY 1".encode())
    live = dict(counted.fetchall())
    standing = connection.execute(
        "SELECT load_id, chunk_key, rows FROM hakiri.ledger WHERE table_name = %s AND superseded_by IS NULL"
        " ORDER BY load_id",
        (target,),
    ).fetchall()
    loaded = {load_id: rows for load_id, _, rows in standing}
    newest = {key: load_id for load_id, key, _ in standing}
    assert live.keys() <= loaded.keys(), f"{target}: rows of loads that no longer stand"
    assert all(count <= loaded[load_id] for load_id, count in live.items()), f"{target}: a load is there twice"
    assert all(live.get(load_id, 0) == loaded[load_id] for load_id in newest.values()), f"{target}: a load lost rows"
