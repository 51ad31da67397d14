"""Which rows of a batch break a rule: whole columns at a time, where the rows are staged.

NULL passes every rule but `not_null`. A pattern is RE2's, whose time grows with the text and with nothing else. What an
expression says of a row, and whether it is unique, was found out before (`verdicts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.manifest.rule_spec import (
    CompareRule,
    ExpressionRule,
    FieldTypeRule,
    MaxLengthRule,
    MinLengthRule,
    NotNullRule,
    OneOfRule,
    RangeRule,
    RegexRule,
    RowRule,
    UniqueRule,
    fields_of,
    id_of,
)
from hakiri_dagster.manifest.spelling import or_rather
from hakiri_dagster.planning.arrow_types import (
    NativeText,
    has_texts,
    is_list,
    is_number,
    is_scalar,
    is_text,
    is_time,
    type_told,
)
from hakiri_dagster.quality import comparable, readable_as
from hakiri_dagster.quality.numerics import texts_of
from hakiri_dagster.quality.verdicts import verdict_of

Kinds = Mapping[str, pa.DataType]

_FIRST_ROWS, _FEW_VALUES = 1024, 32
_MOST_BYTES = 4
"""Of a character."""


def broken_by(rule: RowRule, batch: pa.RecordBatch) -> pa.BooleanArray | None:
    """None: no row breaks it."""
    found = _broken(rule, batch)
    if found is None or not pc.any(found).as_py():
        return None
    return pc.fill_null(found, False)


def _broken(rule: RowRule, batch: pa.RecordBatch) -> pa.BooleanArray | None:
    if isinstance(rule, ExpressionRule | UniqueRule):
        return pc.invert(batch.column(verdict_of(rule)))
    array = _plain(batch.column(rule.field))
    match rule:
        case NotNullRule():
            return array.is_null() if array.null_count else None
        case RegexRule(pattern=pattern):
            return _told_by_value(texts_of(array), lambda values: pc.invert(pc.match_substring_regex(values, pattern)))
        case RangeRule(min=low, max=high):
            return comparable.outside(array, low, high)
        case MaxLengthRule(max=most):
            return _longer(texts_of(array), most)
        case MinLengthRule(min=fewest):
            return _shorter(texts_of(array), fewest)
        case OneOfRule(values=values):
            return pc.and_(array.is_valid(), pc.invert(comparable.among(array, values)))
        case FieldTypeRule(expected=expected):
            return readable_as.unreadable(array, expected)
        case CompareRule(op=op, other=other):
            return comparable.breaks(array, op, _plain(batch.column(other)))
        case _:
            assert_never(rule)


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if at.is_dictionary(array.type) else array


def _told_by_value(array: pa.Array, test: Callable[[pa.Array], pa.BooleanArray]) -> pa.BooleanArray:
    """Of a column with few values each is asked about once."""
    if len(array) <= _FIRST_ROWS or pc.count_distinct(array[:_FIRST_ROWS]).as_py() > _FEW_VALUES:
        return test(array)
    encoded = array.dictionary_encode()
    return test(encoded.dictionary).take(encoded.indices)


def _longer(array: pa.Array, most: int) -> pa.BooleanArray | None:
    return None if _all_within(array, 0, most) else pc.greater(_lengths(array), most)


def _shorter(array: pa.Array, fewest: int) -> pa.BooleanArray | None:
    return None if _all_within(array, fewest, None) else pc.less(_lengths(array), fewest)


def _all_within(array: pa.Array, fewest: int, most: int | None) -> bool:
    """What the bytes of texts tell: a character has one to four of them. Counting characters takes much longer."""
    if not is_text(array.type):
        return False
    found = pc.min_max(pc.binary_length(array)).as_py()
    if found["min"] is None:
        return True
    return found["min"] >= _MOST_BYTES * fewest and (most is None or found["max"] <= most)


def _lengths(array: pa.Array) -> pa.Array:
    if is_text(array.type):
        return pc.utf8_length(array)
    return pc.list_value_length(array) if is_list(array.type) else pc.binary_length(array)


def message_of(rule: RowRule) -> str:
    """Beside a row that breaks it."""
    return f"it does not hold that {shown(rule)}"


def shown(rule: RowRule) -> str:
    """What the rule asks for."""
    match rule:
        case NotNullRule():
            return f"{rule.field} is not NULL"
        case RegexRule(pattern=pattern):
            return f"{rule.field} matches {pattern}"
        case RangeRule(min=low, max=None):
            return f"{rule.field} is at least {low}"
        case RangeRule(min=None, max=high):
            return f"{rule.field} is at most {high}"
        case RangeRule(min=low, max=high):
            return f"{rule.field} lies between {low} and {high}"
        case MaxLengthRule(max=most):
            return f"{rule.field} has at most {most} characters"
        case MinLengthRule(min=fewest):
            return f"{rule.field} has at least {fewest} characters"
        case OneOfRule(values=values):
            told = ", ".join(map(str, values[:_MOST_SHOWN]))
            return f"{rule.field} is one of {told}{', …' if len(values) > _MOST_SHOWN else ''}"
        case FieldTypeRule(expected=expected):
            return f"{rule.field} can be read as {expected}"
        case CompareRule(op=op, other=other):
            return f"{rule.field} {op} {other}"
        case ExpressionRule(expression=expression):
            text = " ".join(expression.split())
            return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]} …"
        case UniqueRule():
            names = fields_of(rule)
            told = names[0] if len(names) == 1 else f"({', '.join(names)})"
            return f"{told} is unique within the load"
        case _:
            assert_never(rule)


_MOST_SHOWN = 10
_LONGEST_SHOWN = 300


def objections(rules: Sequence[RowRule], kinds: Kinds, *, whose: str = "the source") -> Iterator[str]:
    """Why rules cannot be asked of columns of these kinds."""
    for rule in rules:
        absent = [field for field in fields_of(rule) if field not in kinds]
        for field in absent:
            yield f"rule {id_of(rule)} is about {field}, which {whose} does not have{or_rather(field, kinds)}"
        if not absent and (wrong := _misfit(rule, kinds)) is not None:
            yield f"rule {id_of(rule)}: {wrong}"


def _misfit(rule: RowRule, kinds: Kinds) -> str | None:
    if isinstance(rule, ExpressionRule):
        from hakiri_dagster.quality.expression_rules import misfit  # parses, which workers never do

        return misfit(rule, kinds)
    if isinstance(rule, UniqueRule):
        return next(filter(None, (_not_told_apart(field, kinds[field]) for field in fields_of(rule))), None)
    kind, field = kinds[rule.field], rule.field
    match rule:
        case NotNullRule():
            return None
        case RegexRule():
            return None if has_texts(kind) else f"{field} is {type_told(kind)}, and a pattern is for text"
        case RangeRule(min=low, max=high):
            dates = isinstance(low if low is not None else high, str)
            if dates and not is_time(kind):
                return f"{field} is {type_told(kind)}, and the bounds are dates"
            if not dates and not is_number(kind):
                return f"{field} is {type_told(kind)}, and the bounds are numbers"
            return None
        case MaxLengthRule() | MinLengthRule():
            fits = has_texts(kind) or is_list(kind) or at.is_binary(kind)
            return None if fits else f"{field} is {type_told(kind)}, which has no length"
        case OneOfRule(values=values):
            return _other_kind(field, kind, values)
        case FieldTypeRule(expected=expected):
            return None if readable_as.ever(expected, kind) else f"{field} is {type_told(kind)}, and never a {expected}"
        case CompareRule(op=op, other=other):
            return None if comparable.alike(kind, op, kinds[other]) else _incomparable(rule, kind, kinds[other])
        case _:
            assert_never(rule)


def _not_told_apart(field: str, kind: pa.DataType) -> str | None:
    if isinstance(kind, NativeText) and not (is_number(kind) or kind.has_one_text_a_value):
        return (
            f"{field} is {type_told(kind)}, of which equal values may be written in several ways; ask it with the "
            "validator duplicate_key, or let a view of the source convert them"
        )
    return None if is_scalar(kind) else f"{field} is {type_told(kind)}, which is no value to tell rows apart by"


def _incomparable(rule: CompareRule, kind: pa.DataType, other: pa.DataType) -> str:
    told = f"{rule.field} is {type_told(kind)} and {rule.other} {type_told(other)}, which do not compare"
    if not (isinstance(kind, NativeText) or isinstance(other, NativeText)):
        return told
    return f"{told} by {rule.op} here; ask it with a validator of type sql, or let a view of the source convert them"


def _other_kind(field: str, kind: pa.DataType, values: Sequence[object]) -> str | None:
    fits = comparable.readable_among(values, kind)
    return None if fits else f"{field} is {type_told(kind)}, which not all of the values are"
