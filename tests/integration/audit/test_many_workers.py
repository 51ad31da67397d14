"""Sixteen workers in four processes on one audit DB. One of the processes is killed, and the clocks disagree."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.planning.chunks import CursorRange, Interval
from hakiri_dagster.planning.states import ChunkState
from tests.integration.audit import many_workers
from tests.integration.audit.many_workers import OF

CHUNKS = 120
WORKERS_A_PROCESS = 4
DEAD = "the killed process"


class Process:
    def __init__(self, url: str | None, folder: Path, hours: float, *holds: str) -> None:
        arguments = (url or "", str(folder), str(WORKERS_A_PROCESS), str(hours), *holds)
        self.popen = subprocess.Popen(
            [sys.executable, many_workers.__file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []

    def says(self, word: str) -> None:
        assert self.popen.stdout is not None
        while (line := self.popen.stdout.readline().strip()) != word:
            assert line, self.popen.communicate()
            self.lines.append(line)

    def go(self) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write("go\n")
        self.popen.stdin.flush()

    def end(self) -> None:
        out, err = self.popen.communicate(timeout=120)
        assert (self.popen.returncode, err) == (0, "")
        self.lines += out.split("\n")[:-1]


@contextmanager
def processes(url: str | None, folder: Path, hours: tuple[float, ...]) -> Iterator[tuple[Process, list[Process]]]:
    """The first holds chunks until it is killed. No matter how it ends, none is left."""
    with ExitStack() as stack:
        started = [Process(url, folder, 0, "holds"), *(Process(url, folder, ahead) for ahead in hours)]
        for process in started:
            stack.enter_context(process.popen)
            stack.callback(process.popen.kill)
        for process in started:
            process.says("ready")
        yield started[0], started[1:]


def test_sixteen_workers_claim_each_chunk_once_and_take_over_from_the_dead_alone(
    audit: AuditDb, audit_url: str | None, tmp_path: Path
) -> None:
    """Clocks of hosts may disagree; a file is of one machine, which has one clock."""
    (tmp_path / "at-work").mkdir()
    bounds = [CursorRange(Interval(number, number + 1)) for number in range(CHUNKS)]
    audit.chunks.save(*OF, [ChunkState(f"c{number:03}", of) for number, of in enumerate(bounds)])
    with processes(audit_url, tmp_path, (2, -2, 0) if audit_url else (0, 0, 0)) as (victim, others):
        victim.go()
        victim.says("held")
        for process in others:
            process.go()
        victim.popen.kill()
        for process in others:
            process.end()
        everything = [json.loads(line) for process in (victim, *others) for line in process.lines]
    told = [(key, attempt, _whose(dead, victim)) for key, attempt, _, dead in everything]
    held = {json.loads(line)[0] for line in victim.lines}
    assert set(Counter((key, attempt) for key, attempt, _ in told).values()) == {1}
    assert {key for key, attempt, dead in told if attempt == 2 and dead == DEAD} == held
    assert len(told) == CHUNKS + len(held)
    states = audit.chunks.states(*OF)
    assert {state.status for state in states} == {"done"}
    assert Counter(state.attempts for state in states) == {1: CHUNKS - len(held), 2: len(held)}
    assert len({pid for _, _, pid, _ in everything}) == 4


def _whose(dead: str | None, victim: Process) -> str | None:
    if dead is None:
        return None
    return DEAD if dead.split("|")[2] == str(victim.popen.pid) else dead
