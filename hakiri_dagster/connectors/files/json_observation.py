"""What the values of each key in JSON files have in common: one pass over all lines, by Spark's workers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.contract import SparkProvider
from hakiri_dagster.connectors.files.charsets import Charset
from hakiri_dagster.connectors.files.json_lines import LineRange, read_lines, records_of
from hakiri_dagster.connectors.json.record_reader import MOST_NAMES, RecordReader
from hakiri_dagster.connectors.json.type_inference import ObservedValues, observe
from hakiri_dagster.errors import SourceError

_ARROW: Final = pa.schema(
    [("part", pa.int32()), ("place", pa.int32()), ("name", pa.string()), ("kind", pa.string()), ("bits", pa.int64())]
)
_DDL: Final = "part int, place int, name string, kind string, bits bigint"

Observed = Mapping[str, ObservedValues]


def observe_files(
    spark: SparkProvider,
    ranges: Sequence[Sequence[LineRange]],
    settled: frozenset[str],
    null_values: Sequence[str],
    charset: Charset,
    label: str,
) -> Observed:
    """Return what was observed of each key, in the order in which the keys first appear. `settled`: keys whose columns
    have a type, whatever values they hold. `null_values`: texts that mean NULL."""
    if not ranges:
        return {}
    written = tuple(chain.from_iterable((text, json.dumps(text, ensure_ascii=False)) for text in null_values))
    work = _Observation(tuple(map(tuple, ranges)), settled, written, charset, label)
    numbers = spark().range(0, len(ranges), 1, len(ranges))
    found: dict[str, ObservedValues] = {}
    rows = numbers.mapInArrow(work, _DDL).collect()
    for row in sorted(rows, key=lambda row: (row["part"], row["place"])):
        found[row["name"]] = found.get(row["name"], ObservedValues()) | ObservedValues(row["kind"], row["bits"])
    if len(found) > MOST_NAMES:
        raise _too_many(label)
    return found


@dataclass(frozen=True, slots=True)
class _Observation:
    """For `mapInArrow` over the numbers of parts."""

    ranges: tuple[tuple[LineRange, ...], ...]
    settled: frozenset[str]
    nulls: tuple[str, ...]
    charset: Charset
    label: str

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for part in batch.column(0).to_pylist():
                found = self._observe_part(self.ranges[part])
                rows: list[dict[str, Any]] = [
                    {"part": part, "place": place, "name": name, "kind": values.kind, "bits": values.signature}
                    for place, (name, values) in enumerate(found.items())
                ]
                yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)

    def _observe_part(self, ranges: Sequence[LineRange]) -> Observed:
        reader = RecordReader()
        found: dict[str, ObservedValues] = {}
        for one in ranges:
            for lines in read_lines(one, self.charset, self.label):
                block = reader.read(records_of(lines))
                if block.unmapped:
                    raise _too_many(self.label)
                for name, texts in block.columns.items():
                    before = found.setdefault(name, ObservedValues())
                    if name not in self.settled and not before.is_settled:
                        found[name] = observe(self._without_nulls(texts), before)
        return found

    def _without_nulls(self, texts: pa.LargeStringArray) -> pa.LargeStringArray:
        return texts.filter(pc.invert(pc.is_in(texts, pa.array(self.nulls, texts.type)))) if self.nulls else texts


def _too_many(label: str) -> SourceError:
    return SourceError(
        f"the objects have more than {MOST_NAMES:,} different keys",
        where=label,
        hint="a table has at most 1,600 columns: put what varies into an object of its own, which becomes `jsonb`",
    )
