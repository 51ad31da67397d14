"""What many or small things cost, from cold and when there is nothing to do; and memory."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import psutil
from drive import Engine, apply_cold, idle_ticks, load_location, plan_many
from interface import served
from measuring import Bench, Row, absolute, applied_warm, limited
from memory import PeakMemory
from pipelines import COLD, LINEITEM, MANY_CHUNKS, SMALL_CHUNKS
from projects import SCHEMA
from psycopg import sql
from tpch import small_files


def cold(bench: Bench) -> Iterator[Row]:
    def once() -> float:
        with bench.project(COLD) as project:
            list(small_files(project.folder / "work", 1, 1000))
            return apply_cold(project.folder, project.env).seconds

    seconds = statistics.median(bench.seconds("hakiri apply", once) for _ in range(bench.repeats))
    yield absolute("`hakiri apply` from cold, two tables of 1,000 rows, whole process", seconds, 12)


def converged(bench: Bench) -> Iterator[Row]:
    with bench.project(COLD) as project:
        list(small_files(project.folder / "work", 1, 1000))
        apply_cold(project.folder, project.env)
        java = _ProcessesNamed("java")
        with java:
            seconds = statistics.median(
                bench.seconds("hakiri apply", lambda: apply_cold(project.folder, project.env).seconds)
                for _ in range(bench.repeats)
            )
    row = absolute("nothing to do: `apply` on a converged project", seconds, 3)
    yield row
    started = "started" if java.seen else "not started"
    yield Row("the same: Spark", started, "", started, "not started", not java.seen)


def small_chunks(bench: Bench) -> Iterator[Row]:
    count = 200

    def once() -> float:
        with bench.project(SMALL_CHUNKS) as project:
            list(small_files(project.folder / "work", count, 100))
            return applied_warm(project, count * 100).seconds

    seconds = statistics.median(bench.seconds("hakiri", once) for _ in range(bench.repeats)) / count
    yield absolute("200 chunks of 100 rows, warm, each", seconds, 0.4)


def many_chunks(bench: Bench) -> Iterator[Row]:
    count = 100_000
    with bench.project(MANY_CHUNKS) as project:
        bench.warehouse.forget("origin")
        bench.warehouse.run(sql.SQL("CREATE SCHEMA origin"))
        rows = sql.SQL("CREATE TABLE origin.many AS SELECT id FROM generate_series(0, {}, 10) AS id")
        bench.warehouse.run(rows.format(10 * count - 10))
        bench.warehouse.run(sql.SQL("ALTER TABLE origin.many ADD PRIMARY KEY (id)"))
        first, again = (plan_many(project.folder, project.env) for _ in range(2))
        bench.warehouse.forget("origin")
    if first["chunks"] != count:
        raise SystemExit(f"{first['chunks']} chunks were planned, {count} expected")
    yield absolute(f"plan {count:,} chunks, and store the plan", first["seconds"], 3)
    yield absolute("plan them again, nothing has changed", again["seconds"], 3)
    yield limited("peak memory of both", max(first["megabytes"], again["megabytes"]), "MB", 300)


def ui_backfill(bench: Bench) -> Iterator[Row]:
    """Launched as the UI launches it; processes, Spark's session and Dagster's runs included."""
    count, asset = 100, ("work", "many")

    def once() -> float:
        with bench.project(SMALL_CHUNKS) as project:
            list(small_files(project.folder / "work", count, 100))
            with served(project.folder, project.env) as interface:
                seconds = interface.backfill_seconds(asset, interface.partitions(asset, count))
            if (stored := bench.warehouse.count(SCHEMA, "many")) != count * 100:
                raise SystemExit(f"{stored} rows are stored, {count * 100} expected")
            return seconds

    seconds = statistics.median(bench.seconds("backfill", once) for _ in range(bench.repeats)) / count
    yield absolute(f"a UI backfill of {count} partitions of 100 rows, each", seconds, 0.8)


def many_tables(bench: Bench) -> Iterator[Row]:
    names = "".join(
        f'\n[[pipeline]]\nid = "p{p}"\nsource = {{ connector = "files", config = {{ path = "p{p}" }} }}\ntables = ['
        + ", ".join(f'{{ name = "t{p}_{t}", path = "p{p}/t{t}.parquet" }}' for t in range(10))
        + "]\n"
        for p in range(50)
    )
    with bench.project(names) as project:
        seconds = statistics.median(
            bench.seconds("code location", lambda: load_location(project.folder, project.env))
            for _ in range(bench.repeats)
        )
    yield absolute("a project of 500 tables: load the code location", seconds, 3)


def idle(bench: Bench) -> Iterator[Row]:
    """Sources of both kinds, planned before; one tick of each sensor, resources included."""
    count = 200
    names = "".join(_IDLE_FILES.format(n=n) if n % 2 else _IDLE_POSTGRES.format(n=n) for n in range(count))
    with bench.project(names) as project:
        bench.warehouse.forget("origin")
        bench.warehouse.run(sql.SQL("CREATE SCHEMA origin"))
        for n in range(0, count, 2):
            rows = sql.SQL(
                "CREATE TABLE origin.{} AS SELECT now() - i * interval '1 day' AS at FROM generate_series(0, 9) i"
            )
            bench.warehouse.run(rows.format(sql.Identifier(f"t{n}")))
        for n in range(1, count, 2):
            list(small_files(project.folder / f"p{n}", 3, 10))
        told = idle_ticks(project.folder, project.env)
        bench.warehouse.forget("origin")
    bench.told(f"{told}")
    seconds = sum(told["sensors"].values())
    yield absolute(f"one tick of every sensor, nothing to do, {count} pipelines", seconds, 1)
    title = "the planner, when looks at all sources are due: one tick"
    yield absolute(title, told["planner_with_looks_due"], 1)


_IDLE_FILES = """
[[pipeline]]
id = "p{n}"
source = {{ connector = "files", config = {{ path = "p{n}" }} }}
tables = [{{ name = "t{n}", path = "p{n}/*.parquet" }}]
triggers = [{{ type = "files" }}]
"""
_IDLE_POSTGRES = """
[[pipeline]]
id = "p{n}"
source = {{ connector = "postgres", config = {{ url = "${{BENCH_URL}}", schema = "origin" }} }}
incremental = "at"
schedule = "every 15m"
tables = ["t{n}"]
load = {{ mode = "append" }}
"""


def memory(bench: Bench) -> Iterator[Row]:
    peaks = {scale: _peak(bench, scale) for scale in (bench.scale, 5 * bench.scale)}
    for scale, peak in peaks.items():
        title = f"peak memory of all processes, lineitem → `truncate`, SF {scale:g}"
        yield Row(title, f"{peak:.2f} GB", "", f"{peak:.2f} GB", "3 GB", peak <= 3)
    small, large = peaks.values()
    apart = abs(large - small) / min(large, small)
    yield Row("the two, apart by", f"{apart:.0%}", "", f"{apart:.0%}", "15%", apart <= 0.15)


def _peak(bench: Bench, scale: float) -> float:
    source = bench.at_scale(scale).parquet("lineitem")
    with bench.project(LINEITEM) as project:
        project.link(source, "work/lineitem.parquet")
        with (
            Engine(project.folder, project.env) as engine,
            PeakMemory(lambda: (engine.pid, bench.warehouse.postmaster)) as peak,
        ):
            engine.apply("work")
    gigabytes = peak.bytes / 1e9
    bench.told(f"SF {scale:g}: {gigabytes:.2f} GB")
    return gigabytes


class _ProcessesNamed(PeakMemory):
    """Whether one appeared among our descendants meanwhile."""

    def __init__(self, name: str) -> None:
        super().__init__(lambda: self._look(name))
        self.seen = False

    def _look(self, name: str) -> tuple[int, ...]:
        family = psutil.Process().children(recursive=True)
        self.seen = self.seen or any(name in _name(process) for process in family)
        return ()


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""
