"""A backfill of 312 months that is killed again and again goes on where it was: no month is published twice.

Its audit DB is on a PostgreSQL server of its own, which is killed like everything else; its machine starts it again.
`HAKIRI_SOAK_KILLS` says how often, `HAKIRI_SOAK_SEED` repeats a run. `HAKIRI_SOAK_WORKERS` says how many applies are
kept going side by side, each a process with a JVM of its own.
"""

from __future__ import annotations

import os
import time
from random import Random

import psycopg

from hakiri_dagster.engine.embedded_postgres import Server, hold
from tests.acceptance.command_line import Done, ProjectFolder, Running, eventually
from tests.acceptance.conftest import NewProject
from tests.acceptance.victims import Killer

MONTHS = [f"{year}-{month:02}" for year in range(2000, 2026) for month in range(1, 13)]
ROWS_A_MONTH = 5
SEEDS_CRASH = 247
MOST_KILLS = 50
AUDIT = "audit"
AUDIT_SERVER = "audit-server"
_LOOK_SECONDS = 0.01


def test_a_backfill_that_crashes_at_chunk_247_resumes_at_248_and_others_do_likewise(new_project: NewProject) -> None:
    kills = min(int(os.environ.get("HAKIRI_SOAK_KILLS", "2")), MOST_KILLS)
    seed = os.environ.get("HAKIRI_SOAK_SEED") or str(Random().randrange(1_000_000))
    workers = int(os.environ.get("HAKIRI_SOAK_WORKERS", "1"))
    print(f"\nbackfill: {workers} worker(s), {kills} kills, HAKIRI_SOAK_SEED={seed}")  # noqa: T201  # how to repeat it
    project = new_project("backfill")
    with hold(project.root / AUDIT_SERVER) as audit_server, audit_server.kept_running():
        backfill = Backfill(project, audit_server, Random(seed), workers)
        backfill.begin()
        for moment in backfill.moments(kills - 1):
            backfill.killed_when(moment)
        backfill.crashed_at(SEEDS_CRASH)
        backfill.end()


class Backfill:
    def __init__(self, project: ProjectFolder, audit_server: Server, random: Random, workers: int) -> None:
        self.project = project
        self.audit_server = audit_server
        self.random = random
        self.killer = Killer(project, random, project.root / AUDIT_SERVER)
        self.workers = workers
        self.applies: list[Running] = []

    def begin(self) -> None:
        rows = (f"{n * ROWS_A_MONTH + r},{month}-{5 + r:02}" for n, month in enumerate(MONTHS) for r in range(5))
        self.audit_server.ensure_database(AUDIT)
        settings = f'[project]\nname = "soak"\n[audit]\nurl = "{self.audit_server.url(AUDIT)}"\n'
        self.project.file("manifests/hakiri.toml", settings)
        self.project.file("data/months.csv", "\n".join(["id,at", *rows]) + "\n")
        files = {"connector": "files", "config": {"path": "data", "format": "csv"}}
        tables = [{"name": "months", "incremental": "at", "load": {"mode": "append"}}]
        self.project.pipeline({"id": "soak", "source": files, "tables": tables})

    def moments(self, count: int) -> list[int]:
        """By how many months are published. They come in order, so that each comes up."""
        return sorted(self.random.sample(range(1, SEEDS_CRASH), count))

    def killed_when(self, moment: int) -> None:
        self._going_until(moment)
        time.sleep(self.random.uniform(0, 0.1))
        victim = self.killer.kill_any(self.random.choice(self.applies))
        if victim == "everything":
            self._all_are_dead()
        print(f"{victim} killed at {moment}", flush=True)  # noqa: T201

    def crashed_at(self, moment: int) -> None:
        self._going_until(moment)
        self.killer.kill("everything", self.applies[0])
        self._all_are_dead()
        published = {key for (key,) in self.project.rows("SELECT chunk_key FROM hakiri.ledger")}
        again = self.project.hakiri("apply", "--json")
        assert again.code == 0, again
        assert _done(again) == len(MONTHS) - len(published), "what was published is not loaded again"

    def _all_are_dead(self) -> None:
        for apply in self.applies:
            apply.communicate()
        self.applies = []

    def _going_until(self, moment: int) -> None:
        """So many months are published, and somebody is at work: what has ended is started again, one at a time."""
        while True:
            self.applies = [apply for apply in self.applies if self._goes_on(apply)]
            if self.applies and self._published() >= moment:
                return
            if len(self.applies) < self.workers:
                self.applies.append(self.project.start("apply", "--json"))
            time.sleep(_LOOK_SECONDS * self.workers)

    def _goes_on(self, apply: Running) -> bool:
        if apply.poll() is None:
            return True
        out, err = apply.communicate()
        well = apply.returncode == 0
        assert not (well and self.workers == 1), f"it ended well before all was loaded: {out}{err}"
        return False

    def _published(self) -> int:
        """As far as the audit DB knows."""
        done = "SELECT count(*) FROM hakiri.pipeline_chunks WHERE status = 'done'"
        while True:
            try:
                with psycopg.connect(self.audit_server.url(AUDIT)) as connection:
                    return int(connection.execute(done).fetchall()[0][0])
            except psycopg.errors.UndefinedTable:
                return 0
            except psycopg.OperationalError:  # it was killed, and is being started
                time.sleep(_LOOK_SECONDS)

    def end(self) -> None:
        ids = self.project.rows("SELECT id FROM public.months ORDER BY 1")
        assert ids == [(number,) for number in range(len(MONTHS) * ROWS_A_MONTH)]
        loads = self.project.rows("SELECT chunk_key, count(*) FROM hakiri.ledger GROUP BY 1 ORDER BY 1")
        assert loads == [(month, 1) for month in MONTHS]
        eventually(lambda: not self.project.processes(), within=30)
        self.project.assert_no_process_is_left()
        assert list(self.project.state.glob("candidates/*/*/*")) == []
        relations = "SELECT tablename FROM pg_tables WHERE schemaname IN ('public', 'hakiri')"
        assert not [name for (name,) in self.project.rows(relations) if "stag" in name or "attempt" in name]


def _done(done: Done) -> int:
    return int(done.tables()["months"]["chunks"]["done"])
