"""`hakiri status`: the seed's pipeline.status document, from the audit DB alone."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from hakiri_dagster.audit.database import open_audit_view
from hakiri_dagster.audit.status import StatusDocument
from hakiri_dagster.cli.opening import chosen_pipelines, opened_project


def status(root: Path, pipeline_id: str | None, as_json: bool) -> int:
    project = opened_project(root)
    pipelines = chosen_pipelines(project, [pipeline_id] if pipeline_id else [])
    with open_audit_view(project.audit_url, project.state_dir) as audit:
        documents = [audit.status(p.id, p.tables[0].backfill.rate_budget) for p in pipelines]
    if as_json:
        print(json.dumps(documents[0] if pipeline_id else {"pipelines": documents}, indent=2))
    else:
        Console(soft_wrap=True).print(_grid(documents))
    return 0


def _grid(documents: list[StatusDocument]) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    grid.add_column("pipeline")
    grid.add_column("phase")
    for title in ("done", "running", "pending", "failed", "rows/s", "seconds left"):
        grid.add_column(title, justify="right")
    for document in documents:
        chunks = document["chunks"]
        eta = document["eta_seconds"]
        grid.add_row(
            document["pipeline_id"],
            document["phase"],
            *(f"{chunks[name]:,}" for name in ("done", "running", "pending", "failed")),
            f"{document['throughput']['rows_per_sec']:,}",
            "" if eta is None else f"{eta:,}",
        )
    return grid
