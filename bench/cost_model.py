"""How long a backfill of one table takes, from what its parts cost. Nothing is run here: `cost_works.py` measures.

python bench/cost_model.py        the tables of docs/scaling.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hakiri_dagster.orchestration.assets import chunks_per_run

Launched = Literal["apply", "ui"]

CHUNKS_PER_PASS = 128


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds, on two cores with everything on them. Rows are TPC-H's lineitem: 16 columns, 120 bytes."""

    start: float = 6.0
    """Of an `apply` and its Spark."""
    launch: float = 5.0
    """Of a run in a process of its own, as the UI launches it."""
    run: float = 0.4
    """Of a run: Dagster, a look at the table without its chunks, Spark's job."""
    reading: float = 0.5
    """Of a pass after a run's first."""
    chunk: float = 0.027
    """Claim, transaction, audit DB, Dagster's event."""
    look: float = 35e-6
    """Of a run at its table, for each chunk that the table has."""
    row_read: float = 0.8e-6
    """Of one core of Spark's workers."""
    row_copied: float = 1.1e-6
    """Of one connection of the publisher."""


@dataclass(frozen=True, slots=True)
class Backfill:
    """`cores`: of Spark's workers. `connections`: `backfill.parallelism` of a table without a key."""

    chunks: int
    rows_a_chunk: int
    cores: int = 2
    connections: int = 2
    launched: Launched = "apply"
    chunks_a_run: int | None = None
    """Over how many there are."""

    def runs(self) -> Iterator[int]:
        """The chunks of each."""
        size = self.chunks_a_run or chunks_per_run(self.chunks)
        for start in range(0, self.chunks, size):
            yield min(size, self.chunks - start)


@dataclass(frozen=True, slots=True)
class Estimate:
    starting: float = 0.0
    looking: float = 0.0
    reading: float = 0.0
    publishing: float = 0.0

    @property
    def seconds(self) -> float:
        return self.starting + self.looking + self.reading + self.publishing


def estimate(costs: Costs, work: Backfill) -> Estimate:
    """Runs of one table follow each other, and so do the passes of a run."""
    look = costs.look * work.chunks
    told = Estimate(costs.start if work.launched == "apply" else 0.0, look)  # `apply` has looked before its first run
    for chunks in work.runs():
        starting = costs.run + (costs.launch if work.launched == "ui" else 0.0)
        told = replace(told, starting=told.starting + starting, looking=told.looking + look)
        for number, start in enumerate(range(0, chunks, CHUNKS_PER_PASS)):
            told = _passed(costs, work, told, min(CHUNKS_PER_PASS, chunks - start), again=number > 0)
    return told


def _passed(costs: Costs, work: Backfill, told: Estimate, chunks: int, *, again: bool) -> Estimate:
    """The first chunks are copied while the workers still read; the others when these are done."""
    connections = min(work.connections, chunks)
    read = costs.row_read * work.rows_a_chunk * chunks / work.cores + (costs.reading if again else 0.0)
    copied = costs.row_copied * work.rows_a_chunk * chunks / connections
    meanwhile = min(read, copied * connections / chunks)
    publishing = copied - meanwhile + costs.chunk * chunks
    return replace(told, reading=told.reading + read, publishing=told.publishing + publishing)


def table(costs: Costs, works: Sequence[tuple[str, Backfill]]) -> Iterator[str]:
    yield "| backfill | runs | starting | looking | reading | publishing | together |"
    yield "|---|---|---|---|---|---|---|"
    for name, work in works:
        told = estimate(costs, work)
        parts = (told.starting, told.looking, told.reading, told.publishing)
        shares = " | ".join(f"{part / told.seconds:.0%}" for part in parts)
        yield f"| {name} | {len(list(work.runs())):,} | {shares} | {_written(told.seconds)} |"


def _written(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


BY_CHUNKS = [(f"{n:,} chunks of 100 rows", Backfill(n, 100)) for n in (100, 1_000, 10_000, 100_000)]
BY_ROWS = [(f"1,000 chunks of {n:,} rows", Backfill(1_000, n)) for n in (1_000, 100_000, 1_000_000)]
BY_CORES = [
    (f"the same with {cores} cores, {streams} connections", Backfill(1_000, 10**6, cores, streams))
    for cores, streams in ((8, 2), (8, 8), (32, 8))
]
BY_LAUNCH = [
    ("100,000 chunks of 100 rows, from the UI", Backfill(100_000, 100, launched="ui")),
    ("the same by `apply`, were there 100 chunks in each run", Backfill(100_000, 100, chunks_a_run=100)),
]

if __name__ == "__main__":
    print("\n".join(table(Costs(), [*BY_CHUNKS, *BY_ROWS, *BY_CORES, *BY_LAUNCH])))
