"""What an apply did, as a short table for people."""

from __future__ import annotations

from typing import Any

from rich.markup import escape
from rich.table import Table as Grid

from hakiri_dagster.cli.screen import grid, screen

_MARKS = {"success": "[green]✓[/]", "skipped": "[dim]=[/]", "partial": "[yellow]![/]", "failed": "[red]✗[/]"}


def report(document: dict[str, Any]) -> None:
    console = screen()
    rows = [(pipeline, table) for pipeline in document["pipelines"] for table in pipeline["tables"]]
    worked = [(pipeline, table) for pipeline, table in rows if table["chunks"]["done"] or table["error"]]
    if not worked:
        console.print(f"Nothing to do: all {len(rows)} tables are converged.")
    else:
        console.print(_grid(worked))
    for pipeline, table in rows:
        label = f"{pipeline['pipeline_id']}/{table['table']}"
        if table["error"]:
            console.print(f"[red]error[/]: {escape(label)}: {escape(table['error'].removeprefix(f'{label}: '))}")
        for warning in table["warnings"]:
            console.print(f"[yellow]warning[/]: {escape(label)}: {escape(warning)}")


def _grid(rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> Grid:
    made = grid(("", "table"), ("chunks", "failed", "rows", "set aside", "seconds"))
    for pipeline, table in rows:
        broken = table["error"] is not None
        mark = "partial" if broken and table["chunks"]["done"] else "failed" if broken else "success"
        made.add_row(
            _MARKS[mark],
            escape(f"{pipeline['pipeline_id']}/{table['table']}"),
            f"{table['chunks']['done']:,}",
            f"{table['chunks']['failed']:,}",
            f"{table['rows']:,}",
            f"{table['quarantined']:,}",
            f"{table['duration_s']:.1f}",
        )
    return made
