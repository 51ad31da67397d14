"""A plan as text. Reads the very stages that `apply` executes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, assert_never

from hakiri_dagster.cli.open_transactions import transaction_document
from hakiri_dagster.planning.backfill_hint import BackfillHint
from hakiri_dagster.planning.plan import (
    AdoptLoads,
    CarryOver,
    ChangeTarget,
    Limits,
    LoadChunks,
    ProjectPlan,
    Refuse,
    RereadStretch,
    RunHooks,
    Stage,
    TablePlan,
)
from hakiri_dagster.planning.rewind import RewoundChunk

_SHOWN_KEYS = 3


def explain(plan: ProjectPlan) -> str:
    if plan.is_converged:
        told = [f"{t.pipeline_id}/{t.table}: {text}" for t in plan.tables for text in _gone(t)]
        return "\n".join(["Nothing to do: every table is converged.", *told, *_of_ticks(plan)])
    limited = [*_overall(plan), *(line for limits in plan.limits for line in _limits(limits)), *_of_ticks(plan)]
    return "\n".join([*limited, *(line for table in plan.tables for line in _table(table))])


def _overall(plan: ProjectPlan) -> Iterator[str]:
    if plan.max_parallel_chunks is not None:
        yield f"at most {plan.max_parallel_chunks} pass(es) at once, over all pipelines (max_parallel_chunks)"


def _limits(limits: Limits) -> Iterator[str]:
    shared = "of all workers together"
    if limits.rate_budget is not None:
        yield f"{limits.pipeline_id}: at most {limits.rate_budget} requests to the source, {shared} (rate_budget)"
    if limits.destination_writes_per_sec is not None:
        blocks = f"{limits.destination_writes_per_sec}/s blocks of rows to the destination"
        yield f"{limits.pipeline_id}: at most {blocks}, {shared} (destination_writes_per_sec)"


def _of_ticks(plan: ProjectPlan) -> Iterator[str]:
    for limits in plan.limits:
        if (looks := limits.slowed_looks) is not None:
            yield (
                f"{limits.pipeline_id}: looked at every {_minutes(looks.every)} instead of every "
                f"{_minutes(looks.wished)}: a look sends {looks.requests} requests, and looks spend a quarter of "
                "the rate_budget at most"
            )
    yield from _started_by(plan)


def _minutes(time: timedelta) -> str:
    return f"{time.total_seconds() / 60:.3g} min"


def _started_by(plan: ProjectPlan) -> Iterator[str]:
    for one in plan.started_by:
        for trigger in one.triggers:
            yield f"{one.pipeline_id}: started by {trigger}"


def _table(table: TablePlan) -> list[str]:
    new = " (new)" if table.is_new else ""
    phase = "" if table.error is not None or not table.chunks.total else f", {table.phase}"
    head = f"{table.pipeline_id}/{table.table} → {table.target} [{table.mode}{phase}]{new}"
    lines = list(_cursor(table.hint))
    lines += [line for stage in table.stages for line in _stage(stage)]
    lines += _reread(table.reread)
    lines += _owed_gaps(table)
    if table.error is not None:
        lines.append(f"! {table.error}")
    if table.waiting:
        lines.append(
            f"~ {len(table.waiting)} chunk(s) wait for transactions at the source to end: {some(table.waiting)}"
        )
    if table.verdict == "nothing":
        lines.append("= nothing to do")
    lines += [f"warning: {warning}" for warning in table.warnings]
    lines += _wiped(table)
    return [head, *(f"  {line}" for line in lines)]


def _owed_gaps(table: TablePlan) -> Iterator[str]:
    """Tell chunks that another target has from those that are lost."""
    by_target: dict[str | None, list[str]] = {}
    for gap in table.gaps:
        if gap.owed:
            by_target.setdefault(gap.published_to, []).append(gap.key)
    for target, keys in by_target.items():
        if target is None:
            yield f"  {len(keys)} of them published before, of which the ledger knows nothing any more: {some(keys)}"
        else:
            yield f"  {len(keys)} of them were published to {target} before, and their rows stay there: {some(keys)}"


def _reread(reread: RereadStretch | None) -> list[str]:
    """Only what transactions hold back: a lag is declared, and nothing to be said of each time."""
    if reread is None or reread.oldest is None:
        return []
    began = "all rows" if reread.begins is None else f"rows from {reread.begins} on"
    more = f" and {len(reread.because_of) - 1} more" if len(reread.because_of) > 1 else ""
    return [f"  {began} are read again by the load after: {reread.oldest.description}{more} may still add some"]


def _cursor(hint: BackfillHint | None) -> Iterator[str]:
    """What is not said of every cursor."""
    if hint is None or hint.kind == "monotonic":
        return
    keys = (f"{len(key.values)} of {key.column} ({some(key.values)})" for key in hint.partition_keys)
    yield ": ".join([f"cursor of the kind {hint.kind}", *keys])


def _gone(table: TablePlan) -> list[str]:
    """What is to be said of a table that owes nothing."""
    return [*(f"warning: {warning}" for warning in table.warnings), *_wiped(table)]


def _wiped(table: TablePlan) -> list[str]:
    if not table.not_shown:
        return []
    return [
        f"? {len(table.not_shown)} chunk(s) are published, and Dagster does not show them: {some(table.not_shown)}; "
        "the table's next load reports them, and under `hakiri serve` the planner within a minute"
    ]


def _stage(stage: Stage) -> Iterator[str]:
    match stage:
        case ChangeTarget(description):
            yield f"~ {description}"
        case CarryOver(keys):
            yield f"= {len(keys)} chunk(s) are published already under the earlier plan: {some(keys)}"
        case LoadChunks(keys, rows, rewound):
            estimate = "" if rows is None else f", about {rows:,} rows"
            yield f"+ load {len(keys)} chunk(s): {some(keys)}{estimate}"
            yield from _rewound(rewound)
        case RunHooks(hooks):
            yield f"+ run {len(hooks)} post-hook(s) that published loads owe: {'; '.join(hooks)}"
        case AdoptLoads(publisher, chunks):
            yield f"= adopt {chunks} chunk(s) that were published as {publisher} (load.adopt)"
            yield "  then what is due is planned by what they hold, and loaded"
        case Refuse(reason):
            yield f"! refused: {reason}"
        case _:
            assert_never(stage)


def _rewound(chunks: Sequence[RewoundChunk]) -> Iterator[str]:
    by_rewind: dict[tuple[int, str], list[str]] = {}
    for chunk in chunks:
        by_rewind.setdefault((chunk.rewind_id, chunk.reason), []).append(chunk.key)
    for (_, reason), keys in by_rewind.items():
        yield f"  {len(keys)} of them rewound: {reason} ({some(keys)})"


def some(keys: Sequence[str]) -> str:
    if len(keys) <= _SHOWN_KEYS:
        return ", ".join(keys)
    return f"{keys[0]} … {keys[-1]}"


def document(plan: ProjectPlan) -> dict[str, Any]:
    """`plan --json`, one entry a pipeline, as `apply --json` has."""
    pipelines: dict[str, list[dict[str, Any]]] = {}
    for table in plan.tables:
        pipelines.setdefault(table.pipeline_id, []).append(_table_document(table))
    limits = {one.pipeline_id: _limits_document(one) for one in plan.limits}
    triggers = {one.pipeline_id: list(one.triggers) for one in plan.started_by}
    return {
        "converged": plan.is_converged,
        "max_parallel_chunks": plan.max_parallel_chunks,
        "pipelines": [
            {
                "pipeline_id": pipeline_id,
                "limits": limits.get(pipeline_id, {}),
                "triggers": triggers.get(pipeline_id, []),
                "tables": tables,
            }
            for pipeline_id, tables in pipelines.items()
        ],
    }


def _limits_document(limits: Limits) -> dict[str, Any]:
    return {
        "rate_budget": limits.rate_budget,
        "destination_writes_per_sec": limits.destination_writes_per_sec,
        "parallelism": limits.parallelism,
        "looks_every_seconds": None if (looks := limits.slowed_looks) is None else round(looks.every.total_seconds()),
    }


def _table_document(table: TablePlan) -> dict[str, Any]:
    loads = [stage for stage in table.stages if isinstance(stage, LoadChunks)]
    return {
        "table": table.table,
        "target": table.target,
        "mode": table.mode,
        "new": table.is_new,
        "verdict": table.verdict,
        "cursor_kind": None if table.hint is None else table.hint.kind,
        "parts": {} if table.hint is None else {key.column: list(key.values) for key in table.hint.partition_keys},
        "phase": table.phase,
        "chunks": {
            "due": list(table.loads),
            "done": table.chunks.done,
            "pending": table.chunks.pending,
            "failed": table.chunks.failed,
            "running": table.chunks.running,
            "total": table.chunks.total,
        },
        "reread": None if table.reread is None else _reread_document(table.reread),
        "rewound": [_rewound_document(chunk) for stage in loads for chunk in stage.rewound],
        "estimated_rows": loads[0].estimated_rows if loads else 0,
        "schema_changes": [stage.description for stage in table.stages if isinstance(stage, ChangeTarget)],
        "gaps": [
            {"chunk": gap.key, "load_id": gap.load_id, "owed": gap.owed, "published_to": gap.published_to}
            for gap in table.gaps
        ],
        "not_shown": list(table.not_shown),
        "waiting": list(table.waiting),
        "adopts": [{"publisher": one.publisher, "chunks": one.chunks} for one in table.adoptions],
        "hooks_owed": list(table.hooks),
        "refused": list(table.refusals),
        "warnings": list(table.warnings),
        "error": table.error,
    }


def _reread_document(reread: RereadStretch) -> dict[str, Any]:
    return {
        "from": reread.begins,
        "newest": reread.newest,
        "because_of": [transaction_document(one) for one in reread.because_of],
    }


def _rewound_document(chunk: RewoundChunk) -> dict[str, Any]:
    return {
        "chunk": chunk.key,
        "rewind": chunk.rewind_id,
        "reason": chunk.reason,
        "rewound_by": chunk.asked_by,
        "rewound_at": chunk.asked_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "load_ids": list(chunk.load_ids),
    }
