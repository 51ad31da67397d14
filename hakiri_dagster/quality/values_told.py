"""What a profile tells of values themselves: those of a column that has few, and how the texts of one look. Parts of
the rows are told apart, and add up; what is kept does not grow with them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.manifest.rule_spec import FieldTypeName
from hakiri_dagster.planning.arrow_types import is_number, is_text
from hakiri_dagster.quality.measures import Single, TextsFound, ValuesFound
from hakiri_dagster.quality.readable_as import unreadable

SHOWN_CHARACTERS = 60
MOST_LISTED_CHARACTERS = 200
"""A value that is longer is not listed, and the others of its column with it."""

ASKED_TYPES: tuple[FieldTypeName, ...] = ("uuid", "integer", "float", "date", "timestamp")
_NO_FRACTION = re.compile(r"\.0+(?=Z?$)")
_FIRST_ROWS = 1024
"""Mostly enough to see that there are many values, or that they are not of a type."""


def texts_of(array: pa.Array) -> TextsFound | None:
    """None of no text."""
    texts = array.drop_null()
    if not len(texts):
        return None
    lengths = pc.min_max(pc.utf8_length(texts)).as_py()
    heads = pc.min_max(pc.utf8_slice_codeunits(texts, 0, SHOWN_CHARACTERS)).as_py()
    readable = frozenset(expected for expected in ASKED_TYPES if _all_readable(texts, expected))
    return TextsFound(lengths["min"], lengths["max"], heads["min"], heads["max"], readable)


def texts_together(one: TextsFound, other: TextsFound) -> TextsFound:
    return TextsFound(
        min(one.shortest, other.shortest),
        max(one.longest, other.longest),
        min(one.first, other.first),
        max(one.last, other.last),
        one.readable_as & other.readable_as,
    )


def _all_readable(texts: pa.Array, expected: FieldTypeName) -> bool:
    for part in (texts[:_FIRST_ROWS], texts[_FIRST_ROWS:]):
        found = unreadable(part, expected)
        if found is not None and pc.any(found).as_py():
            return False
    return True


def values_of(array: pa.Array, most: int) -> ValuesFound:
    """NULL is no value."""
    values = array.drop_null()
    if at.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 is 0.0
    if len(pc.unique(values[:_FIRST_ROWS])) > most:
        return ValuesFound(None)
    counted = pc.value_counts(values)
    if len(counted) > most:
        return ValuesFound(None)
    named = counted.field("values")
    if is_text(named.type) and len(named) and pc.max(pc.utf8_length(named)).as_py() > MOST_LISTED_CHARACTERS:
        return ValuesFound(None)
    told = _told(named)
    return _in_order(Counter(dict(zip(told, counted.field("counts").to_pylist(), strict=True))))


def _told(values: pa.Array) -> list[Any]:
    if not (is_text(values.type) or at.is_boolean(values.type) or is_number(values.type)):
        return [_NO_FRACTION.sub("", value) for value in values.cast(pa.string()).to_pylist()]
    found = values.to_pylist()
    if at.is_float32(values.type):
        found = [float(Single(value)) for value in found]
    return ["NaN" if value != value else value for value in found]


def values_together(one: ValuesFound, other: ValuesFound, most: int) -> ValuesFound:
    if one.rows is None or other.rows is None:
        return ValuesFound(None)
    counts = Counter(dict(one.rows))
    counts.update(dict(other.rows))
    return _in_order(counts) if len(counts) <= most else ValuesFound(None)


def _in_order(counts: Counter[Any]) -> ValuesFound:
    """The most frequent first."""
    return ValuesFound(tuple(sorted(counts.items(), key=lambda found: (-found[1], str(found[0])))))
