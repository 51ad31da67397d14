"""Raw JSON values as typed Arrow columns. What does not fit its column exactly is reported, never rounded or guessed.

A column converts as a whole where Arrow reads all its texts. Otherwise its values are parsed one by one, by the same
rules as texts of CSV (`files/text_values.py`): a JSON text is read like the number, date or boolean that it spells.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.connectors.files.text_inference import TIMES_BY_TYPE
from hakiri_dagster.connectors.files.text_values import NOT_ZERO, YEAR
from hakiri_dagster.connectors.json.raw_text import elements_of, is_whole
from hakiri_dagster.planning.arrow_types import arrow_type, is_numeric_text, kind_of
from hakiri_dagster.planning.columns import Column

_BEGIN_NUMBERS: Final = frozenset(b"-0123456789")
_DOCUMENTS: Final = ("json", "jsonb")
_BLANK: Final = "".join(map(chr, range(33)))
_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE: Final = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_MOMENT: Final = re.compile(
    r"(\d{4,6})-(\d{1,2})-(\d{1,2})"
    r"(?P<clock>[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?"
    r"(?P<zone> ?(?:Z|UTC|GMT|([+-])(\d{1,2})(?::?(\d{2}))?))?)?",
    re.ASCII,
)
_PLAIN_DATE: Final = rf"^{YEAR}-\d\d-\d\d$"
_PLAIN_TIME: Final = rf"^{YEAR}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{{1,6}})?)?$"
_PLAIN_INSTANT: Final = rf"^{YEAR}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{{1,6}})?)?(Z|[+-]\d\d:\d\d)$"
_SUB_MICROSECOND: Final = r"\.\d{6}0*[1-9]"
_PLAIN_WHOLE: Final = r"^-?\d{1,19}$"
_PLAIN_NUMBER: Final = r"^-?\d+(\.\d+)?$"
_NOT_ZERO: Final = re.compile(NOT_ZERO)
_INFERRED_NUMBER: Final = r"^[-0-9]"
_INFERRED_BOOLEAN: Final = r"^[tf]"
_TRUE: Final = frozenset({"t", "true", "y", "yes", "1"})
_FALSE: Final = frozenset({"f", "false", "n", "no", "0"})
_EXACT: Final = Context(prec=38, traps=[Inexact, InvalidOperation])
_MOST_OFFSET: Final = 24 * 60 - 1
_LONGEST_INTEGER: Final = 19

Parse = Callable[[str], Any]
"""Return the value of a text, or raise ValueError."""


@dataclass(frozen=True, slots=True)
class TypedValues:
    """`misfits`: which values are not of the column's type; None: all are. These are NULL in `values`. `truncated`:
    which timestamps have lost digits beyond microseconds; None: none has."""

    values: pa.Array
    misfits: pa.BooleanArray | None = None
    truncated: pa.BooleanArray | None = None


def is_document(column: Column) -> bool:
    """Whether the column holds JSON, which lands as it was written."""
    return column.spark_type == "string" and column.native_type in _DOCUMENTS


def typed_values(
    raw: pa.LargeStringArray, column: Column, null_values: Sequence[str] = (), *, is_declared: bool = True
) -> TypedValues:
    """`raw`: the JSON text of each value, NULL for `null`. `null_values`: texts that mean NULL. A column whose type was
    inferred takes what inference would have taken for it, and converts nothing: no text to a number."""
    if not is_declared:
        unlike = _unlike_inferred(raw, column, null_values)
        if unlike is not None:
            found = typed_values(pc.if_else(unlike, pa.scalar(None, raw.type), raw), column, null_values)
            misfits = unlike if found.misfits is None else pc.or_(unlike, found.misfits)
            return replace(found, misfits=misfits)
    kind = arrow_type(column.spark_type)
    if raw.null_count == len(raw):
        return TypedValues(pa.nulls(len(raw), kind))
    if is_document(column):
        return TypedValues(raw.cast(pa.string()))
    if at.is_list(kind):
        return _parsed_each(raw, kind, partial(_elements, kind=kind.value_type))
    found = _scalars(raw, kind, null_values)
    return _numbers(raw, found) if is_numeric_text(kind_of(column)) else found


def _unlike_inferred(raw: pa.LargeStringArray, column: Column, null_values: Sequence[str]) -> pa.BooleanArray | None:
    """Which values inference would not have taken for the column's type; None: there are none, or it takes all. An
    empty text is no value of any type but text."""
    kind = kind_of(column)
    if is_document(column) or at.is_list(kind) or (at.is_string(kind) and not is_numeric_text(kind)):
        return None
    quoted = pc.starts_with(raw, '"')
    if at.is_temporal(kind):
        texts = pc.utf8_trim_whitespace(pc.binary_slice(raw.cast(pa.large_binary()), 1, -1).cast(pa.large_string()))
        alike = pc.and_(quoted, pc.match_substring_regex(texts, TIMES_BY_TYPE[column.spark_type]))
    elif not bool(pc.any(quoted).as_py()) and not at.is_boolean(kind):
        return None  # what is no number does not fit anyway
    else:
        alike = pc.match_substring_regex(raw, _INFERRED_BOOLEAN if at.is_boolean(kind) else _INFERRED_NUMBER)
    if pc.all(alike).as_py():  # nulls do not count
        return None
    empty = [json.dumps(text, ensure_ascii=False) for text in ("", *null_values)]
    alike = pc.or_(alike, pc.or_(pc.is_in(raw, pa.array(empty, raw.type)), pc.match_substring_regex(raw, r'^"\s*"$')))
    unlike = pc.fill_null(pc.invert(alike), False)
    return unlike if pc.any(unlike).as_py() else None


def _numbers(raw: pa.LargeStringArray, texts: TypedValues) -> TypedValues:
    """Numbers as the texts that they are. What JSON has no number for may be one all the same."""
    if first_bytes(raw) <= _BEGIN_NUMBERS:
        return texts
    doubtful = pc.fill_null(pc.invert(pc.match_substring_regex(raw, "^[-0-9]")), False)
    found = _parsed_each(texts.values.filter(doubtful), pa.string(), _number)
    values = pc.replace_with_mask(texts.values, doubtful, found.values)
    if found.misfits is None:
        return TypedValues(values, texts.misfits)
    misfits = pc.replace_with_mask(pa.array(np.zeros(len(raw), dtype=bool)), doubtful, found.misfits)
    return TypedValues(values, misfits if texts.misfits is None else pc.or_(misfits, texts.misfits))


def first_bytes(raw: pa.LargeStringArray) -> frozenset[int]:
    """The bytes that JSON values begin with, which tell of what kind they are."""
    texts = raw.drop_null()
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return frozenset()
    starts = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts)]
    return frozenset(np.unique(np.frombuffer(data, dtype=np.uint8)[starts]).tolist())


def _number(text: str) -> str:
    if not _NUMBER.fullmatch(text) and not _NOT_FINITE.fullmatch(text):
        raise ValueError(text)
    return text


def _scalars(raw: pa.LargeStringArray, kind: pa.DataType, null_values: Sequence[str] = ()) -> TypedValues:
    quoted = pc.starts_with(raw, '"')
    any_quoted = bool(pc.any(quoted).as_py())
    texts, halves = _contents(raw, quoted) if any_quoted else (raw, None)
    if null_values:
        texts = pc.if_else(pc.is_in(texts, pa.array(null_values, texts.type)), pa.scalar(None, texts.type), texts)
    if at.is_string(kind):
        return TypedValues(texts.cast(kind), halves)
    if halves is not None:
        texts = pc.if_else(halves, "half of a surrogate pair", texts)  # which no type but text holds
    plain, parse = _PARSERS[kind.id](kind)
    # The literals of JSON are fewer than what Arrow reads: of them it reads none as another value.
    literals = not any_quoted and not at.is_temporal(kind)
    if literals or pc.all(pc.match_substring_regex(texts, plain)).as_py():
        try:
            values = texts.cast(kind)
        except pa.ArrowInvalid:
            return _parsed_each(texts, kind, parse)
        if not at.is_floating(kind) or not _is_out_of_range(texts, values):
            return TypedValues(values)
    found = _parsed_each(texts, kind, parse)
    if not at.is_timestamp(kind):
        return found
    truncated = pc.and_(pc.fill_null(pc.match_substring_regex(texts, _SUB_MICROSECOND), False), found.values.is_valid())
    return replace(found, truncated=truncated) if pc.any(truncated).as_py() else found


def _is_out_of_range(texts: pa.LargeStringArray, values: pa.FloatingPointArray) -> bool:
    """Whether a number was too large for its type, or so small that only zero is left of it."""
    if pc.any(pc.is_inf(values)).as_py():
        return True
    zeros = texts.filter(pc.equal(values, 0))
    return bool(len(zeros)) and bool(pc.any(pc.match_substring_regex(zeros, NOT_ZERO)).as_py())


def _contents(raw: pa.LargeStringArray, quoted: pa.BooleanArray) -> tuple[pa.LargeStringArray, pa.BooleanArray | None]:
    """The content of JSON texts, and the JSON of all else. And which of them no column can hold, if any: those with
    half of a surrogate pair."""
    content = pc.binary_slice(raw.cast(pa.large_binary()), 1, -1).cast(pa.large_string())
    texts = content if pc.all(quoted).as_py() else pc.if_else(quoted, content, raw)
    escaped = pc.fill_null(pc.and_(quoted, pc.match_substring(raw, "\\")), False)
    if not pc.any(escaped).as_py():
        return texts, None
    decoded = [json.loads(text) for text in raw.filter(escaped).to_pylist()]
    whole = [text if is_whole(text) else None for text in decoded]
    texts = pc.replace_with_mask(texts, escaped, pa.array(whole, texts.type))
    return texts, pc.and_(pc.is_null(texts), pc.is_valid(raw)) if None in whole else None


def _parsed_each(texts: pa.LargeStringArray, kind: pa.DataType, parse: Parse) -> TypedValues:
    misfits = np.zeros(len(texts), dtype=bool)
    values: list[Any] = []
    for index, text in enumerate(texts.to_pylist()):
        value = None
        # An empty text is no value of any type but text: `""` in a column of numbers means NULL.
        if text is not None and (stripped := text.strip(_BLANK)):
            try:
                value = parse(stripped)
            except ValueError:
                misfits[index] = True
        values.append(value)
    return TypedValues(pa.array(values, kind), pa.array(misfits) if misfits.any() else None)


def _integer(text: str, bits: int) -> int:
    if not _WHOLE.fullmatch(text) or len(text.lstrip("+-0")) > _LONGEST_INTEGER:
        raise ValueError(text)
    value = int(text)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(text)
    return value


def _float(text: str, largest: float, smallest: float) -> float:
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    if not _NUMBER.fullmatch(text) or abs(float(text)) > largest:
        raise ValueError(text)
    if abs(float(text)) <= smallest / 2 and _NOT_ZERO.match(text):  # of which only zero would be left
        raise ValueError(text)
    return float(text)


def _decimal(text: str, kind: pa.Decimal128Type) -> Decimal:
    """With at most the places of the type; superfluous zeros may follow."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    try:
        value = _EXACT.quantize(Decimal(text), Decimal(1).scaleb(-kind.scale))
    except (InvalidOperation, Inexact):
        raise ValueError(text) from None
    if value.adjusted() >= kind.precision - kind.scale and value:
        raise ValueError(text)
    return value


def _boolean(text: str) -> bool:
    lower = text.lower()
    if lower in _TRUE:
        return True
    if lower not in _FALSE:
        raise ValueError(text)
    return False


def _date(text: str) -> Any:
    found = _MOMENT.fullmatch(text)
    if found is None or found["clock"]:
        raise ValueError(text)
    return np.datetime64(_day(found), "D").astype(np.int64).item()


def _moment(text: str, *, zoned: bool) -> Any:
    """Microseconds since 1970. A time without a zone is UTC; where no zone is wanted, one would be lost."""
    found = _MOMENT.fullmatch(text)
    if found is None or (found["zone"] and not zoned):
        raise ValueError(text)
    hour, minute, second = (int(found[group] or 0) for group in (5, 6, 7))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(text)
    offset = 0
    if found[10]:
        offset = int(found[11]) * 60 + int(found[12] or 0)
        if offset > _MOST_OFFSET or int(found[12] or 0) > 59:
            raise ValueError(text)
        offset = -offset if found[10] == "-" else offset
    seconds = (hour * 60 + minute - offset) * 60 + second
    micros = int((found[8] or "").ljust(6, "0")[:6])
    day = np.datetime64(_day(found), "D").astype(np.int64).item()
    moment = day * 86_400_000_000 + seconds * 1_000_000 + micros
    if not -(1 << 63) < moment < 1 << 63:
        raise ValueError(text)
    return moment


def _day(found: re.Match[str]) -> str:
    if not int(found[1]):  # there is no year 0
        raise ValueError(found[0])
    return f"{int(found[1]):04d}-{found[2]:0>2}-{found[3]:0>2}"


def _elements(text: str, kind: pa.DataType) -> list[Any]:
    if not text.startswith("["):
        raise ValueError(text)
    elements = [None if one.value is None else one.text for one in elements_of(text)]
    if at.is_list(kind):
        return [None if one is None else _elements(one, kind.value_type) for one in elements]
    found = _scalars(pa.array(elements, pa.large_string()), kind)
    if found.misfits is not None:
        raise ValueError(text)
    # Python's own dates and times end with the year 9999
    values = found.values.cast(pa.int32() if at.is_date(kind) else pa.int64()) if at.is_temporal(kind) else found.values
    return list(values.to_pylist())


_Rule = tuple[str, Parse]


def _integers(kind: pa.DataType) -> _Rule:
    return _PLAIN_WHOLE, partial(_integer, bits=kind.bit_width)


def _floats(kind: pa.DataType) -> _Rule:
    limits = np.finfo(np.float32 if at.is_float32(kind) else np.float64)
    smallest = float(limits.smallest_subnormal)
    return _PLAIN_NUMBER, partial(_float, largest=float(limits.max), smallest=smallest)


_PARSERS: Final[dict[int, Callable[[Any], _Rule]]] = {
    pa.int8().id: _integers,
    pa.int16().id: _integers,
    pa.int32().id: _integers,
    pa.int64().id: _integers,
    pa.float32().id: _floats,
    pa.float64().id: _floats,
    pa.decimal128(1).id: lambda kind: (_PLAIN_NUMBER, partial(_decimal, kind=kind)),
    pa.bool_().id: lambda _: (r"^(true|false)$", _boolean),
    pa.date32().id: lambda _: (_PLAIN_DATE, _date),
    pa.timestamp("us").id: lambda kind: (
        _PLAIN_TIME if kind.tz is None else _PLAIN_INSTANT,
        partial(_moment, zoned=kind.tz is not None),
    ),
}
