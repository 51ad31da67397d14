"""The keys that a table's rules want to be unique, seen before the rows are staged. Runs in Spark's workers."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.contract import FILE_COLUMN, KEPT_COLUMN, MALFORMED_COLUMN, SLICE_COLUMN
from hakiri_dagster.manifest.rule_spec import RowRule, UniqueRule, fields_of
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.attempt_folders import refuse_unshared
from hakiri_dagster.pipeline.key_digests import Digests, Slices, added, checksums, digests_of, keyed_rows, signed
from hakiri_dagster.pipeline.key_runs import RUN_ROWS, Runs
from hakiri_dagster.pipeline.readable import settled, slices_of, unreadable
from hakiri_dagster.pipeline.shapes import cursor_of
from hakiri_dagster.pipeline.slices import NO_SLICE, Splitter
from hakiri_dagster.quality.numerics import marked, told_apart
from hakiri_dagster.quality.verdicts import verdict_of

SEEN_SCHEMA = "file string, rows bigint, slice int, checksum bigint"
_MARKS = (FILE_COLUMN, MALFORMED_COLUMN, SLICE_COLUMN, KEPT_COLUMN)
_SEEN_ARROW = pa.schema([("file", pa.string()), ("rows", pa.int64()), ("slice", pa.int32()), ("checksum", pa.int64())])


@dataclass(frozen=True, slots=True)
class Key:
    """`place`: of the rule among the others of its type. `numerics`: columns whose numbers are there as texts."""

    place: int
    fields: tuple[str, ...]
    verdict: str
    numerics: frozenset[str] = frozenset()

    def of(self, batch: pa.RecordBatch, slices: Slices, seed: int) -> tuple[npt.NDArray[np.bool_], Digests]:
        """Which rows have one, for NULL is none, and the digests of these."""
        columns = [told_apart(column) for column in marked(batch.select(list(self.fields)), self.numerics).columns]
        keyed = keyed_rows(columns)
        if not keyed.all():
            columns = [column.filter(pa.array(keyed)) for column in columns]
        return keyed, digests_of(columns, self.place, slices[keyed], seed)


def keys_of(rules: Sequence[RowRule], numerics: frozenset[str] = frozenset()) -> tuple[Key, ...]:
    unique = [rule for rule in rules if isinstance(rule, UniqueRule)]
    return tuple(Key(place, fields_of(rule), verdict_of(rule), numerics) for place, rule in enumerate(unique))


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """What a worker needs to see them, pickled to it. `same_twice`: the rows that are staged later will be those that
    are seen, or none, so that nobody need sum them up."""

    directory: str
    keys: tuple[Key, ...]
    splitter: Splitter
    cursor: str | None
    keeps_misfits: bool
    seed: int
    run_rows: int
    same_twice: bool = False

    @classmethod
    def of(
        cls, table: Table, directory: Path, splitter: Splitter, numerics: frozenset[str], *, same_twice: bool
    ) -> KeyPlan:
        return cls(
            directory=str(directory),
            keys=keys_of(table.validation.row_level, numerics),
            splitter=splitter,
            cursor=cursor_of(table),
            keeps_misfits=table.contract == "discard_value",
            seed=secrets.randbits(64),
            run_rows=RUN_ROWS,
            same_twice=same_twice,
        )

    @property
    def columns(self) -> frozenset[str]:
        """What tells keys and slices."""
        fields = {field for key in self.keys for field in key.fields}
        return frozenset({*fields, *([self.cursor] if self.cursor else []), *_MARKS})

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refuse_unshared(self.directory)
        runs = Runs(Path(self.directory), self.run_rows)
        sums: dict[int, int] = defaultdict(int)
        for batch in batches:
            if batch.num_rows:
                self._see(batch, runs, sums)
        runs.flush()
        files = [{"file": file, "rows": rows} for file, rows in runs.written]
        told = [{"slice": index, "checksum": signed(checksum)} for index, checksum in sums.items()]
        yield pa.RecordBatch.from_pylist([*files, *told], schema=_SEEN_ARROW)

    def _see(self, batch: pa.RecordBatch, runs: Runs, sums: dict[int, int]) -> None:
        for apart in (unreadable(batch, keeps_misfits=self.keeps_misfits), settled(batch)):
            if apart is not None:
                batch = batch.filter(pc.invert(apart))
        slices = slices_of(batch, self.splitter, self.cursor)
        if (slices == NO_SLICE).any():
            mine = slices != NO_SLICE
            batch, slices = batch.filter(pa.array(mine)), slices[mine]
        for key in self.keys:
            keyed, digests = key.of(batch, slices, self.seed)
            runs.add(digests)
            if not self.same_twice:
                for index, checksum in checksums(digests, slices[keyed]).items():
                    sums[index] = added(sums[index], checksum)
