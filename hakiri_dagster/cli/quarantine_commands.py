"""`hakiri quarantine show|purge`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import typer
from rich.markup import escape
from rich.table import Table as Grid

from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.opening import chosen_pipeline, chosen_tables, opened_project
from hakiri_dagster.cli.screen import grid, screen
from hakiri_dagster.destinations.quarantine_contract import Kept, KeptChoice, KeptRow
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.rule_spec import fields_of, id_of
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.settings import Settings


class CountDocument(TypedDict):
    rule: str
    on_fail: str | None
    rows: int


class RowDocument(TypedDict):
    rule: str
    on_fail: str | None
    message: str | None
    row: Any
    run_id: str
    chunk: str | None
    load_id: int | None
    source_file: str | None
    source_line: int | None
    kept_at: str


class TableDocument(TypedDict):
    pipeline_id: str
    table: str
    quarantine_table: str
    counts: list[CountDocument]
    sample: list[RowDocument]


@dataclass(frozen=True, slots=True)
class Filters:
    """What was asked for; None: whatever it is."""

    rule: str | None = None
    field: str | None = None
    run_id: str | None = None
    chunk: str | None = None

    def choice(self, table: Table) -> KeptChoice:
        return KeptChoice(self._rules(table), self.run_id, self.chunk)

    def _rules(self, table: Table) -> tuple[str, ...] | None:
        if self.field is None:
            return None if self.rule is None else (self.rule,)
        about = [id_of(rule) for rule in table.validation.row_level if self.field in fields_of(rule)]
        return tuple(name for name in about if self.rule in (None, name))


def show(root: Path, pipeline_id: str, name: str | None, filters: Filters, limit: int, as_json: bool) -> int:
    project = opened_project(root)
    tables = chosen_tables(chosen_pipeline(project, pipeline_id), name)
    with Runtime(project, Settings.from_env()) as runtime:
        found = [
            (table, runtime.destination(table).quarantined(table, filters.choice(table), limit=limit))
            for table in tables
        ]
    if as_json:
        print_json({"tables": [_document(table, kept) for table, kept in found]})
    else:
        _print(found)
    return 0


def purge(root: Path, pipeline_id: str, name: str | None, filters: Filters, *, unasked: bool) -> int:
    project = opened_project(root)
    tables = chosen_tables(chosen_pipeline(project, pipeline_id), name)
    with Runtime(project, Settings.from_env()) as runtime:
        for table in tables:
            destination, choice = runtime.destination(table), filters.choice(table)
            rows = sum(count.rows for count in destination.quarantined(table, choice, limit=0).counts)
            if rows and not unasked and not _agreed(table, rows):
                return 1
            gone = destination.purge_quarantine(table, choice) if rows else 0
            print(f"{gone:,} row(s) of {table.label} deleted from {table.quarantine_place}.")
            if not rows:
                there = destination.quarantined(table, KeptChoice(), limit=0)
                print(f"It keeps {_told(there)}.")
    return 0


def _told(kept: Kept) -> str:
    """Of each rule, how many rows there are."""
    rows: Counter[str] = Counter()
    for count in kept.counts:
        rows[count.rule] += count.rows
    return ", ".join(f"{count:,} of {rule}" for rule, count in rows.most_common()) or "no row"


def _agreed(table: Table, rows: int) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("nobody is there to be asked", hint="--yes deletes without asking")
    return typer.confirm(f"Delete {rows:,} row(s) of {table.label} from {table.quarantine_place}?", err=True)


def _document(table: Table, kept: Kept) -> TableDocument:
    return TableDocument(
        pipeline_id=table.pipeline_id,
        table=table.name,
        quarantine_table=table.quarantine_place,
        counts=[CountDocument(rule=count.rule, on_fail=count.on_fail, rows=count.rows) for count in kept.counts],
        sample=[_row(row) for row in kept.sample],
    )


def _row(row: KeptRow) -> RowDocument:
    return RowDocument(
        rule=row.rule,
        on_fail=row.on_fail,
        message=row.message,
        row=json.loads(row.row),
        run_id=row.run_id,
        chunk=row.chunk_key,
        load_id=row.load_id,
        source_file=row.source_file,
        source_line=row.source_line,
        kept_at=row.kept_at.isoformat(timespec="seconds"),
    )


def _print(found: Sequence[tuple[Table, Kept]]) -> None:
    for table, kept in found:
        screen().print(f"[bold]{escape(table.label)}[/bold], in {escape(table.quarantine_place)}")
        if not kept.counts:
            screen().print("  nothing is kept")
            continue
        screen().print(_counts(kept))
        for row in kept.sample:
            where = ", ".join(filter(None, (f"chunk {row.chunk_key}" if row.chunk_key else None, _origin(row))))
            screen().print(f"\n[bold]{escape(row.rule)}[/bold] {escape(row.message or '')}  [dim]{escape(where)}[/dim]")
            screen().print(escape(row.row))


def _origin(row: KeptRow) -> str | None:
    """As editors and terminals take it for a link."""
    return row.source_file if row.source_line is None else f"{row.source_file}:{row.source_line}"


def _counts(kept: Kept) -> Grid:
    made = grid(("rule", "on_fail"), ("rows",))
    for count in kept.counts:
        made.add_row(escape(count.rule), count.on_fail or "", f"{count.rows:,}")
    return made
