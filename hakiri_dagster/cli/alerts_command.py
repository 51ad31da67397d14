"""`hakiri alerts`: what somebody should look at, from the audit DB alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from rich.markup import escape
from rich.table import Table as Grid

from hakiri_dagster.audit.alerts import AlertRecord
from hakiri_dagster.audit.database import open_audit, open_audit_view
from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.opening import chosen_pipeline, opened_project
from hakiri_dagster.cli.screen import grid, screen
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.tables import Project


class AlertDocument(TypedDict):
    id: int
    pipeline_id: str
    table: str
    kind: str
    subject: str
    severity: str
    message: str
    details: dict[str, object]
    run_id: str | None
    raised_at: str
    last_seen: str
    times: int
    acknowledged_at: str | None
    passed_on_at: str | None


def alerts(
    root: Path, pipeline_id: str | None, *, as_json: bool, acknowledged_too: bool, acknowledge: Sequence[int]
) -> int:
    project = opened_project(root)
    chosen = None if pipeline_id is None else [chosen_pipeline(project, pipeline_id).id]
    if acknowledge:
        _acknowledge(project, acknowledge)
    with open_audit_view(project.audit_url, project.state_dir) as audit:
        found = audit.alerts.newest(chosen, acknowledged=acknowledged_too)
    if as_json:
        print_json({"alerts": [document(alert) for alert in found]})
    else:
        screen().print(_grid(found) if found else "No alert is open." if not acknowledged_too else "No alert.")
    return 0


def _acknowledge(project: Project, numbers: Sequence[int]) -> None:
    with open_audit(project.audit_url, project.state_dir) as audit:
        known = audit.alerts.acknowledge(numbers)
    unknown = sorted(set(numbers) - set(known))
    if unknown:
        raise UsageError(
            f"there is no alert {', '.join(map(str, unknown))}", hint="`hakiri alerts --all` shows all that there were"
        )


def document(alert: AlertRecord) -> AlertDocument:
    return AlertDocument(
        id=alert.id,
        pipeline_id=alert.pipeline_id,
        table=alert.table,
        kind=alert.kind,
        subject=alert.subject,
        severity=alert.severity,
        message=alert.message,
        details=dict(alert.details),
        run_id=alert.run_id,
        raised_at=alert.raised_at.isoformat(timespec="seconds"),
        last_seen=alert.last_seen.isoformat(timespec="seconds"),
        times=alert.times,
        acknowledged_at=alert.acknowledged_at.isoformat(timespec="seconds") if alert.acknowledged_at else None,
        passed_on_at=alert.passed_on_at.isoformat(timespec="seconds") if alert.passed_on_at else None,
    )


def _grid(found: Sequence[AlertRecord]) -> Grid:
    made = grid(("id", "last seen", "table", "alert", "message"), ("times",))
    for alert in found:
        closed = "" if alert.acknowledged_at is None else " (acknowledged)"
        made.add_row(
            str(alert.id),
            f"{alert.last_seen:%Y-%m-%d %H:%M}",
            escape("/".join(filter(None, (alert.pipeline_id, alert.table)))),
            f"{alert.severity}: {alert.kind}{closed}",
            escape(alert.message),
            f"{alert.times:,}",
        )
    return made
