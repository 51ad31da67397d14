"""What an apply did, as a short table for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table as Grid

from hakiri_dagster.cli.screen import grid, screen

_OF_A_CHUNK = re.compile(r"chunk (\S+): (.*)", re.DOTALL)
_MARKS = {"success": "[green]✓[/]", "skipped": "[dim]=[/]", "partial": "[yellow]![/]", "failed": "[red]✗[/]"}


def report(document: dict[str, Any]) -> None:
    console = screen()
    rows = [(pipeline, table) for pipeline in document["pipelines"] for table in pipeline["tables"]]
    worked = [(p, table) for p, table in rows if table["chunks"]["done"] or table["hooks"] or table["error"]]
    if worked:
        console.print(_grid(worked))
    elif any(table["chunks"]["skipped"] for _, table in rows):
        console.print("Nothing was done here: another run is at work on what is due.")
    elif waiting := sum(table["chunks"]["pending"] for _, table in rows):
        console.print(f"Nothing was loaded: {waiting} chunk(s) wait for transactions at the source to end.")
    else:
        console.print(f"Nothing to do: {_all(len(rows))} converged.")
    for pipeline, table in rows:
        label = f"{pipeline['pipeline_id']}/{table['table']}"
        if table["error"]:
            console.print(f"[red]error[/]: {escape(label)}: {escape(table['error'].removeprefix(f'{label}: '))}")
        for warning in _summed_up(table["warnings"]):
            console.print(f"[yellow]warning[/]: {escape(label)}: {escape(warning)}")


def _all(tables: int) -> str:
    return "the table is" if tables == 1 else f"all {tables} tables are"


def _summed_up(warnings: Sequence[str]) -> Iterator[str]:
    """What is said of many chunks in the same words is said once."""
    chunks: dict[str, list[str]] = {}
    for warning in warnings:
        told = _OF_A_CHUNK.fullmatch(warning)
        chunks.setdefault(told[2] if told else warning, []).append(told[1] if told else "")
    for reason, keys in chunks.items():
        if keys == [""] * len(keys):
            yield reason
        elif len(keys) == 1:
            yield f"chunk {keys[0]}: {reason}"
        else:
            yield f"{len(keys)} chunks, {keys[0]} to {keys[-1]}: {reason}"


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
