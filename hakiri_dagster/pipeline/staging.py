"""The workers' half of a load: rows in, files of encoded rows out. Runs in Spark's Python workers.

Each task writes files of its own, under names that no other task or attempt uses, and reports them; a file that no
report names does not exist for the publisher. So a retried or zombie task can neither double nor lose a row.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.contract import (
    FILE_COLUMN,
    KEPT_COLUMN,
    MALFORMED_COLUMN,
    ONWARD_COLUMN,
    SLICE_COLUMN,
    FileOrigin,
)
from hakiri_dagster.destinations.contract import (
    INGESTED_AT_COLUMN,
    KEPT_ID_COLUMN,
    LOAD_ID_COLUMN,
    SOURCE_FILE_HASH_COLUMN,
    EncoderPlan,
    Refusal,
)
from hakiri_dagster.manifest.rule_spec import RowRule, id_of
from hakiri_dagster.pipeline.attempt_folders import refuse_unshared
from hakiri_dagster.pipeline.key_digests import added
from hakiri_dagster.pipeline.key_lookup import KeyLookup, RepeatedKeys
from hakiri_dagster.pipeline.readable import settled, slices_of, unreadable
from hakiri_dagster.pipeline.row_json import rows_as_json
from hakiri_dagster.pipeline.row_places import Place, Places
from hakiri_dagster.pipeline.slice_files import REPORT_ARROW, SliceFiles
from hakiri_dagster.pipeline.slices import NO_SLICE, Splitter
from hakiri_dagster.pipeline.truncated_timestamps import count_truncated
from hakiri_dagster.pipeline.unseen import added_up, unseen_in
from hakiri_dagster.planning.cursor_positions import cursor_positions
from hakiri_dagster.quality.columnar.conditions import Condition, with_answers
from hakiri_dagster.quality.measures import Tallied
from hakiri_dagster.quality.numerics import marked
from hakiri_dagster.quality.row_rules import broken_by, message_of

MALFORMED_RULE = "malformed"

STRANGER_RULE = "unknown_column"

MOST_ROWS_OF_A_GATE = 100
"""Of each task: enough to see what is wrong."""

Warned = tuple[RowRule, np.ndarray[Any, np.dtype[np.bool_]]]
"""The rows that a rule only warns of."""


@dataclass(frozen=True, slots=True)
class StagingPlan:
    """Everything a worker needs, pickled to it.

    `strangers` are columns of the source that have no place in the target: a row that holds a value there is set aside.
    `keeps_misfits`: a value that does not fit is discarded, and its row is not. `numerics`: columns whose numbers are
    there as texts.
    """

    directory: str
    encoder: EncoderPlan
    source_columns: tuple[str, ...]
    splitter: Splitter
    load_ids: tuple[int, ...]
    files: tuple[FileOrigin, ...]
    cursor: str | None
    ingested_at: datetime | None
    strangers: tuple[str, ...] = ()
    keeps_misfits: bool = False
    numerics: frozenset[str] = frozenset()
    rules: tuple[RowRule, ...] = ()
    conditions: tuple[Condition, ...] = ()
    measures: tuple[Tallied, ...] = ()
    repeated: RepeatedKeys | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refuse_unshared(self.directory)
        return _Task(self).run(batches)


class _Task:
    """One Spark task: many batches, split into the slices' files."""

    def __init__(self, plan: StagingPlan) -> None:
        self._plan = plan
        self._name = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._slices: dict[int, SliceFiles] = {}
        self._shown_of_gates: dict[str, int] = {}
        self._hashes = {origin.marker: origin.content_hash for origin in plan.files}
        self._places = Places(plan.files)
        self._measured = list(dict.fromkeys(measure.column for measure in plan.measures))
        self._keys = KeyLookup(plan.repeated) if plan.repeated is not None else None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                self._take(batch)
        for files in self._slices.values():
            files.measure_rest(self._plan.measures)
        reports = [files.close() for files in self._slices.values()]
        yield pa.RecordBatch.from_pylist(reports, schema=REPORT_ARROW)

    def _take(self, batch: pa.RecordBatch) -> None:
        batch = self._without_onward(batch)
        self._places.note(batch)
        batch = self._without_malformed(self._without_settled(batch))
        if not batch.num_rows:
            return
        slices = self._slices_of(batch)
        if (slices == NO_SLICE).any():
            keep = slices != NO_SLICE
            batch, slices = batch.filter(pa.array(keep)), slices[keep]
        if batch.num_rows:
            self._note_unseen(batch, slices)
            self._encode(batch, slices)

    def _note_unseen(self, batch: pa.RecordBatch, slices: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        if not unseen_in(batch):
            return
        for index in np.unique(slices).tolist():
            files = self._files(index)
            files.unseen = added_up(files.unseen, unseen_in(batch.filter(pa.array(slices == index))))

    def _note_truncated(self, batch: pa.RecordBatch, slices: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        if not count_truncated(batch):
            return
        for index in np.unique(slices).tolist():
            self._files(index).truncated.update(count_truncated(batch.filter(pa.array(slices == index))))

    def _slices_of(self, batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int32]]:
        return slices_of(batch, self._plan.splitter, self._plan.cursor)

    def _without_onward(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """It is no row of the table."""
        if ONWARD_COLUMN not in batch.schema.names:
            return batch
        tokens = batch.column(ONWARD_COLUMN)
        for token in tokens.drop_null().to_pylist():
            self._files(0).onward = token
        return batch.filter(tokens.is_null())

    def _without_settled(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        done = settled(batch)
        if done is None:
            return batch
        for one in batch.column(KEPT_COLUMN).filter(done).to_pylist():
            self._files(one["slice"]).set_aside(one["verdict"], one["reason"] or "", [str(one["id"])], Place())
        return batch.filter(pc.invert(done))

    def _without_malformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Lines that could not be parsed have no cursor: they go with their file, or with rows that have none."""
        broken = unreadable(batch, keeps_misfits=self._plan.keeps_misfits)
        if broken is None:
            return batch
        self._set_aside_malformed(batch.filter(broken))
        return batch.filter(pc.invert(broken))

    def _set_aside_malformed(self, batch: pa.RecordBatch) -> None:
        marks, splitter = batch.column(MALFORMED_COLUMN), self._plan.splitter
        texts = rows_as_json(pa.record_batch({"line": pc.struct_field(marks, "line")}))
        reasons = pc.struct_field(marks, "reason").to_pylist()
        placed = splitter.by_file or splitter.single or SLICE_COLUMN in batch.schema.names
        slices = self._slices_of(batch).tolist() if placed else [splitter.null_slice] * batch.num_rows
        for index, reason, text, place in zip(slices, reasons, texts, self._places.of(batch), strict=True):
            files = self._files(max(index, 0))
            files.set_aside_unfit(MALFORMED_RULE, reason, [text], place)
            files.unplaced += not placed

    def _encode(self, batch: pa.RecordBatch, slices: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        batch, slices, warned = self._ruled(batch, slices)
        if not batch.num_rows:
            return
        candidate = self._with_provenance(batch, slices)
        storable, refusals = self._plan.encoder.prepare(candidate)
        found = [*self._strange(batch), *refusals, *self._misfits(batch)]
        keep = np.ones(batch.num_rows, dtype=bool)
        for refusal in (one for one in found if not one.value_only):
            mask = np.asarray(refusal.mask.fill_null(False))
            first = mask & keep  # a row is set aside once, with the first reason found
            for index, rows, place in self._told(batch, slices, first):
                self._files(index).set_aside_unfit(refusal.rule, refusal.message, rows, place)
            keep &= ~mask
        for refusal in (one for one in found if one.value_only):
            self._discard(slices[np.asarray(refusal.mask.fill_null(False)) & keep], refusal.message)
        for rule, broken in warned:
            self._keep(batch, slices, broken & keep, rule)
        if not keep.all():
            kept = pa.array(keep)
            batch, storable, slices = batch.filter(kept), storable.filter(kept), slices[keep]
        if storable.num_rows:
            self._note_truncated(batch, slices)
            self._write(batch, storable, slices)

    def _ruled(
        self, batch: pa.RecordBatch, slices: np.ndarray[Any, np.dtype[np.int32]]
    ) -> tuple[pa.RecordBatch, np.ndarray[Any, np.dtype[np.int32]], list[Warned]]:
        """Without the rows that rules say to skip. Each rule is asked of all rows, and counts those that break it; a
        row is set aside once. What only warns tells of the others, when it is known which of them can be stored."""
        keep = np.ones(batch.num_rows, dtype=bool)
        batch = with_answers(self._with_key_verdicts(batch, slices), self._plan.conditions)
        warned: list[Warned] = []
        asked = marked(batch, self._plan.numerics)
        for index, rule in enumerate(self._plan.rules):
            found = broken_by(rule, asked)
            if found is None:
                continue
            broken = np.asarray(found)
            for slice_index, rows in zip(*np.unique(slices[broken], return_counts=True), strict=True):
                self._files(int(slice_index)).broken[index] += int(rows)
            match rule.on_fail:
                case "skip":
                    for slice_index, told, place in self._told(batch, slices, broken & keep):
                        self._files(slice_index).set_aside(id_of(rule), message_of(rule), told, place)
                    keep &= ~broken
                case "abort":
                    self._keep(batch, slices, broken & keep, rule)
                case "warn":
                    warned.append((rule, broken))
        if keep.all():
            return batch, slices, warned
        return batch.filter(pa.array(keep)), slices[keep], [(rule, broken[keep]) for rule, broken in warned]

    def _with_key_verdicts(self, batch: pa.RecordBatch, slices: np.ndarray[Any, np.dtype[np.int32]]) -> pa.RecordBatch:
        if self._keys is None:
            return batch
        judged, sums = self._keys.judged(batch, slices)
        for slice_index, checksum in sums.items():
            files = self._files(slice_index)
            files.key_checksum = added(files.key_checksum, checksum)
        return judged

    def _keep(
        self,
        batch: pa.RecordBatch,
        slices: np.ndarray[Any, np.dtype[np.int32]],
        mask: np.ndarray[Any, np.dtype[np.bool_]],
        rule: RowRule,
    ) -> None:
        """What stops the load is shown by some of it; what only warns is kept in full."""
        if rule.on_fail == "abort":
            shown = self._shown_of_gates.get(id_of(rule), 0)
            mask = mask & (np.cumsum(mask) <= MOST_ROWS_OF_A_GATE - shown)
            self._shown_of_gates[id_of(rule)] = shown + int(mask.sum())
        for slice_index, told, place in self._told(batch, slices, mask):
            self._files(slice_index).keep(id_of(rule), message_of(rule), told, place, rule.on_fail)

    def _strange(self, batch: pa.RecordBatch) -> Iterator[Refusal]:
        for name in self._plan.strangers:
            values = batch.column(name)
            if values.null_count < batch.num_rows:
                message = f"{name}: the column is new at the source, and the target does not have it"
                yield Refusal(values.is_valid(), STRANGER_RULE, message)

    def _misfits(self, batch: pa.RecordBatch) -> Iterator[Refusal]:
        """Of rows that could be read, the values that could not."""
        if not self._plan.keeps_misfits or MALFORMED_COLUMN not in batch.schema.names:
            return
        marks = batch.column(MALFORMED_COLUMN)
        reasons = pc.struct_field(marks, "reason")
        for reason in pc.unique(reasons.drop_null()).to_pylist():
            yield Refusal(pc.equal(reasons, reason), MALFORMED_RULE, reason, value_only=True)

    def _discard(self, slices: np.ndarray[Any, np.dtype[np.int32]], message: str) -> None:
        for index, values in zip(*np.unique(slices, return_counts=True), strict=True):
            self._files(int(index)).discard(int(values), message)

    def _write(
        self, batch: pa.RecordBatch, storable: pa.RecordBatch, slices: np.ndarray[Any, np.dtype[np.int32]]
    ) -> None:
        first = int(slices[0])
        cursor = batch.column(self._plan.cursor) if self._plan.cursor else None
        measured = marked(batch.select(self._measured), self._plan.numerics) if self._measured else None
        if (slices == first).all():
            self._write_slice(first, storable, cursor, measured)
            return
        order = np.argsort(slices, kind="stable")
        ordered = storable.take(pa.array(order))
        cursors = cursor.take(pa.array(order)) if cursor is not None else None
        indexes, starts = np.unique(slices[order], return_index=True)
        ends = [*starts[1:].tolist(), len(slices)]
        for index, start, end in zip(indexes.tolist(), starts.tolist(), ends, strict=True):
            length = end - start
            part = cursors.slice(start, length) if cursors is not None else None
            # a copy: a slice's few rows must not keep all of the batch until there are more of them
            sample = measured.take(pa.array(order[start:end])) if measured is not None else None
            self._write_slice(index, ordered.slice(start, length), part, sample)

    def _write_slice(
        self, index: int, rows: pa.RecordBatch, cursor: pa.Array | None, measured: pa.RecordBatch | None
    ) -> None:
        files = self._files(index)
        files.add(rows)
        if measured is not None:
            files.measure(self._plan.measures, measured)
        if cursor is not None:
            positions, without = cursor_positions(cursor)
            if not without.all():
                highest = int(positions[~without].max())
                files.cursor_max = highest if files.cursor_max is None else max(files.cursor_max, highest)

    def _with_provenance(self, batch: pa.RecordBatch, slices: np.ndarray[Any, np.dtype[np.int32]]) -> pa.RecordBatch:
        plan = self._plan
        columns: list[pa.Array] = []
        for name in plan.encoder.columns:
            match name:
                case _ if name == LOAD_ID_COLUMN:
                    columns.append(pa.array(np.array(plan.load_ids, dtype=np.int64)[slices]))
                case _ if name == KEPT_ID_COLUMN:
                    columns.append(_kept_ids(batch))
                case _ if name == SOURCE_FILE_HASH_COLUMN:
                    columns.append(self._file_hashes(batch))
                case _ if name == INGESTED_AT_COLUMN:
                    stamp = pa.scalar(plan.ingested_at, pa.timestamp("us", tz="UTC"))
                    columns.append(pa.repeat(stamp, batch.num_rows))
                case _:
                    columns.append(batch.column(name))
        return pa.RecordBatch.from_arrays(columns, names=list(plan.encoder.columns))

    def _file_hashes(self, batch: pa.RecordBatch) -> pa.Array:
        if FILE_COLUMN not in batch.schema.names:
            one = self._plan.files[0].content_hash if self._plan.files else None
            return pa.repeat(pa.scalar(one, pa.binary()), batch.num_rows)
        markers = batch.column(FILE_COLUMN).dictionary_encode()
        hashes = [self._hashes.get(marker) for marker in markers.dictionary.to_pylist()]
        return pa.array(hashes, pa.binary()).take(markers.indices)

    def _told(
        self,
        batch: pa.RecordBatch,
        slices: np.ndarray[Any, np.dtype[np.int32]],
        mask: np.ndarray[Any, np.dtype[np.bool_]],
    ) -> Iterator[tuple[int, Sequence[str], Place]]:
        """The chosen rows as JSON, or their ids in the quarantine, with their slice, and with where they came from."""
        if not mask.any():
            return
        chosen, of_chosen = batch.filter(pa.array(mask)), slices[mask]
        rows: Iterator[str]
        if KEPT_COLUMN in batch.schema.names:
            rows = map(str, _kept_ids(chosen).to_pylist())
        else:
            rows = rows_as_json(chosen.select(list(self._plan.source_columns)))
        for begin, end, place in self._places.runs(chosen, of_chosen):
            yield int(of_chosen[begin]), list(islice(rows, end - begin)), place

    def _files(self, index: int) -> SliceFiles:
        files = self._slices.get(index)
        if files is None:
            files = SliceFiles(
                index=index,
                directory=Path(self._plan.directory),
                stem=f"{index:05d}-{self._name}",
                encoder=self._plan.encoder.encoder(),
                broken=[0] * len(self._plan.rules),
            )
            self._slices[index] = files
        return files


def _kept_ids(batch: pa.RecordBatch) -> pa.Array:
    return pc.struct_field(batch.column(KEPT_COLUMN), "id")
