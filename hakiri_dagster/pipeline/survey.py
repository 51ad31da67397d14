"""What a table's source holds, what of it is published, and what is due: all that `plan` tells, and that a load begins
with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import SparkSession

from hakiri_dagster.audit.tables import StoredPlan
from hakiri_dagster.connectors.contract import Discovery, Reading, SourceTable
from hakiri_dagster.destinations.contract import Destination, Doubt, LedgerEntry, Mark, SchemaChange, Target
from hakiri_dagster.errors import HakiriError, SourceError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.evolution import refusals, refused_changes
from hakiri_dagster.pipeline.key_plan import keys_of
from hakiri_dagster.pipeline.ownership import Ownership
from hakiri_dagster.pipeline.shapes import (
    Shape,
    cursor_of,
    due_of,
    lag_of,
    parallelism_of,
    window_of,
)
from hakiri_dagster.pipeline.wanted import Wanted
from hakiri_dagster.planning.again import loaded_again
from hakiri_dagster.planning.arrow_types import kinds_of
from hakiri_dagster.planning.backfill_hint import objections
from hakiri_dagster.planning.chunks import NULL_KEY, OUTSIDE_KEY, Chunk, CursorRange, Slice, SourceFile, WholeTable
from hakiri_dagster.planning.columns import SourceSchema
from hakiri_dagster.planning.earlier_parts import renamed_key
from hakiri_dagster.planning.evolution import Evolution
from hakiri_dagster.planning.generations import with_generation
from hakiri_dagster.planning.horizon import CursorHistory, Reread
from hakiri_dagster.planning.intervals import high
from hakiri_dagster.planning.mode_switch import Switch
from hakiri_dagster.planning.parts import bare_key, part_of
from hakiri_dagster.planning.phases import Owed, Phase, Standing, sla_of, source_upper, table_phase
from hakiri_dagster.planning.rewind import RewoundChunk
from hakiri_dagster.planning.schema_diff import Change
from hakiri_dagster.planning.source_files import FileVersion
from hakiri_dagster.planning.states import ChunkState, Due, DueSlice
from hakiri_dagster.planning.turns import in_cursor_order
from hakiri_dagster.planning.windows import parse_window
from hakiri_dagster.quality import row_rules
from hakiri_dagster.quality.validators import registry as validators


@dataclass(frozen=True, slots=True)
class Survey:
    table: Table
    source: SourceTable
    shape: Shape
    discovery: Discovery
    chunks: tuple[Chunk, ...]
    states: tuple[ChunkState, ...]
    due: Due
    plan: str
    plan_changed: bool
    target: Target | None
    mark: Mark | None
    switch: Switch
    ledger: tuple[LedgerEntry, ...]
    evolution: Evolution | None
    changes: tuple[SchemaChange, ...]
    warnings: tuple[str, ...]
    moment: datetime
    taken_in: dict[str, FileVersion]
    owed_hooks: tuple[str, ...]
    doubts: tuple[Doubt, ...]
    last_rewind: int
    rewound: Mapping[str, RewoundChunk]
    mark_is_rewound: bool
    ownership: Ownership

    @property
    def followed(self) -> Evolution:
        if self.evolution is None:
            raise SourceError("the source's columns are not known", where=self.table.label)
        return self.evolution

    @property
    def schema(self) -> SourceSchema:
        """The columns that are loaded."""
        return self.followed.loaded

    @property
    def refused_changes(self) -> tuple[Change, ...]:
        return () if self.evolution is None else refused_changes(self.evolution, self.changes, self.target)

    @property
    def refusals(self) -> tuple[str, ...]:
        by_contract = () if self.evolution is None else tuple(refusals(self.table, self.evolution))
        changes = (change.description for change in self.changes if change.refused)
        doubts = (doubt.reason for doubt in self.doubts if not doubt.may_pass)
        too_parallel = objections(self.source.hint, parallelism_of(self.table, self.source.hint))
        return (
            *self.ownership.refusals,
            *too_parallel,
            *self._objections_to_kind(),
            *self.switch.refusals,
            *by_contract,
            *changes,
            *self._objections_to_checks(),
            *doubts,
        )

    def _objections_to_kind(self) -> Iterator[str]:
        if self.shape == "segments" and self.table.mode not in ("append", "upsert"):
            yield f"load mode {self.table.mode} cannot take a table in segments; use append or upsert"
        if self.shape == "cursor" and self.table.in_order and self.source.hint.partition_keys:
            yield (
                f"load mode {self.table.mode} keeps one mark a table, and its parts are loaded each by itself; "
                "use append or upsert"
            )
        renamed = renamed_key(self.states, self.discovery.parts)
        if renamed is not None:
            yield renamed

    def _objections_to_checks(self) -> Iterator[str]:
        """By the columns that a load looks at: those that a contract leaves out are not there to be asked of."""
        validation = self.table.validation
        if self.evolution is not None and (validation.row_level or validation.dataset_level.validators):
            kinds = kinds_of(self.evolution.read.columns)
            yield from row_rules.objections(validation.row_level, kinds)
            yield from validators.objections(validation.dataset_level.validators, kinds)

    @property
    def in_order(self) -> bool:
        """Its chunks are published one after the other: all of them, or those of each part."""
        return self.table.in_order or (self.shape == "cursor" and self.source.hint.in_order)

    @property
    def from_files(self) -> bool:
        return bool(self.discovery.files)

    @property
    def due_keys(self) -> tuple[str, ...]:
        return tuple(due.key for due in (*self.due.slices, *self.due.busy))

    @property
    def due_in_turn(self) -> tuple[str, ...]:
        """As many ticks take them: those that failed last, and of these the least tried first. So nothing that fails
        again and again holds up what is new."""
        if self.in_order:
            return tuple(due.key for due in in_cursor_order((*self.due.slices, *self.due.busy)))
        tries = {state.key: state.attempts for state in self.states if state.status == "failed"}
        return tuple(sorted(self.due_keys, key=lambda key: tries.get(key, 0)))

    @property
    def failed_keys(self) -> frozenset[str]:
        return frozenset(state.key for state in self.states if state.status == "failed" and not state.killed)

    @property
    def killed_keys(self) -> frozenset[str]:
        """Tried, and ended by something else than their load."""
        return frozenset(state.key for state in self.states if state.status == "failed" and state.killed)

    @property
    def newest_keys(self) -> frozenset[str]:
        """The chunks that no other comes after: the last window, of each part, the last file by its name, or the whole
        table."""
        last = {part_of(c.bounds): c.key for c in self.chunks if bare_key(c.key) not in (NULL_KEY, OUTSIDE_KEY)}
        return frozenset(last.values())

    def meant(self, wanted: Wanted, owed: Due) -> list[DueSlice]:
        planned = {chunk.key for chunk in self.chunks}
        return [due for due in (*owed.slices, *owed.busy) if wanted.means(due.key, planned)]

    def read(self, spark: SparkSession, slices: Sequence[Slice], *, tallied: bool) -> Reading:
        files = {file.path: file for file in self.discovery.files}
        twice = bool(keys_of(self.table.validation.row_level))
        cursor = cursor_of(self.table)
        return self.source.read(
            spark,
            self.followed.read,
            cursor,
            slices,
            files,
            tallied=tallied,
            twice=twice,
            horizon=self.discovery.horizon,
        )

    def target_in(self, destination: Destination) -> Target:
        """As the columns that are loaded need it."""
        return destination.ensure_target(
            self.table, self.schema, with_file_hash=self.from_files, widened=self.followed.widenings
        )

    def owed(self, wanted: Wanted) -> Due:
        """What a run is to load: what is due, or the wanted chunks whole whether they are due or not."""
        if wanted.due_only:
            return self.due
        spared = self.published_by(wanted)
        chunks = [chunk for chunk in self.chunks if wanted.means_again(chunk.key) and chunk.key not in spared]
        return self._due_after(loaded_again(self.states, chunks))

    def goes_on(self, wanted: Wanted) -> Wanted:
        """A walk that broke off behind what it was asked for has published all of that, and is owed the rest."""
        return wanted.beyond(self.published_by(wanted), self.due_keys) if self.shape == "segments" else wanted

    def published_by(self, wanted: Wanted) -> set[str]:
        """By the runs that it tries again."""
        mine = (entry for entry in self.ledger if not entry.superseded and entry.run_id in wanted.published_by)
        return {entry.chunk_key for entry in mine}

    @property
    def stored_plan(self) -> StoredPlan:
        """As partitions are made from it: from the start of the first window, of which a chunk may be a part."""
        kind = self.discovery.cursor_kind
        ranges = (chunk.bounds for chunk in self.chunks if bare_key(chunk.key) != OUTSIDE_KEY)
        uppers = (bounds.interval.upper for bounds in ranges if isinstance(bounds, CursorRange))
        first = min((upper for upper in uppers if upper is not None), default=None)
        if kind is None or first is None:
            return StoredPlan(self.plan, None)
        window = parse_window(window_of(self.table, self.source.hint), kind)
        return StoredPlan(self.plan, window.start(window.index(first - 1)), self.source_upper)

    @property
    def source_upper(self) -> int | None:
        return source_upper(self.discovery.extent, self.discovery.cursor_kind, self.moment)

    @property
    def reread(self) -> Reread | None:
        """The stretch of the cursor that the load after the next reads again."""
        horizon, extent = self.discovery.horizon, self.discovery.extent
        return None if horizon is None or extent is None else horizon.reread(extent.newest, lag_of(self.table))

    @property
    def cursor_history(self) -> CursorHistory | None:
        """What the next survey has to know of the transactions that were open at this one."""
        horizon = self.discovery.horizon
        return None if horizon is None else replace(horizon.history, reread=self.reread)

    @property
    def phase(self) -> Phase:
        """As `status` tells it from what this look leaves in the audit DB."""
        after = {state.key: state for state in (*self.states, *self.due.states)}
        owed = [Owed.of(after[key]) for key in self.due_keys if key in after]
        standing = Standing(len(self.chunks), owed, self.discovery.cursor_kind, self.source_upper, self.moment)
        return table_phase(standing, sla_of(self.table))

    def versions(self) -> list[FileVersion]:
        """Of the files that can be read: what could not be is looked at again."""
        return [file for file in self.discovery.files if file.path not in self.discovery.broken]

    def broken(self, slice_: Slice) -> HakiriError | None:
        """Why the rows of a slice cannot be read, as far as looking at the source tells."""
        match slice_.bounds:
            case SourceFile(path, _):
                return self.discovery.broken.get(path)
            case WholeTable():
                return next(iter(self.discovery.broken.values()), None)
            case _:
                return None

    @property
    def has_one_row_a_key(self) -> bool:
        """Whether the source cannot have two rows of one key, by which the target is merged."""
        unique = self.discovery.schema.primary_key if self.discovery.schema is not None else ()
        return bool(unique) and set(unique) <= set(self.table.upsert_key or unique)

    @property
    def read_after(self) -> datetime | None:
        """Until when loads had been published when the source was looked at, where it has one row of each key."""
        if not self.has_one_row_a_key:
            return None
        return max((entry.published_at for entry in self.ledger), default=None)

    def takes_mark_back(self, slice_: Slice) -> bool:
        """It comes before the chunk that holds the mark, which is rewound."""
        position = None if self.mark is None else self.mark.position
        if position is None or not self.mark_is_rewound or not isinstance(slice_.bounds, CursorRange):
            return False
        return high(slice_.bounds.interval) <= position

    def _due_after(self, states: Sequence[ChunkState]) -> Due:
        due = due_of(self.table, self.shape, self.discovery, self.chunks, states, self.taken_in, self.moment, self.mark)
        return with_generation(due, self.chunks, states, self.plan_changed)
