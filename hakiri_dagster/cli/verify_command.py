"""`hakiri verify`: compare targets with their sources, and mark what drifted to be loaded again."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

from rich.markup import escape

from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.explain import some
from hakiri_dagster.cli.opening import chosen_pipeline, chosen_tables, opened_project
from hakiri_dagster.cli.progress import counted_chunks_shown
from hakiri_dagster.cli.screen import grid, screen
from hakiri_dagster.errors import HakiriError, UsageError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.verification import (
    Progress,
    Verification,
    VerifyOptions,
    mark_for_repair,
    objection,
    removes_deleted_rows,
    verify,
)
from hakiri_dagster.planning.verification import ChunkDifference
from hakiri_dagster.settings import Settings

Status = Literal["same", "drift", "repair_pending", "not_comparable", "failed"]
_NUMBERS = ("missing", "extra", "changed", "deleted_at_source", "moved", "not_loaded")
_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Repair:
    """`wanted`: chunks that drifted are marked; `with_deletes`: those with rows that the source has deleted, too."""

    wanted: bool = False
    with_deletes: bool = False


class ChunkDocument(TypedDict):
    chunk: str
    source_rows: int
    target_rows: int
    quarantined: int
    missing: int
    extra: int
    changed: int
    deleted_at_source: int
    moved: int
    not_loaded: int
    drift: bool


class TableDocument(TypedDict):
    pipeline_id: str
    table: str
    status: Status
    compared_by: str | None
    chunks: int
    not_published: int
    being_loaded: list[str]
    source_rows: int
    target_rows: int
    quarantined: int
    differences: list[ChunkDocument]
    rewind: int | None
    pending: list[str]
    error: str | None


def verify_pipeline(
    root: Path, pipeline_id: str, name: str | None, options: VerifyOptions, repair: Repair, *, as_json: bool
) -> int:
    project = opened_project(root)
    pipeline = chosen_pipeline(project, pipeline_id)
    with Runtime(project, Settings.from_env()) as runtime:
        tables = chosen_tables(pipeline, name)
        refused = _refused(runtime, tables, as_json=as_json)
        _refuse_repair_of_deletes(tables, repair)
        with counted_chunks_shown([table.label for table in tables if table.label not in refused]) as progress:
            found = [
                _not_comparable(table, refused[table.label])
                if table.label in refused
                else _verified(runtime, table, options, repair, progress)
                for table in tables
            ]
    if as_json:
        print_json({"tables": found})
    else:
        _print(pipeline.id, found)
    if all(table["status"] == "not_comparable" for table in found):
        return 2
    return 1 if any(table["status"] in ("drift", "failed") for table in found) else 0


def _refuse_repair_of_deletes(tables: Sequence[Table], repair: Repair) -> None:
    if not repair.with_deletes:
        return
    if not repair.wanted:
        raise UsageError("--repair-deletes changes what --repair does", hint="give both, or neither")
    if not any(map(removes_deleted_rows, tables)):
        raise UsageError(
            f"load mode {tables[0].mode} deletes nothing when a chunk is loaded again",
            where=tables[0].label,
            hint="use load.hard_delete or load mode delete_missing, or leave --repair-deletes out",
        )


def _refused(runtime: Runtime, tables: Sequence[Table], *, as_json: bool) -> dict[str, UsageError]:
    """Tables that cannot be compared. With nothing else to compare that is an error, which a JSON document tells."""
    found = {table.label: objection(runtime, table) for table in tables}
    refused = {label: error for label, error in found.items() if error is not None}
    if len(refused) == len(tables) and not as_json:
        raise next(iter(refused.values()))
    return refused


def _verified(
    runtime: Runtime, table: Table, options: VerifyOptions, repair: Repair, progress: Progress
) -> TableDocument:
    try:
        found = verify(runtime, table, options, progress)
    except UsageError:
        raise
    except HakiriError as error:
        return _document(table, "failed", error=error.told_within(table.label))
    status: Status = "drift" if found.drifted else "same"
    if not repair.wanted:
        return _document(table, status, found)
    try:
        answer = mark_for_repair(runtime, found, with_deletes=repair.with_deletes, asked_by=getpass.getuser())
    except HakiriError as error:
        return _document(table, "failed", found, error=error.told_within(table.label))
    if answer is None:
        return _document(table, status, found)
    planned = {chunk.key for chunk in found.survey.chunks}
    pending = [state.key for state in answer.reach.states if state.key in planned]
    if all(chunk.key in pending for chunk in found.drifted):
        status = "repair_pending"
    return _document(table, status, found, rewind=answer.rewind_id, pending=pending)


def _not_comparable(table: Table, error: UsageError) -> TableDocument:
    return _document(table, "not_comparable", error=error.told_within(table.label))


def _document(
    table: Table,
    status: Status,
    found: Verification | None = None,
    *,
    rewind: int | None = None,
    pending: Sequence[str] = (),
    error: str | None = None,
) -> TableDocument:
    chunks = () if found is None else found.chunks
    return TableDocument(
        pipeline_id=table.pipeline_id,
        table=table.name,
        status=status,
        compared_by=None if found is None else found.by,
        chunks=len(chunks),
        not_published=0 if found is None else found.unpublished,
        being_loaded=[] if found is None else list(found.being_loaded),
        source_rows=sum(chunk.source_rows for chunk in chunks),
        target_rows=sum(chunk.target_rows for chunk in chunks),
        quarantined=sum(chunk.accounted for chunk in chunks),
        differences=[_chunk(chunk) for chunk in chunks if chunk.is_different],
        rewind=rewind,
        pending=list(pending),
        error=error,
    )


def _chunk(chunk: ChunkDifference) -> ChunkDocument:
    return ChunkDocument(
        chunk=chunk.key,
        source_rows=chunk.source_rows,
        target_rows=chunk.target_rows,
        quarantined=chunk.accounted,
        missing=chunk.missing,
        extra=chunk.extra,
        changed=chunk.changed,
        deleted_at_source=chunk.deleted_at_source,
        moved=chunk.moved,
        not_loaded=chunk.not_loaded,
        drift=chunk.is_drift,
    )


def _print(pipeline_id: str, found: Sequence[TableDocument]) -> None:
    for table in found:
        screen().print(
            f"[bold]{escape(table['pipeline_id'])}/{escape(table['table'])}[/bold]: {escape(_summary(table))}"
        )
        if table["differences"]:
            shown = grid(
                ("chunk",), ("source", "target", "quarantined", *(name.replace("_", " ") for name in _NUMBERS))
            )
            for one in table["differences"][:_SHOWN]:
                counts = (one["source_rows"], one["target_rows"], one["quarantined"])
                numbers = (one["missing"], one["extra"], one["changed"])
                others = (one["deleted_at_source"], one["moved"], one["not_loaded"])
                mark = "[red]✗[/]" if one["drift"] else "[green]✓[/]"
                shown.add_row(f"{mark} {escape(one['chunk'])}", *(f"{n:,}" for n in (*counts, *numbers, *others)))
            screen().print(shown)
        for line in _lines(table):
            screen().print(line)
    if any(table["pending"] for table in found):
        print(f"next: hakiri apply {pipeline_id}")


def _summary(table: TableDocument) -> str:
    if table["compared_by"] is None:
        return "not compared"
    different = [one["chunk"] for one in table["differences"] if one["drift"]]
    compared = f"{table['chunks']:,} chunk(s) compared by {table['compared_by']}"
    rows = f"{table['source_rows']:,} row(s) at the source, {table['target_rows']:,} in the target"
    quarantined = f", {table['quarantined']:,} quarantined" if table["quarantined"] else ""
    unpublished = table["not_published"]
    left_out = f"; {unpublished:,} chunk(s) not compared: not loaded, or still to be read again" if unpublished else ""
    return f"{compared}, {len(different):,} drifted; {rows}{quarantined}{left_out}"


def _lines(table: TableDocument) -> Iterator[str]:
    more = len(table["differences"]) - _SHOWN
    if more > 0:
        yield f"and {more:,} more chunk(s): --json lists all of them"
    if table["being_loaded"]:
        yield f"left out, because they are being loaded or became due: {escape(some(table['being_loaded']))}"
    if table["pending"]:
        yield f"{len(table['pending']):,} chunk(s) are pending again: {escape(some(table['pending']))}"
    if table["error"]:
        yield f"[red]error[/]: {escape(table['error'])}"
