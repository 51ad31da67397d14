"""The types of columns of text, from one look at every value.

Each value has a signature, a set of bits that says which types could hold it; the bits of a column are united, first
in Spark's workers, then here. Integers become `bigint` (or a decimal without places if they are longer), fractions
exact decimals of 18 or 38 digits, longer or exponential ones `double`, then boolean, date, timestamps with and
without a zone. All else is text, and so is a column with a single value that begins with a superfluous zero:
`02134` is a code, not a number.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.connectors.files.text_values import NOT_FINITE, ZONE
from hakiri_dagster.connectors.files.types import MAX_PRECISION, decimal

_INTEGER, _FRACTION, _DOUBLE, _BOOLEAN, _DATE, _ZONELESS, _ZONED, _TEXT, _LONG = (1 << n for n in range(9))
_SCALE_BIT, _MAX_SCALE = 10, 19
_DIGITS_BIT, _MAX_DIGITS = 30, 30
_LONG_DIGITS = 18
_LONG_MAX = 2**63
_CENTS = 2
"""`1.5` today may be `1.25` tomorrow."""
_MONEY_SCALE = 12
_DOUBLE_DIGITS = 18
"""The zero before the point counts, so these are 17 digits that matter: what a program prints of a double."""
_ROOM = 14
"""So that later, larger values still fit into 18 digits."""

_DAY = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"[ T](?:[01]?\d|2[0-3]):[0-5]?\d(?::[0-5]?\d(?:\.\d{1,9})?)?"
_WHOLE = r"^[+-]?(?:0|[1-9]\d{0,37})$"
_PLACES = r"^[+-]?(?:0|[1-9]\d{0,37})?\.\d+$"
_EXPONENTIAL = r"^[+-]?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+$"
_SHAPES: tuple[tuple[str, int], ...] = (
    (_EXPONENTIAL, _DOUBLE),
    (rf"^{NOT_FINITE}$", _DOUBLE),
    (r"^(?i:true|false)$", _BOOLEAN),
)
_TIMES: tuple[tuple[str, int], ...] = (
    (rf"^{_DAY}$", _DATE),
    (rf"^{_DAY}{_CLOCK}$", _ZONELESS),
    (rf"^{_DAY}{_CLOCK}{ZONE}$", _ZONED),
)


def signature(values: pa.Array, *, only_times: bool = False) -> int:
    """The united bits of some texts. `only_times`: they are of a format that has numbers of its own, so that only dates
    and timestamps hide in texts."""
    texts = pc.utf8_trim_whitespace(values.drop_null())
    texts = texts.filter(pc.not_equal(texts, ""))
    bits = 0
    if not only_times:
        texts, whole = split_matching(texts, _WHOLE)
        bits |= _whole_bits(whole)
        texts, places = split_matching(texts, _PLACES)
        bits |= _fraction_bits(places)
        for pattern, bit in _SHAPES:
            texts, matching = split_matching(texts, pattern)
            bits |= bit if len(matching) else 0
    for pattern, bit in _TIMES:
        texts, matching = split_matching(texts, pattern)
        if len(matching):
            bits |= bit if _are_days(matching) else _TEXT
    return bits | (_TEXT if len(texts) else 0)


def split_matching(texts: pa.Array, pattern: str) -> tuple[pa.Array, pa.Array]:
    """Return the texts that do not match, and those that do."""
    if not len(texts):
        return texts, texts
    mask = pc.match_substring_regex(texts, pattern)
    return texts.filter(pc.invert(mask)), texts.filter(mask)


def _whole_bits(texts: pa.Array) -> int:
    if not len(texts):
        return 0
    digits = pc.utf8_ltrim(texts, "+-")
    lengths = pc.utf8_length(digits)
    bits = _INTEGER | _bit(_DIGITS_BIT, pc.max(lengths).as_py(), _MAX_DIGITS)
    long = texts.filter(pc.greater(lengths, _LONG_DIGITS))
    fits = all(-_LONG_MAX <= int(text) < _LONG_MAX for text in long.to_pylist())
    return bits if fits else bits | _LONG


def _fraction_bits(texts: pa.Array) -> int:
    if not len(texts):
        return 0
    point = pc.find_substring(texts, ".")
    scale = pc.max(pc.subtract(pc.utf8_length(texts), point)).as_py() - 1
    digits = pc.max(pc.find_substring(pc.utf8_ltrim(texts, "+-"), ".")).as_py()
    return _FRACTION | _bit(_SCALE_BIT, scale, _MAX_SCALE) | _bit(_DIGITS_BIT, digits, _MAX_DIGITS)


def _bit(offset: int, count: int, limit: int) -> int:
    return 1 << (offset + min(count, limit))


def _are_days(texts: pa.Array) -> bool:
    """The thirtieth of February is a text."""
    try:
        pc.utf8_slice_codeunits(texts, 0, 10).cast(pa.date32())
    except pa.ArrowInvalid:
        return False
    return True


def is_plain_text(signature: int) -> bool:
    """Whether a value is among them that is nothing but text."""
    return bool(signature & _TEXT)


def type_of(signature: int | None) -> str | None:
    if not signature:
        return None
    kinds = signature & ((1 << _SCALE_BIT) - 1)
    if kinds & ~(_INTEGER | _LONG) == 0:
        return "bigint" if not kinds & _LONG else decimal(MAX_PRECISION, 0)
    if kinds & ~(_INTEGER | _LONG | _FRACTION) == 0:
        return _decimal_type(signature)
    if kinds & ~(_INTEGER | _FRACTION | _DOUBLE) == 0:
        return "double"
    return {
        _BOOLEAN: "boolean",
        _DATE: "date",
        _ZONELESS: "timestamp_ntz",
        _DATE | _ZONELESS: "timestamp_ntz",
        _ZONED: "timestamp",
    }.get(kinds, "string")


def _decimal_type(signature: int) -> str:
    scale = max(_highest(signature >> _SCALE_BIT, _MAX_SCALE), _CENTS)
    digits = _highest(signature >> _DIGITS_BIT, _MAX_DIGITS)
    if digits >= _MAX_DIGITS:
        return "string"
    if scale >= _MAX_SCALE or digits + scale > MAX_PRECISION:
        return "double"
    if scale > _MONEY_SCALE and digits + scale <= _DOUBLE_DIGITS:
        return "double"
    return decimal(18 if digits + scale <= _ROOM else MAX_PRECISION, scale)


def _highest(bits: int, limit: int) -> int:
    return (bits & ((1 << (limit + 1)) - 1)).bit_length() - 1
