"""What would change, as typed stages. `plan` prints them, `apply` executes them: one list, so they cannot drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hakiri_dagster.manifest.load_spec import LoadMode
from hakiri_dagster.planning.backfill_hint import BackfillHint
from hakiri_dagster.planning.gaps import Gap
from hakiri_dagster.planning.horizon import OpenTransaction
from hakiri_dagster.planning.looks import LookInterval
from hakiri_dagster.planning.phases import Phase
from hakiri_dagster.planning.rewind import RewoundChunk


@dataclass(frozen=True, slots=True)
class ChangeTarget:
    """`create table raw.orders`, `add column note text`."""

    description: str


@dataclass(frozen=True, slots=True)
class CarryOver:
    """Chunks of a new plan whose rows an older plan has published already."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadChunks:
    """Chunks that are due. `estimated_rows` is None where no cheap estimate exists. `rewound`: those among them that
    somebody asked for again."""

    keys: tuple[str, ...]
    estimated_rows: int | None
    rewound: tuple[RewoundChunk, ...] = ()


@dataclass(frozen=True, slots=True)
class RunHooks:
    """Post-hooks that published loads still owe."""

    hooks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Something in the way of the load, that only a change of the manifest or of the target can clear."""

    reason: str


@dataclass(frozen=True, slots=True)
class AdoptLoads:
    """Published chunks of another pipeline, table or project that count as the table's own from now on (`load.adopt`).
    What is due then is known when they are taken over."""

    publisher: str
    chunks: int


Stage = ChangeTarget | CarryOver | LoadChunks | RunHooks | AdoptLoads | Refuse


@dataclass(frozen=True, slots=True)
class RereadStretch:
    """The stretch of the cursor that the next load reads again, in the cursor's own terms, and the transactions because
    of which it does. `begins` is None where nothing of the table is known to be complete."""

    begins: str | int | None
    newest: str | int
    because_of: tuple[OpenTransaction, ...] = ()

    @property
    def oldest(self) -> OpenTransaction | None:
        return min(self.because_of, key=lambda one: one.began_at or 0, default=None)


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    done: int = 0
    pending: int = 0
    failed: int = 0
    running: int = 0

    @property
    def total(self) -> int:
        return self.done + self.pending + self.failed + self.running


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The stages of one table. `hint`: of one with a cursor, how its history can be pulled. `not_shown`: chunks that
    are published, of which Dagster shows nothing. `waiting`: chunks that wait for transactions at the source. `error`
    is set when the source or the destination could not even be asked."""

    pipeline_id: str
    table: str
    target: str
    mode: LoadMode
    is_new: bool
    stages: tuple[Stage, ...] = ()
    chunks: ChunkCounts = ChunkCounts()
    hint: BackfillHint | None = None
    parallelism: int = 1
    phase: Phase = "planning"
    warnings: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    not_shown: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    reread: RereadStretch | None = None
    error: str | None = None

    @property
    def loads(self) -> tuple[str, ...]:
        return tuple(key for stage in self.stages if isinstance(stage, LoadChunks) for key in stage.keys)

    @property
    def hooks(self) -> tuple[str, ...]:
        return tuple(name for stage in self.stages if isinstance(stage, RunHooks) for name in stage.hooks)

    @property
    def adoptions(self) -> tuple[AdoptLoads, ...]:
        return tuple(stage for stage in self.stages if isinstance(stage, AdoptLoads))

    @property
    def refusals(self) -> tuple[str, ...]:
        return tuple(stage.reason for stage in self.stages if isinstance(stage, Refuse))

    @property
    def needs_a_run(self) -> bool:
        return bool(self.loads or self.hooks) and not self.refusals

    @property
    def verdict(self) -> Literal["load", "hooks", "wait", "nothing", "refused", "error"]:
        if self.error is not None:
            return "error"
        if self.refusals:
            return "refused"
        if self.hooks and not self.loads:
            return "hooks"
        if self.stages:
            return "load"
        return "wait" if self.waiting else "nothing"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a pipeline's loads may cost at once; None: as much as they take."""

    pipeline_id: str
    rate_budget: str | None = None
    destination_writes_per_sec: int | None = None
    parallelism: int = 1
    looks: LookInterval | None = None

    @property
    def slowed_looks(self) -> LookInterval | None:
        """Those of the planner, where the budget makes them rarer than they would be."""
        return self.looks if self.looks is not None and self.looks.is_slowed else None


@dataclass(frozen=True, slots=True)
class StartedBy:
    """What starts a pipeline beside its schedule, in words."""

    pipeline_id: str
    triggers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProjectPlan:
    tables: tuple[TablePlan, ...]
    limits: tuple[Limits, ...] = ()
    max_parallel_chunks: int | None = None
    started_by: tuple[StartedBy, ...] = ()

    @property
    def is_converged(self) -> bool:
        return all(table.verdict == "nothing" for table in self.tables)
