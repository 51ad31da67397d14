"""What the chunks of a table are, and which of them are due, by its shape."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, assert_never

from hakiri_dagster.connectors.contract import Discovery, SourceTable
from hakiri_dagster.destinations.contract import Mark
from hakiri_dagster.errors import PlanError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.chunk_plan import WindowSettings, plan_chunks, plan_file_chunks, plan_full
from hakiri_dagster.planning.chunks import Chunk
from hakiri_dagster.planning.due import due_slices
from hakiri_dagster.planning.due_files import due_files
from hakiri_dagster.planning.due_full import due_full
from hakiri_dagster.planning.generations import plan_text
from hakiri_dagster.planning.lag import refuse_misfit, width
from hakiri_dagster.planning.progress import Progress
from hakiri_dagster.planning.source_files import FileVersion, touched_by
from hakiri_dagster.planning.states import ChunkState, Due

Shape = Literal["cursor", "files", "full"]


def lag_of(table: Table) -> int | None:
    """In cursor positions."""
    return width(table.load.lag) if table.in_order and table.load.lag is not None else None


def cursor_of(table: Table) -> str | None:
    """A table that is always loaded as a whole has one chunk, whatever its cursor is."""
    return None if table.whole_table else table.cursor


def shape_of(table: Table, source: SourceTable) -> Shape:
    """What the chunks of a table are: windows of its cursor, its files, or the whole of it."""
    if cursor_of(table) is not None:
        return "cursor"
    return "files" if source.chunked_by_file and not table.whole_table else "full"


def chunks_of(
    table: Table, shape: Shape, discovery: Discovery, moment: datetime, mark: Mark | None
) -> tuple[tuple[Chunk, ...], tuple[str, ...]]:
    match shape:
        case "cursor":
            if discovery.cursor_kind is None or discovery.extent is None:
                return (), ()
            backfill = table.backfill
            try:
                settings = WindowSettings.parse(discovery.cursor_kind, backfill.window, backfill.start_from)
                refuse_misfit(table.load.lag if table.in_order else None, discovery.cursor_kind)
                if mark is not None and mark.begins_at is not None:
                    settings = settings.beginning_at(mark.begins_at - (lag_of(table) or 0))
                return plan_chunks(discovery.cursor_kind, discovery.extent, settings, moment), ()
            except PlanError as error:
                raise PlanError(error.what, where=table.label, hint=error.hint) from error
        case "files":
            return plan_file_chunks(discovery.source_files)
        case "full":
            return plan_full(), ()
        case _:
            assert_never(shape)


def plan_text_of(table: Table, shape: Shape, discovery: Discovery) -> str:
    if discovery.cursor_kind is not None and shape == "cursor":
        return plan_text(discovery.cursor_kind, table.backfill.window)
    return shape


def due_of(
    table: Table,
    shape: Shape,
    discovery: Discovery,
    chunks: Sequence[Chunk],
    states: Sequence[ChunkState],
    taken_in: dict[str, FileVersion],
    moment: datetime,
    mark: Mark | None,
) -> Due:
    match shape:
        case "cursor":
            if discovery.cursor_kind is None or discovery.extent is None:
                return Due()
            touched = touched_by(taken_in, discovery.files) if discovery.files else None
            progress = None
            if mark is not None and mark.position is not None:
                progress = Progress(mark.position, lag_of(table) or 0)
            kind = discovery.cursor_kind
            return due_slices(
                chunks, states, discovery.extent, kind=kind, now=moment, touched=touched, progress=progress
            )
        case "files":
            return due_files(chunks, states, discovery.source_files)
        case "full":
            fingerprint, schedule = discovery.fingerprint, table.schedule
            return due_full(states, fingerprint=fingerprint, schedule=schedule, timezone=table.timezone, now=moment)
        case _:
            assert_never(shape)
