"""What the parts of a backfill cost, and whether the model that is made of them tells how long a real one takes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager

from cost_model import Backfill, Costs, estimate
from drive import Engine, plan_cost, run_cold
from measuring import Bench, Row, limited
from pipelines import MANY_CHUNKS
from projects import Project
from psycopg import sql

_WIDTH = 100
_FEW, _MANY, _TRIED = 10, 100, 1_000


def cost_model(bench: Bench) -> Iterator[Row]:
    few, many = (_seconds(bench, chunks) for chunks in (_FEW, _MANY))
    looks = _looks(bench, 10_000)
    chunk = max(0.0, (many - few) / (_MANY - _FEW))
    look = looks[10_000] / 10_000
    costs = Costs(start=0.0, run=max(0.0, few - _FEW * chunk), chunk=chunk, look=look)
    bench.told(str(costs))
    yield Row("a run, beside its chunks", f"{costs.run:.2f} s", "", f"{costs.run:.2f} s", "", None)
    yield Row("a chunk of 100 rows", f"{1e3 * chunk:.0f} ms", "", f"{1e3 * chunk:.0f} ms", "", None)
    yield Row("a look at a table, for each of its chunks", f"{1e6 * look:.0f} µs", "", f"{1e6 * look:.0f} µs", "", None)
    told, seconds = estimate(costs, Backfill(_TRIED, _WIDTH)).seconds, _seconds(bench, _TRIED)
    apart = max(told, seconds) / min(told, seconds)
    yield limited(f"{_TRIED:,} chunks: {seconds:.1f} s, the model tells {told:.1f} s; apart by", apart, "x", 1.5)


def _seconds(bench: Bench, chunks: int) -> float:
    """Of an `apply` that loads them all, warm."""

    def once() -> float:
        with _project(bench, chunks, _WIDTH) as project, Engine(project.folder, project.env) as engine:
            engine.apply("warm-up")
            applied = engine.apply("work")
            if applied.chunks != chunks:
                raise SystemExit(f"{applied.chunks} chunks were loaded, {chunks} expected")
            return applied.seconds

    return statistics.median(bench.seconds(f"{chunks} chunks", once) for _ in range(bench.repeats))


def _looks(bench: Bench, chunks: int) -> dict[int, float]:
    with _project(bench, chunks, 1) as project:
        run_cold(project.folder, project.env, "work", f"id-{0:010}..{_WIDTH:010}")
        return plan_cost(project.folder, project.env, [chunks])


@contextmanager
def _project(bench: Bench, chunks: int, rows: int) -> Iterator[Project]:
    """A table in PostgreSQL, with so many rows in each of its windows of ids."""
    with bench.project(MANY_CHUNKS.replace("window = 10", f"window = {_WIDTH}")) as project:
        bench.warehouse.forget("origin")
        bench.warehouse.run(sql.SQL("CREATE SCHEMA origin"))
        ids = sql.SQL("CREATE TABLE origin.many AS SELECT id FROM generate_series(0, {}, {}) AS id")
        bench.warehouse.run(ids.format(chunks * _WIDTH - 1, _WIDTH // rows))
        bench.warehouse.run(sql.SQL("ALTER TABLE origin.many ADD PRIMARY KEY (id)"))
        yield project
        bench.warehouse.forget("origin")
