"""The files that one task writes of one slice, and what it reports of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from hakiri_dagster.destinations.contract import BadRow, RowEncoder
from hakiri_dagster.manifest.rule_spec import RowOnFail
from hakiri_dagster.pipeline.key_digests import signed
from hakiri_dagster.pipeline.row_places import Place
from hakiri_dagster.pipeline.unseen import packed as packed_unseen
from hakiri_dagster.quality.measures import Tallied
from hakiri_dagster.quality.tallies import Tally, add_up, packed, tally

BLOCK_BYTES = 8 * 1024 * 1024
ROWS_MEASURED_AT_ONCE = 16_384
BYTES_MEASURED_AT_ONCE = 1024 * 1024
BLOCK_SUFFIX = ".rows"
PARTIAL_SUFFIX = ".partial"

REPORT_SCHEMA = (
    "slice int, blocks array<string>, rows bigint, bytes bigint, cursor_max bigint, "
    "bad_file string, bad_rows bigint, unplaced bigint, bad_sample string, unfit bigint, unfit_sample string, "
    "discarded bigint, discard_sample string, unseen string, truncated map<string,bigint>, "
    "broken array<bigint>, tallies binary, key_checksum bigint, onward string"
)
REPORT_ARROW = pa.schema(
    [
        ("slice", pa.int32()),
        ("blocks", pa.list_(pa.string())),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("cursor_max", pa.int64()),
        ("bad_file", pa.string()),
        ("bad_rows", pa.int64()),
        ("unplaced", pa.int64()),
        ("bad_sample", pa.string()),
        ("unfit", pa.int64()),
        ("unfit_sample", pa.string()),
        ("discarded", pa.int64()),
        ("discard_sample", pa.string()),
        ("unseen", pa.string()),
        ("truncated", pa.map_(pa.string(), pa.int64())),
        ("broken", pa.list_(pa.int64())),
        ("tallies", pa.binary()),
        ("key_checksum", pa.int64()),
        ("onward", pa.string()),
    ]
)


@dataclass
class SliceFiles:
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
    unplaced: int = 0
    """How many of them may belong to any slice: of a line that cannot be parsed nobody knows the cursor."""
    bad_sample: str | None = None
    unfit: int = 0
    """Of the bad rows, those that could not be parsed or stored: no rule said so."""
    unfit_sample: str | None = None
    discarded: int = 0
    discard_sample: str | None = None
    unseen: Mapping[str, int] = field(default_factory=dict)
    """How many values the members have for which there is no column."""
    truncated: Counter[str] = field(default_factory=Counter)
    """How many timestamps of the rows were cut to microseconds, by column."""
    broken: list[int] = field(default_factory=list)
    """How many rows broke each of the table's rules."""
    key_checksum: int = 0
    """Of the keys that must be unique."""
    onward: str | None = None
    """Of a segment that was walked to its end: what leads on."""
    tallies: list[Tally] = field(default_factory=list)
    """What the rows say to each of the measures that are asked in passing."""
    _unmeasured: list[pa.RecordBatch] = field(default_factory=list)
    _unmeasured_bytes: int = 0
    _bad_about: tuple[str, str, str | None, RowOnFail, int | None] | None = None

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

    def measure(self, measures: Sequence[Tallied], rows: pa.RecordBatch) -> None:
        """Not a handful of rows at a time: a batch may be split among many slices."""
        self._unmeasured.append(rows)
        self._unmeasured_bytes += rows.nbytes
        waiting = sum(part.num_rows for part in self._unmeasured)
        if waiting >= ROWS_MEASURED_AT_ONCE or self._unmeasured_bytes >= BYTES_MEASURED_AT_ONCE:
            self.measure_rest(measures)

    def measure_rest(self, measures: Sequence[Tallied]) -> None:
        if self._unmeasured:
            rows = pa.Table.from_batches(self._unmeasured).combine_chunks().to_batches()[0]
            found = [tally(measure, rows) for measure in measures]
            self.tallies = add_up(self.tallies, found) if self.tallies else [one.settled() for one in found]
            self._unmeasured, self._unmeasured_bytes = [], 0

    def set_aside(self, rule: str, message: str, rows: Sequence[str], place: Place) -> None:
        self.keep(rule, message, rows, place, "skip")
        self.bad_rows += len(rows)
        if self.bad_sample is None:
            self.bad_sample = message

    def set_aside_unfit(self, why: str, message: str, rows: Sequence[str], place: Place) -> None:
        self.set_aside(why, message, rows, place)
        self.unfit += len(rows)
        if self.unfit_sample is None:
            self.unfit_sample = message

    def keep(self, rule: str, message: str, rows: Sequence[str], place: Place, on_fail: RowOnFail) -> None:
        """For the quarantine, whether or not the rows go on."""
        if self.bad is None:
            self.bad = self._bad_path.open("w", encoding="utf-8")
        about = (rule, message, place.file, on_fail, place.split)
        if about != self._bad_about:  # many rows one after the other are there for one reason
            self.bad.write(json.dumps(about, ensure_ascii=False) + "\n")
            self._bad_about = about
        before = "" if place.after is None else f"{place.after} "
        self.bad.writelines(f"{before}{row}\n" for row in rows)

    def discard(self, values: int, message: str) -> None:
        self.discarded += values
        if self.discard_sample is None:
            self.discard_sample = message

    @staticmethod
    def kept_in(lines: Iterable[str], line_of: Callable[[Place], int | None]) -> Iterator[BadRow]:
        """What `keep` has written: rows are objects, with their place in the split before them if they have one, and
        what they are there for is a list before them all."""
        rule, message = "", ""
        file, split = None, None
        on_fail: RowOnFail = "skip"
        for line in lines:
            if line.startswith("["):
                rule, message, file, on_fail, split = json.loads(line)
                continue
            after, _, row = line.rstrip("\n").partition(" ") if split is not None else ("", "", line.rstrip("\n"))
            place = Place(file, split, int(after) if after else None)
            yield BadRow(rule, message, row, file, line_of(place), on_fail)

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
            "bad_file": self._bad_path.name if self.bad is not None else None,
            "bad_rows": self.bad_rows,
            "unplaced": self.unplaced,
            "bad_sample": self.bad_sample,
            "unfit": self.unfit,
            "unfit_sample": self.unfit_sample,
            "discarded": self.discarded,
            "discard_sample": self.discard_sample,
            "unseen": packed_unseen(self.unseen),
            "truncated": list(self.truncated.items()),
            "broken": self.broken,
            "tallies": packed(self.tallies),
            "key_checksum": signed(self.key_checksum),
            "onward": self.onward,
        }
