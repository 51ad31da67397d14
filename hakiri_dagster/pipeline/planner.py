"""Surveys as plans: the typed stages that `plan` prints and `apply` executes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hakiri_dagster.connectors.budgets import request_budget
from hakiri_dagster.errors import DestinationError, HakiriError, SchemaIncompatible
from hakiri_dagster.manifest.tables import Pipeline, Table
from hakiri_dagster.manifest.trigger_spec import told
from hakiri_dagster.pipeline.cursor_note import shown_position
from hakiri_dagster.pipeline.look_interval import look_interval
from hakiri_dagster.pipeline.shapes import parallelism_of
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.unread_parts import told_unread
from hakiri_dagster.planning.gaps import Gap
from hakiri_dagster.planning.plan import (
    AdoptLoads,
    CarryOver,
    ChangeTarget,
    ChunkCounts,
    Limits,
    LoadChunks,
    ProjectPlan,
    Refuse,
    RereadStretch,
    RunHooks,
    Stage,
    StartedBy,
    TablePlan,
)


@dataclass(frozen=True, slots=True)
class Planned:
    plan: ProjectPlan
    surveys: tuple[tuple[Table, Survey], ...]
    failures: tuple[tuple[Table, HakiriError], ...] = ()

    def of(self, table: Table) -> TablePlan:
        return next(
            entry for entry in self.plan.tables if (entry.pipeline_id, entry.table) == (table.pipeline_id, table.name)
        )


def table_plan(survey: Survey, gaps: tuple[Gap, ...] = (), told: tuple[str, ...] = ()) -> TablePlan:
    """`told`: what is to be said of the gaps."""
    table = survey.table
    return TablePlan(
        pipeline_id=table.pipeline_id,
        table=table.name,
        target=f"{table.target_schema}.{table.target_name}",
        mode=table.mode,
        is_new=survey.target is None,
        stages=tuple(_stages(survey)),
        chunks=_counts(survey),
        hint=survey.source.hint if survey.shape == "cursor" else None,
        parallelism=parallelism_of(table, survey.source.hint),
        phase=survey.phase,
        warnings=(*survey.warnings, *told_unread(survey), *told),
        gaps=gaps,
        waiting=survey.due.waiting,
        reread=reread_stretch(survey),
    )


def reread_stretch(survey: Survey) -> RereadStretch | None:
    reread, kind, extent = survey.reread, survey.discovery.cursor_kind, survey.discovery.extent
    if reread is None or kind is None or extent is None or extent.newest is None:
        return None
    begins = None if reread.lower is None else shown_position(kind, reread.lower)
    return RereadStretch(begins, shown_position(kind, extent.newest), reread.because_of)


def limits_of(pipeline: Pipeline) -> Limits:
    budget = request_budget(pipeline)
    return Limits(
        pipeline.id,
        rate_budget=None if budget is None else str(budget),
        destination_writes_per_sec=pipeline.backfill.destination_writes_per_sec,
        parallelism=pipeline.backfill.parallelism,
        looks=look_interval(pipeline),
    )


def started_by(pipeline: Pipeline) -> StartedBy:
    return StartedBy(pipeline.id, tuple(told(trigger, pipeline.id) for trigger in pipeline.triggers))


def failed_plan(table: Table, error: HakiriError) -> TablePlan:
    return TablePlan(
        pipeline_id=table.pipeline_id,
        table=table.name,
        target=f"{table.target_schema}.{table.target_name}",
        mode=table.mode,
        is_new=False,
        error=str(error),
    )


def refused_plan(table: Table, error: HakiriError) -> TablePlan:
    """Told without asking source or destination."""
    reason = error.what if error.hint is None else f"{error.what}; {error.hint}"
    return replace(failed_plan(table, error), error=None, stages=(Refuse(reason),))


def refuse_what_cannot_load(survey: Survey) -> None:
    if survey.refusals:
        kind = SchemaIncompatible if survey.refused_changes else DestinationError
        raise kind("; ".join(survey.refusals), where=survey.table.label)


def _stages(survey: Survey) -> Sequence[Stage]:
    refusals = [Refuse(reason) for reason in survey.refusals]
    changes = [ChangeTarget(change.description) for change in survey.changes if not change.refused]
    carried = [CarryOver(survey.due.carried_over)] if survey.due.carried_over and survey.plan_changed else []
    rewound = tuple(survey.rewound[key] for key in survey.due_keys if key in survey.rewound)
    adopted = [AdoptLoads(one.label, one.chunks) for one in survey.ownership.adopted]
    if adopted:
        return [*refusals, *adopted]
    loads = [LoadChunks(survey.due_keys, _estimate(survey), rewound)] if survey.due_keys else []
    hooks = [RunHooks(survey.owed_hooks)] if survey.owed_hooks else []
    # A change of the target comes with the load that needs it; alone it is not worth a run.
    return [*refusals, *(changes if loads else []), *carried, *loads, *hooks]


def _estimate(survey: Survey) -> int | None:
    """The source's rows, by the share of its chunks that is due: a guess, good enough to see the size of the work."""
    rows = survey.discovery.rows_estimate
    if rows is None or not survey.chunks:
        return rows
    return round(rows * len(survey.due_keys) / len(survey.chunks))


def _counts(survey: Survey) -> ChunkCounts:
    after = {state.key: state.status for state in (*survey.states, *survey.due.states)}
    counts = Counter(after.get(chunk.key, "pending") for chunk in survey.chunks)
    owed = {due.key for due in survey.due.slices}
    reopened = sum(1 for key in owed if after.get(key) == "done")
    return ChunkCounts(
        done=counts["done"] - reopened,
        pending=counts["pending"] + reopened,
        failed=counts["failed"],
        running=counts["running"],
    )
