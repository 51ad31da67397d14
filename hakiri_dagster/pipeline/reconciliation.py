"""The rows of a pass, counted once more at the source, to be compared with what the destination was given.

A source that can do so counts by itself, in the view that was read. Others are read again by Spark, in its own way also
where the rows of the load were read in another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import (
    FILE_COLUMN,
    MALFORMED_COLUMN,
    ONWARD_COLUMN,
    SLICE_COLUMN,
    Forms,
    Reading,
    SourceTally,
)
from hakiri_dagster.destinations.contract import LoadAnswers
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.manifest.validator_spec import DatasetValidator
from hakiri_dagster.pipeline.positional import map_in_arrow
from hakiri_dagster.pipeline.projection import quoted
from hakiri_dagster.pipeline.readable import slices_of
from hakiri_dagster.pipeline.slices import NO_SLICE, Splitter
from hakiri_dagster.planning.chunks import Slice
from hakiri_dagster.quality.digests import HEX_DIGITS, NOTHING, SEPARATOR, PortableForm
from hakiri_dagster.quality.measures import (
    Answer,
    Checksums,
    Compared,
    Digest,
    Digested,
    Measure,
    RowsAtSource,
    Unanswered,
)
from hakiri_dagster.quality.validators.registry import digest_of, questions

_DIGEST = "_hakiri_digest"
_TALLY_SCHEMA = "slice int, rows bigint, high bigint, low bigint"
_TALLY_ARROW = pa.schema([("slice", pa.int32()), ("rows", pa.int64()), ("high", pa.int64()), ("low", pa.int64())])
_HALF = 32
_LOW = 0xFFFFFFFF


@dataclass(slots=True)
class Reconciliation:
    """Of one pass. Asks the source once for each set of columns."""

    reading: Reading
    frame: DataFrame
    splitter: Splitter
    cursor: str | None
    slices: Sequence[Slice]
    validators: Sequence[DatasetValidator]
    empty_as_null: bool
    _known: dict[tuple[tuple[str, str], ...], Sequence[SourceTally]] = field(default_factory=dict)

    def ask(self, forms_of: Callable[[Digest], Forms]) -> None:
        """Now, while no load keeps anybody from its target: the source may take long. `forms_of` tells what the
        destination will sum up."""
        asked = self._asked()
        for measure in (one for one in asked if isinstance(one, Checksums)):
            forms = forms_of(self._digest_of(measure))
            if forms:
                self._tallies(forms)
        if RowsAtSource() in asked:
            self._tallies(self._cheapest())

    def answers(self, index: int, given: LoadAnswers) -> Mapping[Measure, Answer]:
        """Of the slice at `index`; `given` is what the destination has answered."""
        asked = self._asked()
        checksums = [one for one in asked if isinstance(one, Checksums)]
        answers: dict[Measure, Answer] = {one: self._compared(one, index, given) for one in checksums}
        if len(checksums) < len(asked):
            answers[RowsAtSource()] = self._tallies(self._cheapest())[index].rows
        return answers

    def _asked(self) -> list[RowsAtSource | Checksums]:
        return [one for one in questions(self.validators) if isinstance(one, RowsAtSource | Checksums)]

    def _digest_of(self, measure: Checksums) -> Digest:
        return digest_of(measure, portable=self.reading.tally is None)

    def _cheapest(self) -> Forms:
        """What has been asked for already has counted the rows as well."""
        return next(iter(self._known), ())

    def _compared(self, measure: Checksums, index: int, given: LoadAnswers) -> Answer:
        here = given.of_candidate[self._digest_of(measure)]
        if not isinstance(here, Digested):
            return here if isinstance(here, Unanswered) else Unanswered("the destination gave no checksum")
        there = self._tallies(here.forms)[index].digest
        return Compared(here.value, there, here.left_out)

    def _tallies(self, forms: Forms) -> Sequence[SourceTally]:
        key = tuple(forms)
        if key not in self._known:
            tally = self.reading.tally
            self._known[key] = self._by_spark(forms) if tally is None else tally(self.slices, forms, self.empty_as_null)
        return self._known[key]

    def _by_spark(self, forms: Forms) -> Sequence[SourceTally]:
        frame = self.frame
        if ONWARD_COLUMN in frame.columns:
            frame = frame.where(quoted(ONWARD_COLUMN).isNull())
        wanted = [name for name in (self.cursor, FILE_COLUMN, MALFORMED_COLUMN, SLICE_COLUMN) if name in frame.columns]
        digest = _digest(forms) if forms else F.lit(0).cast("bigint")
        narrow = frame.select(*map(quoted, wanted), digest.alias(_DIGEST))
        found = [SourceTally(0, 0)] * len(self.slices)
        with translate_spark_errors(explain=self.reading.explain):
            for row in map_in_arrow(narrow, _Tallying(self.splitter, self.cursor), _TALLY_SCHEMA).collect():
                so_far = found[row["slice"]]
                digest_so_far = so_far.digest + (row["high"] << _HALF) + row["low"]
                found[row["slice"]] = SourceTally(so_far.rows + row["rows"], digest_so_far)
        return found


@dataclass(frozen=True, slots=True)
class _Tallying:
    """In Spark's workers. Sums come in halves, which do not overflow."""

    splitter: Splitter
    cursor: str | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row a slice, whatever the batches."""
        found: dict[int, SourceTally] = {}
        for batch in batches:
            if batch.num_rows:
                self._add(batch, found)
        reports = [
            {"slice": index, "rows": one.rows, "high": one.digest >> _HALF, "low": one.digest & _LOW}
            for index, one in found.items()
        ]
        yield pa.RecordBatch.from_pylist(reports, schema=_TALLY_ARROW)

    def _add(self, batch: pa.RecordBatch, found: dict[int, SourceTally]) -> None:
        slices = self._slices_of(batch)
        digests = np.asarray(batch.column(_DIGEST).fill_null(0), dtype=np.int64)
        for index in np.unique(slices[slices != NO_SLICE]).tolist():
            chosen, so_far = digests[slices == index], found.get(index, SourceTally(0, 0))
            digest = (int((chosen >> _HALF).sum()) << _HALF) + int((chosen & _LOW).sum())
            found[index] = SourceTally(so_far.rows + len(chosen), so_far.digest + digest)

    def _slices_of(self, batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Lines that could not be parsed go where they are set aside: with the first slice, if none is for them."""
        names = batch.schema.names
        slices = slices_of(batch, self.splitter, self.cursor)
        if MALFORMED_COLUMN in names and SLICE_COLUMN not in names:
            slices[np.asarray(batch.column(MALFORMED_COLUMN).is_valid()) & (slices == NO_SLICE)] = 0
        return slices


def _digest(forms: Forms) -> Column:
    texts = [F.coalesce(_text(quoted(name), form), F.lit(NOTHING)) for name, form in forms]  # type: ignore[arg-type]  # portable ones
    row = F.md5(F.concat_ws(SEPARATOR, *texts))
    return F.conv(F.substring(row, 1, HEX_DIGITS), 16, 10).cast("bigint")


def _text(column: Column, form: PortableForm) -> Column:
    match form:
        case "text":
            return column
        case "integer":
            return column.cast("string")
        case "number":
            plain = column.cast("string")
            return F.when(plain.contains("."), F.regexp_replace(plain, "\\.?0+$", "")).otherwise(plain)
        case "boolean":
            return column.cast("int").cast("string")
        case "day":
            return F.unix_date(column.cast("date")).cast("string")
        case "instant":
            return F.unix_micros(column.cast("timestamp")).cast("string")
        case "bytes":
            return F.lower(F.hex(column))
        case _:
            assert_never(form)
