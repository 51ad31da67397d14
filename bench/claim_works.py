"""What claiming costs when many workers share one audit DB on PostgreSQL."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
from claim_worker import OF
from measuring import Bench, Row, at_least

from hakiri_dagster.audit.database import open_audit
from hakiri_dagster.planning.chunks import CursorRange, Interval
from hakiri_dagster.planning.states import ChunkState

_DATABASE = "bench_audit"
_WORKERS = 16
_SCRIPT = Path(__file__).with_name("claim_worker.py")


def claims(bench: Bench) -> Iterator[Row]:
    bench.server.ensure_database(_DATABASE)
    for title, limit, chunks, size, *places in (
        (f"{_WORKERS} workers claim one chunk at a time", 500, 8_000, 1),
        ("the same with a place a run, and told that it is done", None, 4_000, 1, "places"),
        ("the same, 100 chunks a run, as in Dagster", None, 16_000, 100, "places"),
    ):
        rates = [_claims_a_second(bench, chunks, size, *places) for _ in range(bench.repeats)]
        yield at_least(title, statistics.median(rates), "claims/s", limit)


def _claims_a_second(bench: Bench, chunks: int, size: int, *places: str) -> float:
    url = bench.server.url(_DATABASE)
    _plan_anew(url, chunks)
    bench.warehouse.settle()
    told = _work(url, str(size), *places)
    keys = [key for one in told for key in one["keys"]]
    if len(keys) != chunks or len(set(keys)) != chunks:
        raise SystemExit(f"{chunks} chunks were claimed {len(keys)} times, {len(set(keys))} of them at all")
    rate = chunks / (max(one["last"] for one in told) - min(one["began"] for one in told))
    bench.told(f"{chunks} chunks, {size} a run: {rate:.0f} claims/s")
    return rate


def _plan_anew(url: str, chunks: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS hakiri CASCADE")
    with open_audit(url, Path()) as audit:
        bounds = [CursorRange(Interval(number, number + 1)) for number in range(chunks)]
        audit.chunks.save(*OF, [ChunkState(f"{number:06}", of) for number, of in enumerate(bounds)])


def _work(url: str, *arguments: str) -> list[Any]:
    """All begin when the last one is ready."""
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, _SCRIPT, url, str(number), str(_WORKERS), *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(_WORKERS)
        ]
        for worker in workers:
            assert worker.stdout is not None
            worker.stdout.readline()
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        return [json.loads(worker.communicate()[0]) for worker in workers]
