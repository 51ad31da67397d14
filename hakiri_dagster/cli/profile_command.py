"""`hakiri profile`: what the columns of the targets hold as they are."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TypedDict

from rich.markup import escape

from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.opening import chosen_pipeline, chosen_tables, opened_project
from hakiri_dagster.cli.screen import grid, screen
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.rule_spec import FieldTypeName
from hakiri_dagster.manifest.rule_values import PlainValue
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.quality.measures import Instant
from hakiri_dagster.quality.profile import ColumnProfile, Number, TableProfile
from hakiri_dagster.quality.profile_told import CELLS, cells
from hakiri_dagster.settings import Settings

_NUMBERS = ("nulls", "null_ratio", "distinct", "min", "max", "mean")


class ValueDocument(TypedDict):
    value: PlainValue
    rows: int


class ColumnDocument(TypedDict):
    column: str
    type: str
    nulls: int
    null_ratio: float
    distinct: int | None
    distinct_is_exact: bool
    min: int | float | str | None
    max: int | float | str | None
    mean: float | None
    shortest: int | None
    longest: int | None
    readable_as: list[FieldTypeName] | None
    values: list[ValueDocument] | None


class ProfileDocument(TypedDict):
    pipeline_id: str
    table: str
    target: str
    rows: int | None
    columns: list[ColumnDocument]
    error: str | None


def profile(root: Path, pipeline_id: str, name: str | None, as_json: bool) -> int:
    from hakiri_dagster.orchestration.apply import opened_applier

    project = opened_project(root)
    tables = chosen_tables(chosen_pipeline(project, pipeline_id), name)
    documents: list[ProfileDocument] = []
    with Runtime(project, Settings.from_env()) as runtime, opened_applier(runtime) as applier:
        for table in tables:
            try:
                found = applier.profile(table)
            except HakiriError as error:
                documents.append(_document(table, None, str(error)))
                if not as_json:
                    screen().print(f"[red]error[/]: {escape(str(error))}")
                continue
            documents.append(_document(table, found, None))
            if not as_json:
                _print(table, found)
    if as_json:
        print_json({"tables": documents})
    return 1 if any(document["error"] for document in documents) else 0


def _document(table: Table, found: TableProfile | None, error: str | None) -> ProfileDocument:
    return ProfileDocument(
        pipeline_id=table.pipeline_id,
        table=table.name,
        target=f"{table.target_schema}.{table.target_name}",
        rows=None if found is None else found.rows,
        columns=[] if found is None else [_column(column) for column in found.columns],
        error=error,
    )


def _column(column: ColumnProfile) -> ColumnDocument:
    texts = column.texts
    return ColumnDocument(
        column=column.name,
        type=column.type,
        nulls=column.nulls,
        null_ratio=column.null_ratio,
        distinct=column.distinct,
        distinct_is_exact=column.distinct_is_exact,
        min=_plain(column.lowest) if texts is None else texts.first,
        max=_plain(column.highest) if texts is None else texts.last,
        mean=column.mean,
        shortest=None if texts is None else texts.shortest,
        longest=None if texts is None else texts.longest,
        readable_as=None if texts is None else sorted(texts.readable_as),
        values=_values(column),
    )


def _values(column: ColumnProfile) -> list[ValueDocument] | None:
    if column.values is None:
        return None
    told = ((float(value) if isinstance(value, Decimal) else value, rows) for value, rows in column.values)
    return [ValueDocument(value=value, rows=rows) for value, rows in told]


def _plain(value: Number | Instant | None) -> int | float | str | None:
    """JSON has neither times nor NaN."""
    match value:
        case Instant():
            return str(value)
        case float() | Decimal():
            number = float(value)
            return number if number - number == 0 else str(number)
        case _:
            return value


def _print(table: Table, found: TableProfile) -> None:
    target = f"{table.target_schema}.{table.target_name}"
    screen().print(f"[bold]{escape(table.label)}[/bold]  {escape(target)}, {found.rows:,} row(s)")
    made = grid(("column", "type"), _NUMBERS)
    made.add_column("length")
    made.add_column("values", overflow="fold")
    for column in found.columns:
        told = cells(column)
        made.add_row(*(escape(_text(told[name])) for name in CELLS))
    screen().print(made)


def _text(value: Sequence[str] | float | None) -> str:
    match value:
        case None:
            return ""
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.6g}"
        case _:
            return str(value)
