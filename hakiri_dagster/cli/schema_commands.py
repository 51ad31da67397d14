"""`hakiri schema log` and `hakiri schema accept`: what sources have changed, and leave to follow what was refused."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table as Grid

from hakiri_dagster.audit.database import AuditDb, open_audit_view
from hakiri_dagster.audit.schema_log import Decided, SchemaEvent
from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.opening import chosen_pipeline, chosen_tables, opened_project
from hakiri_dagster.cli.screen import grid, screen
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.evolution import is_missed, told
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.schema_diff import Change
from hakiri_dagster.security.secrets import redact
from hakiri_dagster.settings import Settings


def log(root: Path, pipeline_id: str | None, table: str | None, as_json: bool) -> int:
    project = opened_project(root)
    if pipeline_id is None and table is not None:
        raise UsageError("--table needs a pipeline's ID")
    if pipeline_id is not None:
        chosen_tables(chosen_pipeline(project, pipeline_id), table)
    with open_audit_view(project.audit_url, project.state_dir) as audit:
        events = audit.schemas.events(pipeline_id, table)
    if as_json:
        print_json({"events": [_document(event) for event in events]})
    elif events:
        screen().print(_grid(events))
    else:
        print("No source has changed its columns since they were first loaded.")
    return 0


def accept(
    root: Path, pipeline_id: str, *, table: str | None, column: str | None, reason: str | None, as_json: bool
) -> int:
    project = opened_project(root)
    tables = chosen_tables(chosen_pipeline(project, pipeline_id), table)
    with Runtime(project, Settings.from_env()) as runtime:
        surveys = [runtime.survey(one) for one in tables]
        chosen = [(survey.table, change) for survey in surveys for change in _open_to_question(survey, column)]
        _refuse_nothing(pipeline_id, table, column, chosen)
        for survey in surveys:
            _refuse_what_is_missed(survey, column)
        for one, change in chosen:
            note_accepted(runtime.audit, one, change, reason)
    if as_json:
        print_json({"accepted": [_change(one, change) for one, change in chosen]})
    else:
        for one, change in chosen:
            print(redact(f"accepted: {one.label}: {told(change)}"))
        print(f"next: hakiri apply {pipeline_id}")
        if any(change.kind == "added" for _, change in chosen):
            print(f"Rows that are loaded already get the values of a new column by: hakiri run {pipeline_id} --table T")
    return 0


def _open_to_question(survey: Survey, column: str | None) -> Sequence[Change]:
    """What a contract discards stops nothing, so it is followed only if it is named."""
    if column is None:
        return survey.refused_changes
    return [change for change in (*survey.refused_changes, *survey.followed.discarded) if change.column == column]


def note_accepted(audit: AuditDb, table: Table, change: Change, reason: str | None) -> None:
    audit.schemas.note(
        table.pipeline_id, table.name, [Decided(change, "accepted")], actor=getpass.getuser(), reason=reason
    )


def _refuse_nothing(
    pipeline_id: str, table: str | None, column: str | None, chosen: Sequence[tuple[Table, Change]]
) -> None:
    keys = [one for one, change in chosen if change.kind == "key_changed"]
    if keys:
        raise UsageError(
            "a changed key cannot be permitted: rows that are there would no longer be told apart",
            where=keys[0].label,
            hint="`hakiri plan` says how to migrate it; name the column (--column) of what is to be permitted",
        )
    if not chosen:
        where = f"{pipeline_id}/{table}" if table else pipeline_id
        what = f"no change of column `{column}` is refused" if column else "no change is refused"
        raise UsageError(f"nothing to accept: {what}", where=where, hint="`hakiri plan` shows what is refused")


def _refuse_what_is_missed(survey: Survey, column: str | None) -> None:
    table = survey.table
    for change in _open_to_question(survey, column):
        if is_missed(change, survey.target) and change in survey.followed.applied:
            place = f"{table.target_schema}.{table.target_name}"
            raise UsageError(
                f"{told(change)}, and that cannot be permitted: every row of {place} must have a value there",
                where=table.label,
                hint="bring it back at the source, or let the target's column be NULL or have a default",
            )


def _document(event: SchemaEvent) -> dict[str, Any]:
    return {
        "at": event.at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "pipeline_id": event.pipeline_id,
        "table": event.table,
        "change": event.kind,
        "column": event.column or None,
        "from": event.before,
        "to": event.after,
        "decision": event.decision,
        "run_id": event.run_id,
        "accepted_by": event.actor,
        "reason": event.reason,
    }


def _change(table: Table, change: Change) -> dict[str, Any]:
    return {
        "pipeline_id": table.pipeline_id,
        "table": table.name,
        "change": change.kind,
        "column": change.column,
        "from": change.before,
        "to": change.after,
    }


def _grid(events: Sequence[SchemaEvent]) -> Grid:
    made = grid(("at (UTC)", "table", "column", "change", "from", "to", "decision", "by"))
    for event in events:
        by = f"{event.actor}: {event.reason}" if event.actor and event.reason else event.actor or event.run_id or ""
        made.add_row(
            f"{event.at:%Y-%m-%d %H:%M:%S}",
            *(
                escape(redact(text))
                for text in (
                    f"{event.pipeline_id}/{event.table}",
                    event.column,
                    event.kind.replace("_", " "),
                    event.before or "",
                    event.after or "",
                    event.decision,
                    by,
                )
            ),
        )
    return made
