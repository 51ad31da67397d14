"""What the chunks of a table are, and which of them are due, by its shape."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, assert_never

from hakiri_dagster.connectors.contract import Discovery, SourceTable
from hakiri_dagster.destinations.contract import Mark
from hakiri_dagster.errors import PlanError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.backfill_hint import BackfillHint
from hakiri_dagster.planning.chunk_plan import MOST_CHUNKS, WindowSettings, plan_chunks, plan_file_chunks, plan_full
from hakiri_dagster.planning.chunks import Chunk, Extent
from hakiri_dagster.planning.due import due_slices
from hakiri_dagster.planning.due_files import due_files
from hakiri_dagster.planning.due_full import due_full
from hakiri_dagster.planning.due_parts import due_as_one, due_by_part
from hakiri_dagster.planning.generations import plan_text
from hakiri_dagster.planning.lag import refuse_misfit, width
from hakiri_dagster.planning.parts import planned_by_part
from hakiri_dagster.planning.progress import Progress
from hakiri_dagster.planning.segments import due_segments, plan_segments
from hakiri_dagster.planning.source_files import FileVersion, touched_by
from hakiri_dagster.planning.states import ChunkState, Due

Shape = Literal["cursor", "files", "full", "segments"]


def lag_of(table: Table) -> int | None:
    """In cursor positions."""
    return width(table.load.lag) if cursor_of(table) is not None and table.load.lag is not None else None


def cursor_of(table: Table) -> str | None:
    """A table that is always loaded as a whole has one chunk, whatever its cursor is."""
    return None if table.whole_table else table.cursor


def shape_of(table: Table, source: SourceTable) -> Shape:
    """What the chunks of a table are: windows of its cursor, segments of its pages, its files, or the whole of it."""
    if source.hint.kind == "opaque-token" and not table.whole_table:
        return "segments"
    if cursor_of(table) is not None:
        return "cursor"
    return "files" if source.chunked_by_file and not table.whole_table else "full"


def window_of(table: Table, hint: BackfillHint) -> str | int | None:
    """As the operator cuts history, or else as the connector would."""
    declared = table.backfill.window
    return hint.natural_window if declared is None else declared


def parallelism_of(table: Table, hint: BackfillHint) -> int:
    """What the operator says, even if the source cannot bear it; the default is no more than it can."""
    asked = table.backfill.parallelism
    if "parallelism" in table.backfill.model_fields_set or hint.most_parallel is None:
        return asked
    return min(asked, hint.most_parallel)


def chunks_of(
    table: Table,
    shape: Shape,
    discovery: Discovery,
    states: Sequence[ChunkState],
    moment: datetime,
    mark: Mark | None,
    hint: BackfillHint,
) -> tuple[tuple[Chunk, ...], tuple[str, ...]]:
    match shape:
        case "cursor":
            if discovery.cursor_kind is None or discovery.extent is None:
                return (), ()
            kind, window, start_from = discovery.cursor_kind, window_of(table, hint), table.backfill.start_from
            try:
                settings = WindowSettings.parse(kind, window, start_from)
                refuse_misfit(table.load.lag, kind)
                if mark is not None and mark.begins_at is not None:
                    settings = settings.beginning_at(mark.begins_at - (lag_of(table) or 0))
                if discovery.parts:
                    return _refuse_too_many(
                        planned_by_part(discovery.parts, lambda extent: plan_chunks(kind, extent, settings, moment))
                    ), ()
                return plan_chunks(kind, discovery.extent, settings, moment), ()
            except PlanError as error:
                raise PlanError(error.what, where=table.label, hint=error.hint) from error
        case "files":
            return plan_file_chunks(discovery.source_files)
        case "full":
            return plan_full(), ()
        case "segments":
            return plan_segments(states), ()
        case _:
            assert_never(shape)


def _refuse_too_many(chunks: tuple[Chunk, ...]) -> tuple[Chunk, ...]:
    if len(chunks) > MOST_CHUNKS:
        raise PlanError(
            f"the window cuts all parts of the source into {len(chunks):,} chunks, more than {MOST_CHUNKS:,}",
            hint="set a larger backfill.window, or backfill.start_from, or split the partition keys between pipelines",
        )
    return chunks


def plan_text_of(table: Table, shape: Shape, discovery: Discovery, hint: BackfillHint) -> str:
    if discovery.cursor_kind is not None and shape == "cursor":
        return plan_text(discovery.cursor_kind, window_of(table, hint))
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

            def due(chunks: Sequence[Chunk], states: Sequence[ChunkState], extent: Extent) -> Due:
                return due_slices(
                    chunks,
                    states,
                    extent,
                    kind=kind,
                    now=moment,
                    touched=touched,
                    progress=progress,
                    horizon=discovery.horizon,
                    lag=lag_of(table) or 0,
                )

            if discovery.parts:
                return due_by_part(chunks, states, discovery.parts, discovery.away, due)
            return due_as_one(chunks, states, discovery.extent, due)
        case "files":
            return due_files(chunks, states, discovery.source_files)
        case "full":
            fingerprint, schedule = discovery.fingerprint, None if table.told_when else table.schedule
            return due_full(states, fingerprint=fingerprint, schedule=schedule, timezone=table.timezone, now=moment)
        case "segments":
            return due_segments(states)
        case _:
            assert_never(shape)
