"""One pass over the source for many slices: read, project, stage. The candidates come out one a slice."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame

from hakiri_dagster.connectors.contract import DirectRows, Reading
from hakiri_dagster.destinations.contract import BadRow, Candidate, Destination, Fence, Load, LoadAnswers, Target
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.manifest.rule_spec import RowRule
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.attempt_folders import new_attempt_folder
from hakiri_dagster.pipeline.candidate import SliceReport, Staging
from hakiri_dagster.pipeline.claims import ClaimedSlice, spark_tag
from hakiri_dagster.pipeline.direct import EmptyTextsAsNull, map_rows
from hakiri_dagster.pipeline.gaps import lost_loads
from hakiri_dagster.pipeline.key_plan import KeyPlan
from hakiri_dagster.pipeline.key_search import repeated_keys
from hakiri_dagster.pipeline.load_profile import LoadProfiling
from hakiri_dagster.pipeline.paced import paced
from hakiri_dagster.pipeline.projection import arrow_columns, project, with_verdicts
from hakiri_dagster.pipeline.reconciliation import Reconciliation
from hakiri_dagster.pipeline.row_lines import RowLines
from hakiri_dagster.pipeline.shapes import cursor_of
from hakiri_dagster.pipeline.slice_files import REPORT_SCHEMA
from hakiri_dagster.pipeline.slices import Splitter
from hakiri_dagster.pipeline.staging import StagingPlan
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.arrow_types import arrow_type, is_text, kinds_of
from hakiri_dagster.planning.chunks import Bounds, CursorRange
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.planning.intervals import Intervals, union
from hakiri_dagster.planning.parts import part_of
from hakiri_dagster.quality.columnar.conditions import Condition
from hakiri_dagster.quality.expression_rules import judges
from hakiri_dagster.quality.measures import Answer, ColumnMeasure, Measure, Tallied
from hakiri_dagster.quality.numerics import numeric_texts
from hakiri_dagster.quality.profile import TableProfile
from hakiri_dagster.quality.validators.registry import Asked

SLICES_A_PASS = 128
"""Bounds open files and encoders a worker, and the disk that candidates take."""


def passes(slices: Sequence[ClaimedSlice], at_most: int | None = None) -> Iterator[Sequence[ClaimedSlice]]:
    """`at_most`: what the source thinks best."""
    size = min(at_most or SLICES_A_PASS, SLICES_A_PASS)
    for start in range(0, len(slices), size):
        yield slices[start : start + size]


@dataclass(frozen=True, slots=True)
class StagedSlice:
    claimed: ClaimedSlice
    load: Load
    candidate: Candidate
    only_chunk: bool
    """The table has no other."""
    _staging: Staging
    _source: Reconciliation
    _profiling: LoadProfiling
    _index: int

    @property
    def report(self) -> SliceReport:
        return self._staging.report(self._index)

    @property
    def profile(self) -> TableProfile | None:
        """Of its rows as they were staged, where the manifest asks for it."""
        return self._profiling.profile(self.report.rows, self.report.tallies)

    def bad_rows(self) -> Iterator[BadRow]:
        return self._staging.bad_rows(self._index)

    def at_source(self, given: LoadAnswers) -> Mapping[Measure, Answer]:
        """What the source says of its rows, where a validator compares them with those that are here."""
        return self._source.answers(self._index, given)

    def path_of(self, file_hash: bytes | None) -> str | None:
        return None if file_hash is None else self._staging.paths.get(file_hash)

    def was_read(self) -> bool:
        """Down to its last row, whatever became of them."""
        return self._staging.finished and not self._staging.failed

    def reading_failed(self) -> bool:
        return self._staging.failed

    def forget_files(self) -> None:
        self._staging.forget(self._index)


@dataclass(frozen=True, slots=True)
class Staged:
    slices: tuple[StagedSlice, ...]
    _staging: Staging
    _source: Reconciliation

    def tally_source(self, destination: Destination) -> None:
        """Meanwhile Spark goes on."""
        load = self.slices[0].load  # all are of the same columns
        self._source.ask(lambda digest: destination.digest_forms(load, digest))

    def raise_if_reading_failed(self) -> None:
        """Spark's error belongs to all slices of the pass, not to the one that met it first."""
        if self._staging.failed:
            self._staging.reports()

    def stop_reading(self) -> None:
        self._staging.stop()

    def when_read(self, told: Callable[[BaseException | None], None]) -> None:
        self._staging.when_read(told)


@contextmanager
def staged(way: Way, survey: Survey, target: Target, group: Sequence[ClaimedSlice]) -> Iterator[Staged]:
    directory = new_attempt_folder(way.candidates, way.table, way.holder)
    with translate_spark_errors():
        spark = way.spark()
        reading = survey.read(spark, [claim.slice for claim in group], tallied=_reconciles(way.table))
    for warning in reading.warnings:
        way.observer.warned(way.table, warning)
    try:
        splitter = Splitter.of(
            [claim.slice.bounds for claim in group], {file.path: file.marker for file in reading.files}
        )
        rows = read_rows(way, reading, survey.schema, splitter, way.table.validation.row_level)
        profiling = LoadProfiling.wanted(way.table, target, survey.schema, reading.schema)
        asked = Asked.by(way.table.validation.dataset_level.validators, portable=not way.source.tallies_itself)
        measures = profiling.measures(_counted_in_passing(asked), slices=len(group))
        staging = stage(way, target, rows, survey.schema, [claim.fence for claim in group], directory, measures)
        source = _reconciliation(way, rows, group)
        try:
            only_chunk, texts = len(survey.chunks) == 1, _texts_of(reading.schema)
            unknown = lost_loads(way, survey)
            bounds = tuple(claim.slice.bounds for claim in group)
            shared = _Pass(way, survey, target, unknown, staging, source, profiling, asked, texts, only_chunk, bounds)
            yield Staged(tuple(itertools.starmap(shared.slice, enumerate(group))), staging, source)
        finally:
            staging.close()
    finally:
        reading.close()


@dataclass(frozen=True, slots=True)
class ReadRows:
    """`projected` is what is to be stored, `frame` also has what Spark says of the `rules`; the workers find out what
    the `conditions` say. `direct`: the rows need not pass through the frame. `keys`: nor what tells the keys of unique
    rows."""

    reading: Reading
    projected: DataFrame
    frame: DataFrame
    splitter: Splitter
    direct: DirectRows | None
    keys: DirectRows | None
    rules: tuple[RowRule, ...]
    conditions: tuple[Condition, ...]


def read_rows(
    way: Way, reading: Reading, loaded: SourceSchema, splitter: Splitter, rules: tuple[RowRule, ...]
) -> ReadRows:
    table = way.table
    empty_as_null = way.empty_as_null
    full_provenance = table.load.provenance == "full"
    asked = judges(rules, kinds_of(reading.schema.columns))
    with translate_spark_errors():
        projected = project(reading, loaded, empty_as_null=empty_as_null, with_row_hash=full_provenance)
        frame = with_verdicts(projected, asked.spark, reading.schema)
    direct = reading.direct
    if direct is not None and empty_as_null:
        direct = EmptyTextsAsNull(direct, _texts_of(reading.schema))
    past_spark = None if full_provenance or asked.spark else direct
    return ReadRows(reading, projected, frame, splitter, past_spark, direct, rules, asked.workers)


def stage(
    way: Way,
    target: Target,
    rows: ReadRows,
    loaded: SourceSchema,
    fences: Sequence[Fence],
    directory: Path,
    measures: tuple[Tallied, ...] = (),
) -> Staging:
    """Sets Spark to work. `fences` are the slices', in their order."""
    table, reading, tag = way.table, rows.reading, spark_tag(way.holder)
    numerics = numeric_texts(reading.schema.columns)
    same_twice = rows.direct is not None and rows.direct.same_twice
    keys = KeyPlan.of(table, directory, rows.splitter, numerics, same_twice=same_twice)
    with translate_spark_errors():
        encoder = way.destination.encoder_plan(table, target, arrow_columns(rows.frame, loaded))
    plan = StagingPlan(
        directory=str(directory),
        encoder=encoder,
        source_columns=tuple(column.name for column in reading.schema.columns),
        splitter=rows.splitter,
        load_ids=tuple(fence.load_id for fence in fences),
        files=reading.files,
        cursor=cursor_of(table),
        ingested_at=datetime.now(UTC) if table.load.provenance == "full" else None,
        strangers=tuple(column.name for column in reading.schema.columns if loaded.column(column.name) is None),
        keeps_misfits=table.contract == "discard_value",
        numerics=numerics,
        rules=rows.rules,
        conditions=rows.conditions,
        measures=measures,
        repeated=repeated_keys(keys, rows.frame, rows.keys, reading.explain, tag=tag),
    )
    with translate_spark_errors():  # a JVM may die between any two words to it
        staged = map_rows(rows.frame, rows.direct, plan, REPORT_SCHEMA)
        lines = RowLines(reading.lines(directory) if reading.lines is not None else None)
        return Staging(staged, plan, tag=tag, explain=reading.explain, lines=lines)


def _reconciles(table: Table) -> bool:
    return bool(table.validation.dataset_level.row_count_matches_source)


def _reconciliation(way: Way, rows: ReadRows, group: Sequence[ClaimedSlice]) -> Reconciliation:
    table, slices = way.table, [claim.slice for claim in group]
    validators = table.validation.dataset_level.validators
    return Reconciliation(
        rows.reading, rows.projected, rows.splitter, cursor_of(table), slices, validators, way.empty_as_null
    )


def _texts_of(schema: SourceSchema) -> frozenset[str]:
    return frozenset(column.name for column in schema.columns if is_text(arrow_type(column.spark_type)))


def _counted_in_passing(asked: Asked) -> list[ColumnMeasure]:
    return [one for one in asked.in_passing if isinstance(one, ColumnMeasure)]


@dataclass(frozen=True, slots=True)
class _Pass:
    """What its slices have in common."""

    way: Way
    survey: Survey
    target: Target
    unknown: tuple[int, ...]
    staging: Staging
    source: Reconciliation
    profiling: LoadProfiling
    asked: Asked
    texts: frozenset[str]
    only_chunk: bool
    bounds: tuple[Bounds, ...]

    def slice(self, index: int, claim: ClaimedSlice) -> StagedSlice:
        load = Load(
            table=self.way.table,
            slice=claim.slice,
            fence=claim.fence,
            run_id=self.way.run_id,
            attempt=claim.attempt,
            target=self.target,
            columns=self.staging.columns,
            supersedes=claim.claim.due.supersedes,
            occasion=self.way.occasion,
            asked=self.asked,
            texts=self.texts,
            takes_mark_back=self.survey.takes_mark_back(claim.slice),
            unknown=self.unknown,
            rereads=self._rereads(index),
            read_after=self.survey.read_after,
        )
        candidate = paced(self.way, self.staging.candidate(index), claim.key)
        return StagedSlice(claim, load, candidate, self.only_chunk, self.staging, self.source, self.profiling, index)

    def _rereads(self, index: int) -> Intervals:
        """From the slice on: those after it are published after it, and say themselves what is there."""
        part = part_of(self.bounds[index])
        ranges = (one for one in self.bounds[index:] if isinstance(one, CursorRange))
        return union(one.interval for one in ranges if one.part == part)
