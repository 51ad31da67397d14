"""The workers' half of a load: rows in, files of encoded rows out. Runs in Spark's Python workers.

Each task writes files of its own, under names that no other task or attempt uses, and reports them; a file that no
report names does not exist for the publisher. So a retried or zombie task can neither double nor lose a row.
"""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.contract import FILE_COLUMN, MALFORMED_COLUMN, DirectRows, FileOrigin
from hakiri_dagster.destinations.contract import (
    INGESTED_AT_COLUMN,
    LOAD_ID_COLUMN,
    SOURCE_FILE_HASH_COLUMN,
    EncoderPlan,
    RowEncoder,
)
from hakiri_dagster.pipeline.slices import NO_SLICE, Splitter, cursor_positions

BLOCK_BYTES = 8 * 1024 * 1024
BLOCK_SUFFIX = ".rows"
PARTIAL_SUFFIX = ".partial"
MALFORMED_RULE = "malformed"

REPORT_SCHEMA = (
    "slice int, blocks array<string>, rows bigint, bytes bigint, cursor_max bigint, "
    "bad_file string, bad_rows bigint, bad_sample string"
)
_REPORT_ARROW = pa.schema(
    [
        ("slice", pa.int32()),
        ("blocks", pa.list_(pa.string())),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("cursor_max", pa.int64()),
        ("bad_file", pa.string()),
        ("bad_rows", pa.int64()),
        ("bad_sample", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class StagingPlan:
    """Everything a worker needs, pickled to it."""

    directory: str
    encoder: EncoderPlan
    source_columns: tuple[str, ...]
    splitter: Splitter
    load_ids: tuple[int, ...]
    files: tuple[FileOrigin, ...]
    cursor: str | None
    ingested_at: datetime | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _Task(self).run(batches)


@dataclass(frozen=True, slots=True)
class DirectStaging:
    """For `mapInArrow` over part numbers: rows are read where they are staged, spared the JVM and the way back."""

    rows: DirectRows
    plan: StagingPlan

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = (part for batch in numbers for part in batch.column(0).to_pylist())
        return self.plan(batch for part in parts for batch in self.rows.read(part))


@dataclass
class _SliceFiles:
    """What one task has written of one slice."""

    index: int
    directory: Path
    stem: str
    encoder: RowEncoder
    blocks: list[str] = field(default_factory=list)
    pending: list[bytes] = field(default_factory=list)
    pending_bytes: int = 0
    rows: int = 0
    size: int = 0
    cursor_max: int | None = None
    bad: IO[str] | None = None
    bad_rows: int = 0
    bad_sample: str | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        self._append(self.encoder.write(batch))

    def _append(self, encoded: bytes) -> None:
        self.pending.append(encoded)
        self.pending_bytes += len(encoded)
        if self.pending_bytes >= BLOCK_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self.pending_bytes:
            return
        path = self.directory / f"{self.stem}-{len(self.blocks):05d}{BLOCK_SUFFIX}"
        partial = path.with_suffix(PARTIAL_SUFFIX)
        with partial.open("wb", buffering=0) as file:
            for piece in self.pending:
                file.write(piece)
        partial.rename(path)  # readers of the directory see whole blocks only
        self.blocks.append(path.name)
        self.size += self.pending_bytes
        self.pending, self.pending_bytes = [], 0

    def set_aside(self, rule: str, message: str, row: str, source_file: str | None) -> None:
        if self.bad is None:
            self.bad = self._bad_path.open("w", encoding="utf-8")
        entry = {"rule": rule, "message": message, "row": row, "source_file": source_file}
        self.bad.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self.bad_rows += 1
        if self.bad_sample is None:
            self.bad_sample = message

    @property
    def _bad_path(self) -> Path:
        return self.directory / f"{self.stem}.bad.jsonl"

    def close(self) -> dict[str, Any]:
        if self.rows:
            self._append(self.encoder.finish())
        self._flush()
        if self.bad is not None:
            self.bad.close()
        return {
            "slice": self.index,
            "blocks": self.blocks,
            "rows": self.rows,
            "bytes": self.size,
            "cursor_max": self.cursor_max,
            "bad_file": self._bad_path.name if self.bad_rows else None,
            "bad_rows": self.bad_rows,
            "bad_sample": self.bad_sample,
        }


class _Task:
    """One Spark task: many batches, split into the slices' files."""

    def __init__(self, plan: StagingPlan) -> None:
        self._plan = plan
        self._name = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._slices: dict[int, _SliceFiles] = {}
        self._hashes = {origin.marker: origin.content_hash for origin in plan.files}
        self._paths = {origin.marker: origin.path for origin in plan.files}

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                self._take(batch)
        reports = [files.close() for files in self._slices.values()]
        yield pa.RecordBatch.from_pylist(reports, schema=_REPORT_ARROW)

    def _take(self, batch: pa.RecordBatch) -> None:
        batch = self._without_malformed(batch)
        if not batch.num_rows:
            return
        slices = self._slices_of(batch)
        if (slices == NO_SLICE).any():
            keep = slices != NO_SLICE
            batch, slices = batch.filter(pa.array(keep)), slices[keep]
        if batch.num_rows:
            self._encode(batch, slices)

    def _slices_of(self, batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int32]]:
        plan = self._plan
        cursor = batch.column(plan.cursor) if plan.cursor else None
        markers = batch.column(FILE_COLUMN) if FILE_COLUMN in batch.schema.names else None
        return plan.splitter.assign(batch.num_rows, cursor, markers)

    def _without_malformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Lines that could not be parsed have no cursor: they go with their file, or with rows that have none."""
        if MALFORMED_COLUMN not in batch.schema.names:
            return batch
        texts = batch.column(MALFORMED_COLUMN)
        if texts.null_count == batch.num_rows:
            return batch
        bad = batch.filter(pc.is_valid(texts))
        splitter = self._plan.splitter
        for index in range(bad.num_rows):
            one = bad.slice(index, 1)
            slice_index = int(self._slices_of(one)[0]) if splitter.by_file else splitter.null_slice
            told = one.column(MALFORMED_COLUMN)[0].as_py()
            self._files(max(slice_index, 0)).set_aside(
                MALFORMED_RULE,
                told["reason"],
                json.dumps(_storable({"line": told["line"]}), ensure_ascii=False),
                self._path_of(one),
            )
        return batch.filter(pc.is_null(texts))

    def _path_of(self, one: pa.RecordBatch) -> str | None:
        if FILE_COLUMN in one.schema.names:
            return self._paths.get(one.column(FILE_COLUMN)[0].as_py())
        return self._plan.files[0].path if len(self._plan.files) == 1 else None

    def _encode(self, batch: pa.RecordBatch, slices: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        candidate = self._with_provenance(batch, slices)
        storable, refusals = self._plan.encoder.prepare(candidate)
        if refusals:
            keep = np.ones(batch.num_rows, dtype=bool)
            for refusal in refusals:
                mask = np.asarray(refusal.mask.fill_null(False))
                first = mask & keep  # a row is set aside once, with the first reason found
                self._set_aside(batch, slices, first, refusal.rule, refusal.message)
                keep &= ~mask
            kept = pa.array(keep)
            batch, storable, slices = batch.filter(kept), storable.filter(kept), slices[keep]
        if storable.num_rows:
            self._write(batch, storable, slices)

    def _write(
        self, batch: pa.RecordBatch, storable: pa.RecordBatch, slices: np.ndarray[Any, np.dtype[np.int32]]
    ) -> None:
        first = int(slices[0])
        cursor = batch.column(self._plan.cursor) if self._plan.cursor else None
        if (slices == first).all():
            self._write_slice(first, storable, cursor)
            return
        order = np.argsort(slices, kind="stable")
        ordered = storable.take(pa.array(order))
        cursors = cursor.take(pa.array(order)) if cursor is not None else None
        indexes, starts = np.unique(slices[order], return_index=True)
        ends = [*starts[1:].tolist(), len(slices)]
        for index, start, end in zip(indexes.tolist(), starts.tolist(), ends, strict=True):
            length = end - start
            part = cursors.slice(start, length) if cursors is not None else None
            self._write_slice(index, ordered.slice(start, length), part)

    def _write_slice(self, index: int, rows: pa.RecordBatch, cursor: pa.Array | None) -> None:
        files = self._files(index)
        files.add(rows)
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

    def _set_aside(
        self,
        batch: pa.RecordBatch,
        slices: np.ndarray[Any, np.dtype[np.int32]],
        mask: np.ndarray[Any, np.dtype[np.bool_]],
        rule: str,
        message: str,
    ) -> None:
        for position in np.flatnonzero(mask).tolist():
            one = batch.slice(position, 1)
            row = one.select(list(self._plan.source_columns)).to_pylist()[0]
            text = json.dumps(_storable(row), ensure_ascii=False)
            self._files(int(slices[position])).set_aside(rule, message, text, self._path_of(one))

    def _files(self, index: int) -> _SliceFiles:
        files = self._slices.get(index)
        if files is None:
            files = _SliceFiles(
                index=index,
                directory=Path(self._plan.directory),
                stem=f"{index:05d}-{self._name}",
                encoder=self._plan.encoder.encoder(),
            )
            self._slices[index] = files
        return files


def _storable(value: object) -> object:
    """As JSON that a jsonb column takes: it has neither NaN nor U+0000."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return value.replace("\x00", "\\u0000")
        case bytes():
            return value.hex()
        case dict():
            return {str(_storable(key)): _storable(item) for key, item in value.items()}
        case list() | tuple():
            return [_storable(item) for item in value]
        case _:
            return str(value)
