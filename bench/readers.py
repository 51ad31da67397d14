"""Readers at work while something is loaded: how long their reads took, and how long the locks they waited for."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from reference import Warehouse

_WAIT = re.compile(
    r"^(\S+ \S+) \S+ \[\d+\] .*process \d+ (acquired|still waiting for) \w+ on relation .* after ([\d.]+) ms"
)
_TOLD = {"log_lock_waits": "on", "deadlock_timeout": "1ms"}
"""For the readers' sessions alone: a load waits by the server's deadlock_timeout."""


@dataclass
class Reads:
    """`waits` are in milliseconds, of readers, for a lock on a table; known once the block has ended."""

    count: int = 0
    slowest_ms: float = 0
    waits: list[float] = field(default_factory=list)
    exchange_seconds: float = 0
    """From the first time that a reader waited for the exchange to the last."""


@contextmanager
def reading(warehouse: Warehouse, statements: str, clients: int) -> Iterator[Reads]:
    """`statements` are a pgbench script that each client runs in a loop. A read that fails ends the benchmark."""
    reads = Reads()
    with tempfile.TemporaryDirectory() as folder, _lock_waits_told(warehouse, reads):
        script = Path(folder) / "read.sql"
        script.write_text(statements)
        Path(folder).chmod(0o755)
        process = warehouse.pgbench(
            "-n", "-c", str(clients), "-j", "2", "-T", "3600", "-f", str(script), "-l", "--log-prefix", f"{folder}/log",
            settings=_TOLD,
        )  # fmt: skip
        try:
            yield reads
        finally:
            failed = process.poll()
            process.terminate()  # a script's background job has its children ignore an interrupt
            process.wait()
        if failed is not None:
            raise SystemExit(f"a reader failed: pgbench ended with {failed}; its message is above")
        for log in Path(folder).glob("log*"):
            with log.open() as lines:
                whole = (line.split() for line in lines if line.endswith("\n"))
                for _client, _number, microseconds, *_ in whole:
                    reads.count += 1
                    reads.slowest_ms = max(reads.slowest_ms, int(microseconds) / 1000)


@contextmanager
def _lock_waits_told(warehouse: Warehouse, reads: Reads) -> Iterator[None]:
    begins = warehouse.log.stat().st_size
    yield
    moments: list[datetime] = []
    for line in warehouse.log.read_text(errors="replace")[begins:].splitlines():
        found = _WAIT.match(line)
        if found is None:
            continue
        moment, outcome, milliseconds = found.groups()
        moments.append(datetime.fromisoformat(moment))
        if outcome == "acquired":
            reads.waits.append(float(milliseconds))
    if moments:
        reads.exchange_seconds = (max(moments) - min(moments)).total_seconds()
