"""`hakiri check`: every rule and validator, asked of the targets as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from rich.markup import escape

from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.opening import chosen_pipeline, chosen_tables, opened_project
from hakiri_dagster.cli.screen import grid, screen
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.runtime import Runtime, stored_plans
from hakiri_dagster.settings import Settings

if TYPE_CHECKING:
    import dagster as dg

_TOLD = ("expected", "observed")
_MARKS = {"passed": "[green]✓[/]", "warning": "[yellow]![/]", "failed": "[red]✗[/]"}


class CheckDocument(TypedDict):
    check: str
    status: str
    expected: str | None
    observed: str | None
    numbers: dict[str, float]


class TableDocument(TypedDict):
    pipeline_id: str
    table: str
    status: str
    error: str | None
    checks: list[CheckDocument]


def check(root: Path, pipeline_id: str, name: str | None, as_json: bool) -> int:
    from hakiri_dagster.orchestration.apply import opened_applier

    project = opened_project(root)
    tables = chosen_tables(chosen_pipeline(project, pipeline_id), name)
    with Runtime(project, Settings.from_env()) as runtime:
        plans = stored_plans(project)
        with opened_applier(runtime) as applier:
            found = [_document(table, *applier.check(table, plans.get(table.label))) for table in tables]
    if as_json:
        print_json({"tables": found})
    else:
        _print(found)
    return 1 if any(table["status"] == "failed" for table in found) else 0


def _document(table: Table, evaluations: Sequence[dg.AssetCheckEvaluation], error: str | None) -> TableDocument:
    checks = [_check(evaluation) for evaluation in evaluations if evaluation.partition is None]
    statuses = {one["status"] for one in checks} | ({"failed"} if error else set())
    worst = next((status for status in ("failed", "warning") if status in statuses), "passed")
    return TableDocument(pipeline_id=table.pipeline_id, table=table.name, status=worst, error=error, checks=checks)


def _check(evaluation: dg.AssetCheckEvaluation) -> CheckDocument:
    metadata: dict[str, Any] = {name: value.value for name, value in evaluation.metadata.items()}
    told = {name: metadata.get(name) for name in _TOLD}
    return CheckDocument(
        check=evaluation.check_name,
        status="passed" if evaluation.passed else _how_bad(evaluation),
        expected=told["expected"],
        observed=told["observed"],
        numbers={name: value for name, value in metadata.items() if isinstance(value, int | float)},
    )


def _how_bad(evaluation: dg.AssetCheckEvaluation) -> str:
    return "failed" if evaluation.severity.value == "ERROR" else "warning"


def _print(found: Sequence[TableDocument]) -> None:
    for table in found:
        screen().print(f"[bold]{escape(table['pipeline_id'])}/{escape(table['table'])}[/bold]")
        made = grid(("", "check", "observed", "expected"))
        for one in table["checks"]:
            observed = one["observed"] or ", ".join(f"{name} {value}" for name, value in one["numbers"].items())
            made.add_row(_MARKS[one["status"]], escape(one["check"]), escape(observed), escape(one["expected"] or ""))
        screen().print(made)
        if table["error"]:
            screen().print(f"[red]error[/]: {escape(table['error'])}")
