"""`hakiri status`: the seed's pipeline.status document, from the audit DB alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from hakiri_dagster.audit.database import AuditView, open_audit_view
from hakiri_dagster.audit.deliveries import DeliveryNumbers
from hakiri_dagster.audit.status import StatusDocument
from hakiri_dagster.cli.documents import print_json, print_json_line
from hakiri_dagster.cli.open_transactions import transaction_document
from hakiri_dagster.cli.opening import chosen_pipelines, opened_project
from hakiri_dagster.cli.screen import grid, screen
from hakiri_dagster.cli.watching import shown_in_place, watch
from hakiri_dagster.connectors.budgets import request_budget
from hakiri_dagster.engine.process_identity import is_dead
from hakiri_dagster.manifest.tables import Pipeline, Project
from hakiri_dagster.manifest.trigger_spec import told
from hakiri_dagster.pipeline.cursor_note import shown_position
from hakiri_dagster.planning.phases import slas_of

_SHOWN_REASONS: Final = 10
_SHOWN_KEYS: Final = 5


class PipelineStatus(StatusDocument):
    """`deliveries` is null for a pipeline that nothing reaches from outside."""

    triggers: list[str]
    deliveries: DeliveryNumbers | None
    rereads: list[dict[str, Any]]


def status(root: Path, pipeline_id: str | None, as_json: bool, watched: bool) -> int:
    project = opened_project(root)
    pipelines = chosen_pipelines(project, [pipeline_id] if pipeline_id else [])
    look = partial(_documents, project, pipelines)
    if not watched:
        documents = look()
        if as_json:
            print_json(_told(documents, pipeline_id))
        else:
            screen().print(_shown(documents))
    elif as_json:
        watch(look, lambda documents: print_json_line(_told(documents, pipeline_id)))
    elif sys.stdout.isatty():
        with shown_in_place() as show:
            watch(look, lambda documents: show(_shown(documents)))
    else:
        watch(look, lambda documents: screen().print(_shown(documents)))
    return 0


def _documents(project: Project, pipelines: Sequence[Pipeline]) -> list[PipelineStatus]:
    """Opened anew at each look: a project's first load makes the audit DB."""
    with open_audit_view(project.audit_url, project.state_dir) as audit:
        return [_document(audit, pipeline) for pipeline in pipelines]


def _document(audit: AuditView, pipeline: Pipeline) -> PipelineStatus:
    return PipelineStatus(
        **audit.status(pipeline.id, request_budget(pipeline), slas_of(pipeline), holder_is_dead=is_dead),
        triggers=[told(trigger, pipeline.id) for trigger in pipeline.triggers],
        deliveries=audit.deliveries.numbers(pipeline.id) if pipeline.receives else None,
        rereads=list(_rereads(audit, pipeline)),
    )


def _rereads(audit: AuditView, pipeline: Pipeline) -> Iterator[dict[str, Any]]:
    """List the tables whose next load reads a stretch again because of transactions that were open at the last one."""
    for table, history in sorted(audit.cursor_history.of_pipeline(pipeline.id).items()):
        reread = history.reread
        if reread is not None and reread.because_of:
            begins = (
                None if reread.lower is None or history.kind is None else shown_position(history.kind, reread.lower)
            )
            because_of = [transaction_document(one) for one in reread.because_of]
            yield {"table": table, "from": begins, "because_of": because_of}


def _told(documents: Sequence[PipelineStatus], pipeline_id: str | None) -> Any:
    return documents[0] if pipeline_id else {"pipelines": documents}


def _shown(documents: Sequence[PipelineStatus]) -> RenderableType:
    errors = [
        f"! {document['pipeline_id']}/{one['table']}, {one['at']}: {one['error']}"
        for document in documents
        for one in document["errors"]
    ]
    rewinds = [
        f"{document['pipeline_id']}/{one['table']}: {one['chunks']} chunk(s) are to be loaded again, of "
        f"{one['asked_from']} to {one['asked_to']}: {one['reason']} ({one['rewound_by']}, {one['rewound_at']})"
        for document in documents
        for one in document["rewinds"]
    ]
    failed = [line for document in documents for line in _failed(document)]
    rereads = [
        f"{document['pipeline_id']}/{one['table']}: the next load reads again from {one['from'] or 'the beginning'} "
        f"on, as {len(one['because_of'])} transaction(s) were open at the source"
        for document in documents
        for one in document["rereads"]
    ]
    return Group(_grid(documents), *map(Text, (*rewinds, *rereads, *errors, *failed)))


def _failed(document: PipelineStatus) -> Iterator[str]:
    """One alone is told already, as the error of its table. Many may have failed for the same reason."""
    chunks: dict[tuple[str, str], list[str]] = {}
    for one in document["failed_chunks"]:
        chunks.setdefault((one["table"], one["error"].splitlines()[0] if one["error"] else ""), []).append(one["chunk"])
    told = {one["table"] for one in document["errors"]}
    if document["chunks"]["failed"] < 2 and all(table in told for table, _ in chunks):
        return
    for (table, error), keys in list(chunks.items())[:_SHOWN_REASONS]:
        more = "" if len(keys) <= _SHOWN_KEYS else f" and {len(keys) - _SHOWN_KEYS:,} more"
        yield f"! {document['pipeline_id']}/{table}, failed: {', '.join(keys[:_SHOWN_KEYS])}{more}: {error}"
    if len(chunks) > _SHOWN_REASONS or document["chunks"]["failed"] > len(document["failed_chunks"]):
        yield f"  more of them: hakiri status {document['pipeline_id']} --json, under `failed_chunks`"


def _grid(documents: Sequence[PipelineStatus]) -> Grid:
    triggered = any(document["deliveries"] for document in documents)
    numbers = ("done", "running", "pending", "failed", "rows/s", "seconds left", "budget")
    made = grid(("pipeline", "phase"), (*numbers, *(["deliveries"] if triggered else [])))
    for document in documents:
        chunks = document["chunks"]
        eta = document["eta_seconds"]
        made.add_row(
            document["pipeline_id"],
            document["phase"],
            *(f"{chunks[name]:,}" for name in ("done", "running", "pending", "failed")),
            f"{document['throughput']['rows_per_sec']:,}",
            "" if eta is None else f"{eta:,}",
            _budget(document),
            *([_deliveries(document)] if triggered else []),
        )
    return made


def _budget(document: PipelineStatus) -> str:
    return (
        ""
        if document["rate_budget"] is None
        else f"{document['rate_budget_consumed_pct']} % of {document['rate_budget']}"
    )


def _deliveries(document: PipelineStatus) -> str:
    """By which triggers, and those that wait; what is over is told by `hakiri deliveries`."""
    numbers = document["deliveries"]
    if numbers is None:
        return ""
    waiting = [
        f"{count:,} {state}"
        for state, count in (("pending", numbers["pending"]), ("started", numbers["started"]))
        if count
    ]
    kinds = dict.fromkeys(trigger.partition(":")[0] for trigger in document["triggers"])
    return f"{', '.join(kinds)}: {', '.join(waiting) or 'none waits'}"
