"""PostgreSQL's `numeric` where no decimal of Spark's holds it: numbers that travel as texts, and are what they are all
the same. Whole columns at a time as far as floats tell them apart, and digit by digit where these are equal.

As in PostgreSQL, NaN is equal to itself and greater than anything else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.planning.arrow_types import NativeText, is_numeric_text, kind_of
from hakiri_dagster.planning.columns import Column

_NUMERIC = NativeText("numeric")

_NUMBER = r"(?i)^([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,9})?|[+-]?inf(inity)?|nan)$"
_SHORTEST = r"^(-?(0\.[0-9]*[1-9]|[1-9][0-9]*(\.[0-9]*[1-9])?)|0|NaN|-?Infinity)$"
_MOST_WRITTEN_OUT = 300

EXACTLY = Context(prec=100, traps=[])
_SUMMED = pa.decimal256(76, 38)
_SUMMED_BELOW, _MOST_SUMMED = 1e28, 10**9
"""Such a sum holds so many numbers below that."""

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def numeric_texts(columns: Collection[Column]) -> frozenset[str]:
    """The names of those that the workers are given as texts."""
    return frozenset(column.name for column in columns if is_numeric_text(kind_of(column)))


def marked(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """With these columns as what they are, so that who looks at them need not be told."""
    for place, name in enumerate(batch.schema.names):
        if name in names:
            texts = pa.ExtensionArray.from_storage(_NUMERIC, batch.column(place).cast(pa.string()))
            batch = batch.set_column(place, name, texts)
    return batch


def texts_of(array: pa.Array) -> pa.Array:
    """For who asks about texts; others stay as they are."""
    return array.storage if is_numeric_text(array.type) else array


def ordered(one: pa.Array, other: pa.Array) -> pa.Int8Array:
    """-1, 0 or 1; NULL where either is NULL or no number. Beside a float a numeric is a float, as in PostgreSQL."""
    left, right = _floats(one), _floats(other)
    a, b = _filled(left), _filled(right)
    nan, beside_nan = np.isnan(a), np.isnan(b)
    found = (a > b).astype(np.int8) - (a < b) + (nan & ~beside_nan) - (beside_nan & ~nan)
    known = pc.and_(left.is_valid(), right.is_valid())
    if not (at.is_floating(one.type) or at.is_floating(other.type)):
        texts, others = _texts(one), _texts(other)
        undecided = pc.and_(pc.and_(known, pc.not_equal(texts, others)), pa.array((found == 0) & ~nan))
        pairs = zip(texts.filter(undecided).to_pylist(), others.filter(undecided).to_pylist(), strict=True)
        found[_mask(undecided)] = [_order(Decimal(text), Decimal(beside)) for text, beside in pairs]
    return pc.if_else(known, pa.array(found, pa.int8()), pa.scalar(None, pa.int8()))


def _order(one: Decimal, other: Decimal) -> int:
    return (one > other) - (one < other)


def outside(array: pa.Array, low: float | str | None, high: float | str | None) -> pa.BooleanArray:
    """NULL where the value is. Neither NaN nor what is no number lies in a range. The bounds are numbers."""
    texts, floats = array.storage, _floats(array)
    beyond = pc.is_null(floats, nan_is_null=True)
    for bound, test, side in ((low, pc.less, -1), (high, pc.greater, 1)):
        if isinstance(bound, int | float):
            beyond = pc.or_kleene(beyond, test(floats, pa.scalar(float(bound))))
            ties = pc.unique(texts.filter(pc.equal(floats, pa.scalar(float(bound)))))
            exact = Decimal(repr(bound))
            further = [text for text in ties.to_pylist() if _order(Decimal(text), exact) == side]
            if further:
                beyond = pc.or_(beyond, pc.is_in(texts, pa.array(further, pa.string())))
    return pc.if_else(texts.is_valid(), beyond, pa.scalar(None, pa.bool_()))


def shortest(array: pa.Array) -> pa.StringArray:
    """A text for each value, the same for equal ones: without zeros at the end; of many digits, with an exponent. What
    is no number stays as it is."""
    texts = pc.replace_substring_regex(array.storage, r"(\.[0-9]*?)0+$", r"\1")
    texts = pc.replace_substring_regex(texts, r"\.$", "")
    plain = pc.and_(pc.match_substring_regex(texts, _SHORTEST), pc.less(pc.binary_length(texts), _MOST_WRITTEN_OUT))
    odd = pc.fill_null(pc.invert(plain), False)
    if not pc.any(odd).as_py():
        return texts
    told = pa.array([_shortest(text) for text in texts.filter(odd).to_pylist()], pa.string())
    return pc.replace_with_mask(texts, odd, told)


def told_apart(array: pa.Array) -> pa.Array:
    """For who tells values apart by their bytes; others stay as they are."""
    return shortest(array) if is_numeric_text(array.type) else array


def _shortest(text: str) -> str:
    """Written out, unless that is long: a few characters may stand for 130,000 digits."""
    number = _number(text)
    if number is None:
        return text
    if not number.is_finite():
        return str(number)
    if not number:
        return "0"
    negative, digits, exponent = number.as_tuple()
    kept = "".join(map(str, digits)).lstrip("0")
    significant = kept.rstrip("0")
    places = int(exponent) + len(kept) - len(significant)
    if len(significant) + abs(places) > _MOST_WRITTEN_OUT:
        return f"{'-' if negative else ''}{significant}e{places}"
    return format(Decimal((negative, tuple(map(int, significant)), places)), "f")


def known_among(array: pa.Array, values: Sequence[object]) -> pa.BooleanArray:
    listed = pa.array([_shortest(str(value)) for value in values], pa.string())
    return pc.is_in(shortest(array), listed)


def is_number(value: object) -> bool:
    """Whether a column of numbers may hold it."""
    return not isinstance(value, bool) and _number(str(value)) is not None


def extreme(array: pa.Array, *, highest: bool) -> Decimal | None:
    """NaN counts as the highest."""
    floats = _floats(array)
    ordinary = floats.filter(pc.invert(pc.is_nan(floats)))
    if not len(ordinary) or (highest and len(ordinary) < len(floats) - floats.null_count):
        return Decimal("NaN") if len(floats) > floats.null_count else None
    furthest = (pc.max if highest else pc.min)(ordinary)
    ties = map(Decimal, pc.unique(array.storage.filter(pc.equal(floats, furthest))).to_pylist())
    return max(ties) if highest else min(ties)


def total(array: pa.Array) -> Decimal | None:
    """Of what is a number."""
    floats = _floats(array)
    texts = array.storage.filter(floats.is_valid())
    if not len(texts):
        return None
    if len(texts) <= _MOST_SUMMED and pc.all(pc.less(pc.abs(floats), _SUMMED_BELOW)).as_py():
        try:
            return Decimal(_shortest(str(pc.sum(texts.cast(_SUMMED)).as_py())))
        except pa.ArrowInvalid:
            pass  # digits far behind the point, or blanks
    found = Decimal(0)
    for text in texts.to_pylist():
        found = EXACTLY.add(found, Decimal(text))
    return found


def _floats(array: pa.Array) -> pa.DoubleArray:
    """The nearest ones, so that what they tell apart is different. NULL is what is no number."""
    if at.is_floating(array.type):
        return array.cast(pa.float64())
    texts = pc.utf8_trim_whitespace(_texts(array))
    return pc.if_else(pc.match_substring_regex(texts, _NUMBER), texts, pa.scalar(None, pa.string())).cast(pa.float64())


def _texts(array: pa.Array) -> pa.StringArray:
    return array.storage if is_numeric_text(array.type) else array.cast(pa.string())


def _filled(floats: pa.DoubleArray) -> Numbers:
    return np.asarray(pc.fill_null(floats, 0.0))


def _mask(found: pa.BooleanArray) -> Mask:
    return np.asarray(pc.fill_null(found, False))


def _number(text: str) -> Decimal | None:
    return Decimal(text) if re.match(_NUMBER, text.strip()) else None
