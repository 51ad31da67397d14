"""`hakiri status`: the seed's pipeline.status document, from the audit DB alone."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table as Grid

from hakiri_dagster.audit.database import open_audit_view
from hakiri_dagster.audit.status import StatusDocument
from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.opening import chosen_pipelines, opened_project
from hakiri_dagster.cli.screen import grid, screen


def status(root: Path, pipeline_id: str | None, as_json: bool) -> int:
    project = opened_project(root)
    pipelines = chosen_pipelines(project, [pipeline_id] if pipeline_id else [])
    with open_audit_view(project.audit_url, project.state_dir) as audit:
        documents = [audit.status(p.id, p.tables[0].backfill.rate_budget) for p in pipelines]
    if as_json:
        print_json(documents[0] if pipeline_id else {"pipelines": documents})
    else:
        screen().print(_grid(documents))
    return 0


def _grid(documents: list[StatusDocument]) -> Grid:
    made = grid(("pipeline", "phase"), ("done", "running", "pending", "failed", "rows/s", "seconds left"))
    for document in documents:
        chunks = document["chunks"]
        eta = document["eta_seconds"]
        made.add_row(
            document["pipeline_id"],
            document["phase"],
            *(f"{chunks[name]:,}" for name in ("done", "running", "pending", "failed")),
            f"{document['throughput']['rows_per_sec']:,}",
            "" if eta is None else f"{eta:,}",
        )
    return made
