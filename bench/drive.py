"""Our side of the comparison: the only module here that calls the product.

`apply_cold` is the command line as a user types it. `Engine` is a process in which Spark already runs: it reads
pipeline ids from stdin, one a line, applies them, and answers one JSON line each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Applied:
    seconds: float
    rows: int
    chunks: int
    quarantined: int


def apply_cold(project: Path, env: Mapping[str, str]) -> Applied:
    hakiri = Path(sys.executable).parent / "hakiri"
    started = time.perf_counter()
    done = subprocess.run(
        [hakiri, "--project", project, "apply", "--json"],
        env=_environment(env),
        stdout=subprocess.PIPE,
        check=False,
    )
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        raise SystemExit(f"hakiri apply failed:\n{done.stdout.decode()}")
    return _applied(json.loads(done.stdout), seconds)


def load_location(project: Path, env: Mapping[str, str]) -> float:
    """Dagster's code location of the project, in a process of its own, as `dagster dev` would."""
    code = "from hakiri_dagster.definitions import defs; defs().get_repository_def()"
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], env=_environment(env, HAKIRI_PROJECT=str(project)), check=True)
    return time.perf_counter() - started


def plan_many(project: Path, env: Mapping[str, str]) -> Any:
    script = Path(__file__).with_name("plan_many.py")
    done = subprocess.run([sys.executable, script, project], env=_environment(env), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def idle_ticks(project: Path, env: Mapping[str, str]) -> Any:
    script = Path(__file__).with_name("idle_ticks.py")
    done = subprocess.run([sys.executable, script, project], env=_environment(env), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def read_json_seconds(reader: str, file: Path) -> float:
    """`reader`: hakiri, or spark."""
    script = Path(__file__).with_name("read_json.py")
    done = subprocess.run(
        [sys.executable, script, reader, file], env=_environment({}), stdout=subprocess.PIPE, check=True
    )
    seconds: float = json.loads(done.stdout.splitlines()[-1])["seconds"]
    return seconds


def run_cold(project: Path, env: Mapping[str, str], pipeline: str, chunk: str) -> None:
    hakiri = Path(sys.executable).parent / "hakiri"
    command = [hakiri, "--project", project, "run", pipeline, "--chunk", chunk]
    subprocess.run(command, env=_environment(env), stdout=subprocess.DEVNULL, check=True)


def plan_cost(project: Path, env: Mapping[str, str], published: Sequence[int]) -> dict[int, float]:
    """Seconds of a look at the table `many`, by how many of its chunks are published."""
    script = Path(__file__).with_name("plan_cost.py")
    command = [sys.executable, script, project, *map(str, published)]
    done = subprocess.run(command, env=_environment(env), stdout=subprocess.PIPE, check=True)
    return {int(count): seconds for count, seconds in json.loads(done.stdout).items()}


def _environment(env: Mapping[str, str], **more: str) -> dict[str, str]:
    """Python keeps its bytecode unless it is told not to; the first of several repeats writes it."""
    return {k: v for k, v in {**os.environ, **env, **more}.items() if k != "PYTHONDONTWRITEBYTECODE"}


class Engine:
    """A warm engine on one project."""

    def __init__(self, project: Path, env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, project],
            env=_environment(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_exc: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def apply(self, pipeline_id: str) -> Applied:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{pipeline_id}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the engine broke off while applying {pipeline_id}; its message is above")
        answer = json.loads(line)
        return _applied(answer["document"], answer["seconds"])


def _applied(document: Mapping[str, Any], seconds: float) -> Applied:
    tables = [table for pipeline in document["pipelines"] for table in pipeline["tables"]]
    errors = [table["error"] for table in tables if table["error"] or table["chunks"]["failed"]]
    if errors:
        raise SystemExit(f"the load failed: {errors}")
    rows, chunks, aside = (sum(counts) for counts in zip(*map(_counts, tables), strict=True))
    return Applied(seconds, rows, chunks, aside)


def _counts(table: Mapping[str, Any]) -> tuple[int, int, int]:
    return table["rows"], table["chunks"]["done"], table["quarantined"]


def _serve(project: Path) -> None:
    from hakiri_dagster.cli.apply_command import load_due
    from hakiri_dagster.cli.opening import chosen_pipeline, opened_project
    from hakiri_dagster.cli.tally import Tally
    from hakiri_dagster.pipeline.runtime import Runtime
    from hakiri_dagster.settings import Settings

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints must not end up among the answers
    opened = opened_project(project)
    with Runtime(opened, Settings.from_env()) as runtime:
        for line in sys.stdin:
            pipeline = chosen_pipeline(opened, line.strip())
            runtime.observer = tally = Tally()
            started = time.perf_counter()
            load_due(runtime, pipeline.tables, tally)
            seconds = time.perf_counter() - started
            print(json.dumps({"seconds": seconds, "document": tally.document([pipeline])}), file=answers, flush=True)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
