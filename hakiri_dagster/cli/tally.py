"""Counts what an invocation did, table by table: the numbers of `apply --json` and of the progress bars."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Pipeline, Table
from hakiri_dagster.security.secrets import redact

Status = Literal["success", "failed", "partial", "skipped"]
_WHY: Final = "`hakiri status` tells why each of them did"


@dataclass
class TableTally:
    planned: int = 0
    waiting: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    rows: int = 0
    quarantined: int = 0
    hooks: int = 0
    warnings: list[str] = field(default_factory=list)
    error: str | None = None
    """The first one."""
    seconds: float = 0.0

    def document(self, name: str) -> dict[str, Any]:
        return {
            "table": name,
            "chunks": {"done": self.done, "failed": self.failed, "skipped": self.skipped, "pending": self.pending},
            "rows": self.rows,
            "quarantined": self.quarantined,
            "hooks": self.hooks,
            "warnings": [redact(warning) for warning in self.warnings],
            "error": redact(self.told_error) if self.told_error else None,
            "duration_s": round(self.seconds, 3),
        }

    @property
    def pending(self) -> int:
        """What was planned and not even tried, and what waits. A load that went well may have found less to do than was
        planned."""
        untried = max(0, self.planned - self.done - self.failed - self.skipped) if self.broken else 0
        return self.waiting + untried

    @property
    def told_error(self) -> str | None:
        more = self.failed - 1
        return self.error if self.error is None or more < 1 else f"{self.error}\n{more:,} more chunk(s) failed: {_WHY}"

    @property
    def broken(self) -> bool:
        return self.failed > 0 or self.error is not None


class Tally:
    """An observer (`pipeline/way.py`) that adds up. Several tables may report at once."""

    def __init__(self, on_change: Callable[[Table], None] | None = None) -> None:
        self._lock = threading.Lock()
        self._tables: dict[str, TableTally] = {}
        self.on_change = on_change or (lambda _table: None)

    def of(self, table: Table) -> TableTally:
        with self._lock:
            return self._tables.setdefault(table.label, TableTally())

    def published(self, table: Table, key: str, *, rows: int, quarantined: int) -> None:
        tally = self.of(table)
        with self._lock:
            tally.done += 1
            tally.rows += rows
            tally.quarantined += quarantined
        self.on_change(table)

    def failed(self, table: Table, key: str, error: HakiriError) -> None:
        tally = self.of(table)
        with self._lock:
            tally.failed += 1
            tally.error = tally.error or f"chunk {key}: {error.told_within(table.label)}"
        self.on_change(table)

    def skipped(self, table: Table, key: str, reason: str) -> None:
        tally = self.of(table)
        with self._lock:
            tally.skipped += 1
            tally.warnings.append(f"chunk {key}: {reason}")
        self.on_change(table)

    def stopped(self, table: Table, error: HakiriError) -> None:
        tally = self.of(table)
        with self._lock:
            tally.error = str(error)

    def warned(self, table: Table, warning: str) -> None:
        tally = self.of(table)
        with self._lock:
            if warning not in tally.warnings:  # the plan may have said it
                tally.warnings.append(warning)

    def hook_ran(self, table: Table, name: str) -> None:
        tally = self.of(table)
        with self._lock:
            tally.hooks += 1

    def waited_for_engine(self, table: Table, seconds: float) -> None:
        tally = self.of(table)
        with self._lock:
            tally.seconds -= seconds

    def took(self, table: Table, seconds: float) -> None:
        tally = self.of(table)
        with self._lock:
            tally.seconds += seconds

    @property
    def tables(self) -> tuple[TableTally, ...]:
        with self._lock:
            return tuple(self._tables.values())

    @property
    def first_error(self) -> str | None:
        return next((table.told_error for table in self.tables if table.error is not None), None)

    @property
    def anything_broken(self) -> bool:
        return any(table.broken for table in self.tables)

    def document(self, pipelines: list[Pipeline]) -> dict[str, Any]:
        return {"pipelines": [self._pipeline(pipeline) for pipeline in pipelines]}

    def _pipeline(self, pipeline: Pipeline) -> dict[str, Any]:
        tallies = [(table.name, self._tables[table.label]) for table in pipeline.tables if table.label in self._tables]
        return {
            "pipeline_id": pipeline.id,
            "status": _status([tally for _, tally in tallies]),
            "tables": [tally.document(name) for name, tally in tallies],
        }


def _status(tallies: list[TableTally]) -> Status:
    if any(tally.broken for tally in tallies):
        return "partial" if any(tally.done for tally in tallies) else "failed"
    return "success" if any(tally.done or tally.hooks for tally in tallies) else "skipped"
