"""`hakiri backup list|restore`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import typer
from rich.markup import escape
from rich.table import Table as Grid

from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.opening import chosen_pipeline, chosen_pipelines, chosen_tables, opened_project
from hakiri_dagster.cli.screen import grid, screen
from hakiri_dagster.destinations.backups_contract import Backup, Restored
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.restoring import restore
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.settings import Settings


class BackupDocument(TypedDict):
    pipeline_id: str
    table: str
    target: str
    generation: int
    load_id: int
    rows: int
    made_before: str
    made_at: str
    relation: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Which backup of a table; neither: the newest."""

    generation: int | None = None
    load_id: int | None = None

    def among(self, backups: Sequence[Backup], table: Table) -> Backup:
        if self.generation is not None and self.load_id is not None:
            raise UsageError("--generation and --load-id both name a backup", hint="give one of them")
        for backup in backups:
            if (backup.load_id == self.load_id) if self.load_id else (backup.generation == (self.generation or 1)):
                return backup
        wanted = f"of load {self.load_id}" if self.load_id else f"of generation {self.generation or 1}"
        known = ", ".join(f"{b.generation} (load {b.load_id})" for b in backups)
        raise UsageError(
            f"{table.label} has no backup {wanted}", hint=f"there are: {known}" if known else "it has none at all"
        )


def backup_list(root: Path, pipeline_id: str | None, as_json: bool) -> int:
    project = opened_project(root)
    pipelines = chosen_pipelines(project, [pipeline_id] if pipeline_id else [])
    with Runtime(project, Settings.from_env()) as runtime:
        found = [
            _document(table, backup)
            for pipeline in pipelines
            for table in pipeline.tables
            for backup in runtime.destination(table).backups(table)
        ]
    if as_json:
        print_json({"backups": found})
    else:
        screen().print(_grid(found) if found else "There is no backup.")
    return 0


def backup_restore(root: Path, pipeline_id: str, name: str | None, choice: Choice, *, unasked: bool) -> int:
    project = opened_project(root)
    tables = chosen_tables(chosen_pipeline(project, pipeline_id), name)
    if len(tables) > 1:
        raise UsageError(
            f"pipeline `{pipeline_id}` has several tables", hint=f"--table {' | '.join(table.name for table in tables)}"
        )
    (table,) = tables
    with Runtime(project, Settings.from_env()) as runtime:
        backup = choice.among(runtime.destination(table).backups(table), table)
        if not unasked and not _agreed(table, backup):
            return 1
        restored = restore(runtime, table, backup)
    _tell(table, restored)
    return 0


def _tell(table: Table, restored: Restored) -> None:
    target = f"{table.target_schema}.{table.target_name}"
    print(f"{target} holds the {restored.rows:,} rows that it held before {_cause(restored.backup)}.")
    if restored.left_out:
        print(f"Columns left out, because it no longer has them: {', '.join(restored.left_out)}.")
    if restored.undoable:
        print("The rows that these replace are the newest backup now.")


def _agreed(table: Table, backup: Backup) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("nobody is there to be asked", hint="--yes restores without asking")
    target = f"{table.target_schema}.{table.target_name}"
    what = f"{backup.rows:,} rows of {backup.made_at:%Y-%m-%d %H:%M} UTC, before {_cause(backup)}"
    return typer.confirm(f"Put {what}, in the place of those of {target}?", err=True)


def _cause(backup: Backup) -> str:
    return f"{backup.made_before} {backup.load_id}"


def _document(table: Table, backup: Backup) -> BackupDocument:
    return BackupDocument(
        pipeline_id=table.pipeline_id,
        table=table.name,
        target=f"{table.target_schema}.{table.target_name}",
        generation=backup.generation,
        load_id=backup.load_id,
        rows=backup.rows,
        made_before=backup.made_before,
        made_at=backup.made_at.isoformat(timespec="seconds"),
        relation=f"hakiri.{backup.relation}",
    )


def _grid(found: Sequence[BackupDocument]) -> Grid:
    made = grid(("table", "made at", "before", "kept in"), ("generation", "rows"))
    for backup in found:
        made.add_row(
            escape(f"{backup['pipeline_id']}/{backup['table']}"),
            backup["made_at"],
            f"{backup['made_before']} {backup['load_id']}",
            escape(backup["relation"]),
            str(backup["generation"]),
            f"{backup['rows']:,}",
        )
    return made
