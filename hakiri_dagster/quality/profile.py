"""What a profile asks of each column, by the column's type, and what comes of the answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as at

from hakiri_dagster.manifest.rule_spec import FieldTypeName
from hakiri_dagster.manifest.rule_values import PlainValue
from hakiri_dagster.planning.arrow_types import arrow_type, is_bytes, is_number, is_text, is_time
from hakiri_dagster.planning.columns import Column
from hakiri_dagster.quality.distinct import LEAST_KEPT
from hakiri_dagster.quality.measures import (
    AnswersInPassing,
    Distinct,
    Frequent,
    Highest,
    Instant,
    Lowest,
    Nulls,
    Tallied,
    Texts,
    TextsFound,
    Total,
    ValuesFound,
)
from hakiri_dagster.quality.validators.numbers import plotted

FEW_VALUES = 20
"""Of a column with no more than these they are listed."""

_HASHES_KEPT = 1_000_000
"""By one of Spark's tasks for all its columns, and slices, together: 8 MB."""
_FEWEST_KEPT = 128

_TEXTS = ("text", "character", "character varying", "varchar", "bpchar", "citext", "name")
_WITHOUT_ORDER = ("json", "jsonb", "xml")

Number = int | float | Decimal


@dataclass(frozen=True, slots=True)
class ProfiledColumn:
    """`type` as people know it. `kind` is what the workers see; there, numbers without a scale are texts."""

    name: str
    type: str
    kind: pa.DataType
    number_as_text: bool = False

    @classmethod
    def of(cls, column: Column, type_: str | None = None) -> ProfiledColumn:
        kind = arrow_type(column.spark_type)
        as_text = is_text(kind) and (column.native_type or "").startswith("numeric")
        return cls(column.name, type_ or column.native_type or column.spark_type, kind, as_text)

    @property
    def has_numbers(self) -> bool:
        return self.number_as_text or is_number(self.kind)

    @property
    def has_texts(self) -> bool:
        return is_text(self.kind) and self.type.partition("(")[0] in _TEXTS

    @property
    def is_told_apart(self) -> bool:
        """Its values can be counted one by one."""
        known = self.is_listed or is_bytes(self.kind) or at.is_duration(self.kind)
        return known and not self.type.endswith("]") and self.type.lower() not in _WITHOUT_ORDER

    @property
    def is_listed(self) -> bool:
        """Its values can be shown."""
        kind = self.kind
        return is_text(kind) or is_number(kind) or is_time(kind) or bool(at.is_boolean(kind) or at.is_time(kind))


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """None is what the column's type has not, or no row a value for. `values`: all that occur, if they are few."""

    name: str
    type: str
    rows: int
    nulls: int
    distinct: int | None = None
    distinct_is_exact: bool = True
    lowest: Number | Instant | None = None
    highest: Number | Instant | None = None
    mean: float | None = None
    texts: TextsFound | None = None
    values: tuple[tuple[PlainValue | Decimal, int], ...] | None = None

    @property
    def null_ratio(self) -> float:
        return self.nulls / self.rows if self.rows else 0.0

    @property
    def readable_as(self) -> frozenset[FieldTypeName]:
        return frozenset() if self.texts is None else self.texts.readable_as


@dataclass(frozen=True, slots=True)
class TableProfile:
    """`left_out`: columns that were too many."""

    rows: int
    columns: tuple[ColumnProfile, ...]
    left_out: tuple[str, ...] = ()


def measures_of(
    columns: Sequence[ProfiledColumn], *, slices: int = 1, asked: Sequence[Tallied] = ()
) -> tuple[Tallied, ...]:
    """`slices` are tallied at the same time. `asked` are measures that somebody else asks for: those come first."""
    counted = {one.column for one in asked if isinstance(one, Distinct)}
    keeps = _kept(len(columns) * slices)
    own = [one for column in columns for one in _of_column(column, keeps)]
    needed = [one for one in own if not (isinstance(one, Distinct) and one.column in counted)]
    return tuple(dict.fromkeys([*asked, *needed]))


def _kept(sketches: int) -> int:
    return min(LEAST_KEPT, max(_FEWEST_KEPT, _HASHES_KEPT // max(sketches, 1)))


def _of_column(column: ProfiledColumn, keeps: int) -> Iterator[Tallied]:
    name = column.name
    yield Nulls(name)
    if not column.is_told_apart:
        return
    yield Distinct(name, FEW_VALUES, keeps)
    if column.is_listed:
        yield Frequent(name, FEW_VALUES)
    if column.has_numbers or is_time(column.kind):
        yield Lowest(name)
        yield Highest(name)
    if column.has_numbers:
        yield Total(name)
    elif column.has_texts:
        yield Texts(name)


def profile_of(
    columns: Sequence[ProfiledColumn], rows: int, answers: AnswersInPassing, left_out: Sequence[str] = ()
) -> TableProfile:
    return TableProfile(rows, tuple(_profile(column, rows, answers) for column in columns), tuple(left_out))


def _profile(column: ProfiledColumn, rows: int, answers: AnswersInPassing) -> ColumnProfile:
    name = column.name
    nulls = answers.get(Nulls(name), 0)
    nulls = nulls if isinstance(nulls, int) else 0
    values = _values(name, answers)
    distinct, is_exact = _distinct(name, answers, values, rows - nulls)
    texts = answers.get(Texts(name))
    return ColumnProfile(
        name=name,
        type=column.type,
        rows=rows,
        nulls=nulls,
        distinct=distinct,
        distinct_is_exact=is_exact,
        lowest=_extreme(answers, Lowest(name)),
        highest=_extreme(answers, Highest(name)),
        mean=_mean(answers, Total(name), rows - nulls),
        texts=texts if isinstance(texts, TextsFound) else None,
        values=values,
    )


def _values(name: str, answers: AnswersInPassing) -> tuple[tuple[PlainValue | Decimal, int], ...] | None:
    found = answers.get(Frequent(name, FEW_VALUES))
    return found.rows if isinstance(found, ValuesFound) else None


def _distinct(
    name: str, answers: AnswersInPassing, values: Sequence[object] | None, with_value: int
) -> tuple[int | None, bool]:
    """Whoever asked for it, and however exactly. An estimate may be higher than there are rows."""
    if values is not None:
        return len(values), True
    for measure, answer in answers.items():
        if isinstance(measure, Distinct) and measure.column == name and isinstance(answer, int):
            kept = LEAST_KEPT if measure.keeps is None else measure.keeps
            return min(answer, with_value), answer < max(kept, measure.exact + 1)
    return None, True


def _extreme(answers: AnswersInPassing, measure: Lowest | Highest) -> Number | Instant | None:
    found = answers.get(measure)
    return found if isinstance(found, int | float | Decimal | Instant) else None


def _mean(answers: AnswersInPassing, measure: Total, count: int) -> float | None:
    total = answers.get(measure)
    if not count or not isinstance(total, int | float | Decimal):
        return None
    mean = float(total / count)
    return mean if math.isfinite(mean) else None


def numbers_of(column: ColumnProfile) -> Mapping[str, int | float]:
    """What of it plots over time. Each is there whenever the column's type and its values allow."""
    texts = column.texts
    found = {
        "null_ratio": column.null_ratio,
        "distinct": column.distinct,
        "min": None if column.lowest is None else plotted(column.lowest),
        "max": None if column.highest is None else plotted(column.highest),
        "mean": column.mean,
        "shortest": None if texts is None else texts.shortest,
        "longest": None if texts is None else texts.longest,
    }
    return {name: number for name, number in found.items() if number is not None}
