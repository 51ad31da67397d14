"""What a run tells of its chunks, one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hakiri_dagster.destinations.contract import LedgerEntry, Target
from hakiri_dagster.errors import ErrorKind, HakiriError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.hooks_run import HookRun
from hakiri_dagster.pipeline.rule_outcomes import RuleOutcome


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """Rows that are in the destination and not yet visible. `publish` makes them so, and tells the audit DB."""

    table: Table
    key: str
    target: Target
    rows: int
    quarantined: int
    bad_sample: str | None
    seconds: float
    hooks: tuple[HookRun, ...]
    outcomes: tuple[RuleOutcome, ...]
    publish: Callable[[], LedgerEntry]


@dataclass(frozen=True, slots=True)
class SkippedChunk:
    """`published`: nothing was due, the rows are there. Otherwise another run holds the chunk."""

    key: str
    reason: str
    published: bool


@dataclass(frozen=True, slots=True)
class FailedChunk:
    key: str
    error: HakiriError
    outcomes: tuple[RuleOutcome, ...] = ()

    @property
    def error_kind(self) -> ErrorKind:
        return self.error.kind
