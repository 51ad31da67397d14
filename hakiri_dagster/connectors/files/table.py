"""One table made of files: what it holds now, and its rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path, PurePath

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import (
    FILE_COLUMN,
    MALFORMED_COLUMN,
    NO_LOOKBACK,
    RECORD_COLUMN,
    SPLIT_COLUMN,
    TRUNCATED_COLUMN,
    Discovery,
    FileState,
    Known,
    LineOf,
    Reading,
    SparkProvider,
)
from hakiri_dagster.connectors.files.charsets import ANY_BYTES
from hakiri_dagster.connectors.files.contents import file_states, refuse_changed, source_fingerprint
from hakiri_dagster.connectors.files.cursors import Cursor, extent_of, overlaps, with_statistics
from hakiri_dagster.connectors.files.file_formats import file_format
from hakiri_dagster.connectors.files.format_contract import FileFormat, Look, Rows, WantedRows
from hakiri_dagster.connectors.files.formats import TEXT_FORMATS, Format, format_of
from hakiri_dagster.connectors.files.listing import Place
from hakiri_dagster.connectors.files.markers import marker_of, origin_of
from hakiri_dagster.connectors.files.options import FilesOptions
from hakiri_dagster.connectors.files.read_errors import explain_read_error, told_in_our_words
from hakiri_dagster.connectors.files.source_lines import Lookup
from hakiri_dagster.connectors.files.splits import Splits, splits_of
from hakiri_dagster.connectors.files.types import quoted
from hakiri_dagster.errors import NothingThere, SourceError
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.arrivals import Stamp
from hakiri_dagster.planning.backfill_hint import MONOTONIC, BackfillHint
from hakiri_dagster.planning.chunks import Slice, SourceFile
from hakiri_dagster.planning.columns import SourceSchema, is_ours
from hakiri_dagster.planning.horizon import Horizon, Lookback

_THREADS = min(8, 2 * (os.cpu_count() or 1))


@dataclass(frozen=True)
class FilesTable:
    options: FilesOptions
    place: Place
    columns: Mapping[str, str]
    label: str
    keeps_misfits: bool = False
    sub_microseconds: SubMicroseconds = "warn"
    chunked_by_file: bool = field(default=True, init=False)
    tallies_itself: bool = field(default=False, init=False)
    slices_a_pass: int | None = field(default=None, init=False)
    hint: BackfillHint = field(default=MONOTONIC, init=False)

    @cached_property
    def text_format(self) -> bool:
        declared = self.options.format or format_of(self.place.pattern)
        return (declared or self.place.listing().format) in TEXT_FORMATS

    @cached_property
    def read_as(self) -> str:
        return self.options.digest(self.place.pattern, self.columns) if self.text_format else ""

    @property
    def lineage(self) -> tuple[str, ...]:
        return "files", *(part for part in PurePath(self.place.pattern).parts if part != "/")

    def stamps(self) -> tuple[Stamp, ...]:
        """The files that are there now, unread. A folder may be empty; one that is not there is an error."""
        try:
            files = self.place.listing().files
        except NothingThere:
            if not self.place.is_folder:
                raise
            files = ()
        return tuple(Stamp(file.path, file.size, file.mtime_ns) for file in files)

    def discover(
        self, *, cursor: str | None, known: Known, spark: SparkProvider, lookback: Lookback = NO_LOOKBACK
    ) -> Discovery:
        listing = self.place.listing()
        self._refuse_wide_text(listing.format)
        text = self.options.charset if listing.format in TEXT_FORMATS else None
        if listing.format == "jsonl" and text is not None and text.is_utf8:
            text = ANY_BYTES  # a line that is no UTF-8 is quarantined by itself
        found = file_states(
            listing.files, known.files, cursor=cursor, read_as=self.read_as, text=text, label=self.label
        )
        if not found.states:
            raise SourceError("every file vanished while it was looked at", where=self.label, hint="run again")
        format_ = self._format(listing.format)
        broken = found.broken | self._broken(found.fresh - found.broken.keys(), format_)
        if broken and (cursor is not None or len(broken) == len(found.states)):
            raise broken[min(broken)]  # which windows its rows belong to is not known, or nothing else is there
        paths = [state.path for state in found.states if state.path not in broken]
        schema = format_.schema(Look(paths, found.fresh, known.schema, spark))
        states = found.states
        position = None
        if cursor is not None:
            position = Cursor.of(schema.schema, cursor, self.label)
            states = self._with_extents(states, position, schema.schema, format_, spark)
        return Discovery(
            schema=schema.schema,
            cursor_kind=position.kind if position else None,
            extent=extent_of(states) if position else None,
            files=states,
            fingerprint=source_fingerprint(states),
            rows_estimate=_rows(states),
            warnings=(*listing.warnings, *found.warnings, *schema.warnings),
            absent=schema.absent,
            broken=broken,
        )

    def read(
        self,
        spark: SparkSession,
        schema: SourceSchema,
        cursor: str | None,
        slices: Sequence[Slice],
        files: Mapping[str, FileState],
        *,
        tallied: bool = False,
        twice: bool = False,
        horizon: Horizon | None = None,
    ) -> Reading:
        states = self._needed(slices, files)
        refuse_changed(states, self.label)
        format_ = self._format(self._format_of(states))
        with told_in_our_words(self.label):
            rows = format_.rows(spark, [state.path for state in states], schema)
        every, condition = rows.frame, None
        if cursor is not None:
            position = Cursor.of(schema, cursor, self.label)
            every = self._without_cursor_where_malformed(every, cursor, schema) if rows.has_malformed else every
            condition = position.condition([one.bounds for one in slices])
        bounds = WantedRows(cursor, [one.bounds for one in slices], files)
        frame = every if condition is None else every.where(condition)
        frame = frame if rows.wanted is None else rows.wanted(bounds)
        names = [quoted(column.name) for column in schema.columns]
        marks = [MALFORMED_COLUMN] if rows.has_malformed else []
        marks += [TRUNCATED_COLUMN] if TRUNCATED_COLUMN in frame.columns else []
        marks += [FILE_COLUMN] if len(states) > 1 else []
        marks += [SPLIT_COLUMN, RECORD_COLUMN] if rows.begins is not None else []
        return Reading(
            frame=frame.select(*names, *marks),
            schema=schema,
            files=tuple(origin_of(state) for state in states),
            has_malformed=rows.has_malformed,
            warnings=rows.warnings,
            direct=rows.direct(bounds),
            explain=partial(explain_read_error, label=self.label),
            lines=self._lines(rows, states, schema, cursor, condition),
        )

    def _lines(
        self,
        rows: Rows,
        states: Sequence[FileState],
        schema: SourceSchema,
        cursor: str | None,
        wanted: Column | None,
    ) -> Callable[[Path], LineOf] | None:
        if rows.begins is None:
            return None

        def splits() -> Splits:
            frame = rows.frame_with(() if cursor is None else (cursor,))
            if cursor is not None:
                frame = self._without_cursor_where_malformed(frame, cursor, schema)
            with told_in_our_words(self.label):
                return splits_of(frame, wanted)

        by_path = {state.path: state for state in states}
        return Lookup(rows.begins, by_path, splits, passes_over=wanted is not None, label=self.label).in_folder

    def _broken(self, paths: Iterable[str], format_: FileFormat) -> dict[str, SourceError]:
        def check(path: str) -> SourceError | None:
            try:
                format_.check(path)
            except SourceError as error:
                return error
            return None

        checked = sorted(paths)
        with ThreadPoolExecutor(_THREADS) as pool:
            found = zip(checked, pool.map(check, checked), strict=True)
            return {path: error for path, error in found if error is not None}

    def _format(self, format_: Format) -> FileFormat:
        return file_format(
            format_,
            self.options,
            self.columns,
            self.label,
            self.sub_microseconds,
            keeps_misfits=self.keeps_misfits,
        )

    def _format_of(self, states: Sequence[FileState]) -> Format:
        return self.options.format or format_of(states[0].path) or self.place.listing().format

    def _refuse_wide_text(self, format_: Format) -> None:
        if format_ == "jsonl" and not self.options.charset.keeps_newlines:
            raise SourceError(
                f"JSON lines in {self.options.encoding} cannot be read",
                where=self.label,
                hint="write them as UTF-8, as the JSON standard asks",
            )

    def _with_extents(
        self,
        states: tuple[FileState, ...],
        cursor: Cursor,
        schema: SourceSchema,
        format_: FileFormat,
        spark: SparkProvider,
    ) -> tuple[FileState, ...]:
        """Footers where they tell it, else one job over the files that were never looked into."""
        unknown = [state.path for state in states if state.rows is None]
        if not unknown:
            return states
        told = dict(format_.statistics(unknown, cursor))
        silent = [path for path in unknown if path not in told]
        if silent:
            rows = format_.rows(spark(), silent, schema)
            frame = self._without_cursor_where_malformed(rows.frame_with((cursor.name,)), cursor.name, schema)
            with told_in_our_words(self.label):
                by_marker = cursor.extents(frame)
            told |= {path: by_marker.get(marker_of(path), cursor.nothing) for path in silent}
        for path, (statistics, _) in sorted(told.items()):
            cursor.refuse_beyond(statistics, path, self.label)
        return tuple(with_statistics(s, *told[s.path]) if s.path in told else s for s in states)

    def _needed(self, slices: Sequence[Slice], files: Mapping[str, FileState]) -> list[FileState]:
        for one in slices:
            if isinstance(one.bounds, SourceFile):
                self._refuse_other_contents(one.bounds, files)
        needed = [s for _, s in sorted(files.items()) if any(overlaps(s, one.bounds) for one in slices)]
        # A slice without a single row still needs a frame: any file, and the condition leaves nothing of it.
        return needed or [files[path] for path in sorted(files)[:1]]

    def _refuse_other_contents(self, file: SourceFile, files: Mapping[str, FileState]) -> None:
        state = files.get(file.path)
        if state is None:
            raise SourceError(f"{file.path} is no longer there", where=self.label, hint="run again")
        if state.content_hash != file.content_hash:
            raise SourceError(f"{file.path} has other contents than planned", where=self.label, hint="run again")

    def _without_cursor_where_malformed(self, frame: DataFrame, cursor: str, schema: SourceSchema) -> DataFrame:
        name = quoted(cursor)
        placed = F.col(MALFORMED_COLUMN).isNull()
        if self.keeps_misfits:
            placed = placed | F.col(f"{MALFORMED_COLUMN}.readable")
        told = F.when(placed, F.col(name)).alias(cursor)
        there = frozenset(frame.columns)
        columns = [
            told if column.name == cursor else F.col(quoted(column.name))
            for column in schema.columns
            if column.name in there
        ]
        marks = [name for name in frame.columns if is_ours(name)]
        return frame.select(*columns, *marks)


def _rows(states: Sequence[FileState]) -> int | None:
    counts = [state.rows for state in states if state.rows is not None]
    return sum(counts) if len(counts) == len(states) else None
