"""What a run tells of its chunks, one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hakiri_dagster.destinations.contract import LedgerEntry, Target
from hakiri_dagster.errors import ErrorKind, HakiriError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.hooks_run import HookRun
from hakiri_dagster.pipeline.outcomes import Outcome
from hakiri_dagster.pipeline.set_aside import SetAside
from hakiri_dagster.planning.phases import Phase
from hakiri_dagster.planning.plan import RereadStretch
from hakiri_dagster.planning.rewind import RewoundChunk
from hakiri_dagster.quality.profile import TableProfile


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """Rows that are in the destination and not yet visible. `publish` makes them so, and tells the audit DB. `phase`:
    the table's when the load was planned. `reread`: what the next load reads again of the table."""

    table: Table
    key: str
    target: Target
    rows: int
    seconds: float
    hooks: tuple[HookRun, ...]
    profile: TableProfile | None
    rewound: RewoundChunk | None
    phase: Phase
    reread: RereadStretch | None
    publish: Callable[[], PublishedChunk | FailedChunk]


@dataclass(frozen=True, slots=True)
class PublishedChunk:
    """`aside` and `outcomes` are of the try that was published: a publish may be tried again, and prepared anew.
    `replaces` are earlier loads of which it has replaced rows."""

    key: str
    entry: LedgerEntry
    aside: SetAside
    outcomes: tuple[Outcome, ...]
    wait_ms: int | None = None
    """For permits of its budgets; None where it has none."""
    replaces: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SkippedChunk:
    """`published`: nothing was due, the rows are there. `held`: another run holds the chunk, or one before it."""

    key: str
    reason: str
    published: bool
    held: bool = False


@dataclass(frozen=True, slots=True)
class FailedChunk:
    """`aside` is None where the rows were not read to their end."""

    key: str
    error: HakiriError
    outcomes: tuple[Outcome, ...] = ()
    aside: SetAside | None = None

    @property
    def error_kind(self) -> ErrorKind:
        return self.error.kind


ChunkStep = PreparedChunk | SkippedChunk | FailedChunk | HookRun
