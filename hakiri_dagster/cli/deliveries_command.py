"""`hakiri deliveries`: what has reached the triggers of pipelines, and what became of it, from the audit DB alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TypedDict

from rich.markup import escape
from rich.table import Table as Grid

from hakiri_dagster.audit.database import open_audit_view
from hakiri_dagster.audit.deliveries import Delivery, DeliverySource, DeliveryState
from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.opening import chosen_pipelines, opened_project
from hakiri_dagster.cli.screen import grid, screen


class DeliveryDocument(TypedDict):
    number: int
    pipeline_id: str
    source: DeliverySource
    delivery_id: str
    received_at: str
    body_bytes: int
    body_sha256: str
    state: DeliveryState
    started_at: str | None
    ended_at: str | None
    run_ids: list[str]
    error: str | None


def deliveries(root: Path, pipeline_id: str | None, limit: int, as_json: bool) -> int:
    project = opened_project(root)
    ids = [pipeline.id for pipeline in chosen_pipelines(project, [pipeline_id] if pipeline_id else [])]
    with open_audit_view(project.audit_url, project.state_dir) as audit:
        found = audit.deliveries.newest(ids, limit)
    if as_json:
        print_json({"deliveries": [document(delivery) for delivery in found]})
    else:
        screen().print(_grid(found) if found else "No delivery.")
    return 0


def document(delivery: Delivery) -> DeliveryDocument:
    return DeliveryDocument(
        number=delivery.number,
        pipeline_id=delivery.pipeline_id,
        source=delivery.source,
        delivery_id=delivery.delivery_id,
        received_at=_told(delivery.received_at),
        body_bytes=delivery.body_bytes,
        body_sha256=delivery.body_sha256,
        state=delivery.state,
        started_at=_told(delivery.started_at) if delivery.started_at else None,
        ended_at=_told(delivery.ended_at) if delivery.ended_at else None,
        run_ids=list(delivery.run_ids),
        error=delivery.error,
    )


def _grid(found: Sequence[Delivery]) -> Grid:
    made = grid(("received", "pipeline", "source", "delivery", "state", "runs"), ("bytes",))
    for delivery in found:
        made.add_row(
            f"{delivery.received_at:%Y-%m-%d %H:%M:%S}",
            delivery.pipeline_id,
            delivery.source,
            escape(delivery.delivery_id),
            escape(delivery.state if delivery.error is None else f"{delivery.state}: {delivery.error}"),
            ", ".join(run_id[:8] for run_id in delivery.run_ids),
            f"{delivery.body_bytes:,}",
        )
    return made


def _told(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
