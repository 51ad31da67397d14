"""Answers to what one pass over rows can answer: each part of the rows makes a tally, and tallies add up."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.planning.arrow_types import is_numeric_text, is_time
from hakiri_dagster.quality import numerics
from hakiri_dagster.quality.comparable import among, microseconds
from hakiri_dagster.quality.distinct import Sketch, hashes_of
from hakiri_dagster.quality.measures import (
    FEW,
    SHOWN_CHARACTERS,
    Answer,
    Distinct,
    Frequent,
    Highest,
    Instant,
    Lowest,
    Nulls,
    Single,
    Strangers,
    Tallied,
    Texts,
    TextsFound,
    Total,
    ValuesFound,
    Violations,
)
from hakiri_dagster.quality.numerics import EXACTLY
from hakiri_dagster.quality.values_told import texts_of, texts_together, values_of, values_together

Value = int | float | Decimal | Instant

_Known = Value | Violations | Sketch | TextsFound | ValuesFound

_SUMMED_AS_IT_IS = 28
"""Digits of decimals of which 10 billion together have no more than Arrow's sum of them holds."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What some of the rows say to a measure. Small, whatever their number, and picklable."""

    measure: Tallied
    known: _Known | None = None

    @property
    def answer(self) -> Answer:
        if isinstance(self.known, Sketch):
            return self.known.count
        if self.known is None:
            return nothing_found(self.measure)
        return self.known

    def settled(self) -> Tally:
        return Tally(self.measure, self.known.settled()) if isinstance(self.known, Sketch) else self

    def plus(self, other: Tally) -> Tally:
        if self.known is None or other.known is None:
            return other if self.known is None else self
        return Tally(self.measure, _merged(self.measure, self.known, other.known))


def add_up(some: Sequence[Tally], others: Sequence[Tally]) -> list[Tally]:
    """Of the same measures, in the same order; none of no rows."""
    if not some or not others:
        return list(some or others)
    return [one.plus(other) for one, other in zip(some, others, strict=True)]


def packed(tallies: Sequence[Tally]) -> bytes | None:
    """For the way from a worker."""
    return pickle.dumps([tally.settled() for tally in tallies]) if tallies else None


def unpacked(tallies: bytes | None) -> list[Tally]:
    found: list[Tally] = pickle.loads(bytes(tallies)) if tallies else []  # our own workers' words
    return found


def answers_of(measures: Sequence[Tallied], tallies: Sequence[Tally]) -> dict[Tallied, Answer]:
    if not tallies:
        return {measure: nothing_found(measure) for measure in measures}
    return {tally.measure: tally.answer for tally in tallies}


def nothing_found(measure: Tallied) -> Answer:
    """Of no rows."""
    match measure:
        case Nulls() | Distinct():
            return 0
        case Strangers():
            return Violations(0)
        case Frequent():
            return ValuesFound(())
        case Lowest() | Highest() | Total() | Texts():
            return None
        case _:
            assert_never(measure)


def tally(measure: Tallied, rows: pa.RecordBatch) -> Tally:
    column = rows.column(measure.column)
    array = column.dictionary_decode() if at.is_dictionary(column.type) else column
    match measure:
        case Nulls():
            return Tally(measure, array.null_count)
        case Lowest():
            return Tally(measure, _extreme(array, pc.min, "min"))
        case Highest():
            return Tally(measure, _extreme(array, pc.max, "max"))
        case Total():
            return Tally(measure, _total(array))
        case Distinct(exact=exact, keeps=keeps):
            return Tally(measure, Sketch.of(hashes_of(numerics.told_apart(array)), exact, keeps))
        case Texts():
            return Tally(measure, texts_of(array))
        case Frequent(most=most):
            return Tally(measure, values_of(numerics.told_apart(array), most))
        case Strangers(values=values):
            return Tally(measure, _strangers(array, values))
        case _:
            assert_never(measure)


def _extreme(array: pa.Array, extreme: Callable[[pa.Array], pa.Scalar], which: str) -> Value | None:
    if is_time(array.type):
        moment = extreme(microseconds(array)).as_py()
        return None if moment is None else Instant(moment)
    if is_numeric_text(array.type):
        return numerics.extreme(array, highest=which == "max")
    if at.is_floating(array.type) and which == "max" and pc.any(pc.is_nan(array)).as_py():
        return math.nan
    found: Value | None = extreme(array).as_py()
    return Single(found) if at.is_float32(array.type) and isinstance(found, float) else found


def _total(array: pa.Array) -> Value | None:
    """Exact, but of floats."""
    if array.null_count == len(array):
        return None
    if is_numeric_text(array.type):
        return numerics.total(array)
    if at.is_integer(array.type):
        return _whole_total(array)
    if at.is_floating(array.type):
        array = array.cast(pa.float64())
    elif array.type.precision > _SUMMED_AS_IT_IS:
        array = array.cast(pa.decimal256(76, array.type.scale))
    found: Value = pc.sum(array).as_py()
    return found


def _whole_total(array: pa.Array) -> int:
    """The halves of numbers do not wrap as the numbers would."""
    numbers = array.drop_null().cast(pa.int64()).to_numpy()
    return (int((numbers >> 32).sum()) << 32) + int((numbers & 0xFFFFFFFF).sum())


def _strangers(array: pa.Array, values: Sequence[object]) -> Violations:
    strangers = pc.and_(array.is_valid(), pc.invert(among(array, values)))
    if not pc.any(strangers).as_py():
        return Violations(0)
    strange = array.filter(strangers)
    few = pc.unique(numerics.texts_of(strange))[:FEW].cast(pa.string()).to_pylist()
    return Violations(len(strange), tuple(value[:SHOWN_CHARACTERS] for value in few))


def _merged(measure: Tallied, one: _Known, other: _Known) -> _Known:
    match measure, one, other:
        case Distinct(), Sketch(), Sketch():
            return one.plus(other)
        case Texts(), TextsFound(), TextsFound():
            return texts_together(one, other)
        case Frequent(most=most), ValuesFound(), ValuesFound():
            return values_together(one, other, most)
        case Strangers(), Violations(), Violations():
            few = tuple(dict.fromkeys([*one.few, *other.few]))[:FEW]
            return Violations(one.rows + other.rows, few)
        case Lowest() | Highest(), Instant(), Instant():
            return min(one, other) if isinstance(measure, Lowest) else max(one, other)
        case Lowest() | Highest(), int() | float() | Decimal(), int() | float() | Decimal():
            return _further(measure, one, other)
        case Total(), Decimal(), Decimal():
            return EXACTLY.add(one, other)
        case Nulls() | Total(), int() | float(), int() | float():
            return one + other
        case _:
            raise TypeError(f"{one!r} and {other!r} do not answer the same question, {measure!r}")


def _further(measure: Tallied, one: float | Decimal, other: float | Decimal) -> float | Decimal:
    """NaN counts as the highest, as PostgreSQL has it."""
    ordered = sorted((one, other), key=lambda value: (math.isnan(value), 0 if math.isnan(value) else value))
    return ordered[0] if isinstance(measure, Lowest) else ordered[1]
