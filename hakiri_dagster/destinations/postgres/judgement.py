"""Which converted values PostgreSQL would still refuse, found before they are sent.

Values are refused rather than changed: what would be cut, rounded or wrapped is set aside. Only the precision of
`real` and of `timestamp(p)` is taken as declared on purpose, as SQL does.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.destinations.contract import Refusal
from hakiri_dagster.destinations.postgres.casting import judge
from hakiri_dagster.destinations.postgres.conversion import kind_of, precision_and_scale
from hakiri_dagster.destinations.postgres.types import PgType

_FIRST_DAY, _LAST_DAY = -2440588, 2145042905
_FIRST_MICROSECOND = -210866803200000000
_NAME_BYTES = 63
_LOWEST_EXPONENT, _HIGHEST_EXPONENT = -16383, 131071
_UNICODE_ESCAPE = r"\\u(0000|[dD][89a-fA-F])"


def refusals(array: pa.Array, target: PgType, name: str) -> Iterator[Refusal]:
    """`array` is as the encoder gets it."""
    for mask, rule, message in _found(array, target, name):
        if mask is not None and pc.any(mask).as_py():
            yield Refusal(pc.fill_null(mask, False), rule, message)


_Finding = tuple[pa.BooleanArray | None, str, str]


def _found(array: pa.Array, target: PgType, name: str) -> Iterator[_Finding]:
    if at.is_string(array.type):
        yield pc.match_substring(array, "\0"), "nul_byte", f"{name}: PostgreSQL cannot store U+0000 in text"
    if target.dimensions:
        return
    match kind_of(target):
        case "text":
            yield from _lengths(array, target, name)
        case "date":
            days = array.cast(pa.int32())
            yield (
                _outside(days, _FIRST_DAY, _LAST_DAY),
                "out_of_range",
                f"{name}: the date is outside 4713 BC to 5874897 AD",
            )
        case "timestamp" | "timestamptz":
            early = pc.less(array.cast(pa.int64()), _FIRST_MICROSECOND)
            yield early, "out_of_range", f"{name}: the time is before 4713 BC"
        case "numeric" if at.is_string(array.type):
            yield _numbers(array, target), "type", f"{name}: the number does not fit {target}"
        case "json":
            yield judge(array, pc.is_null(array), _is_json), "type", f"{name}: not valid JSON for {target}"
            if target.name == "jsonb":
                plain = pc.invert(pc.match_substring_regex(array, _UNICODE_ESCAPE))
                message = f"{name}: PostgreSQL cannot store U+0000, or half of a surrogate pair, in jsonb"
                yield judge(array, plain, _decodes), "type", message
        case "other" if target.name in ("inet", "cidr"):
            yield _addresses(array, target), "type", f"{name}: not a valid {target}"


def _outside(array: pa.Array, lowest: int, highest: int) -> pa.BooleanArray:
    return pc.or_(pc.less(array, lowest), pc.greater(array, highest))


def _lengths(array: pa.Array, target: PgType, name: str) -> Iterator[_Finding]:
    if target.name == "name":
        yield pc.greater(pc.binary_length(array), _NAME_BYTES), "too_long", f"{name}: longer than {_NAME_BYTES} bytes"
    elif target.args:
        most = target.args[0]
        texts = pc.utf8_rtrim(array, " ") if target.name == "character" else array
        yield pc.greater(pc.utf8_length(texts), most), "too_long", f"{name}: longer than {most} characters"


def _numbers(array: pa.Array, target: PgType) -> pa.BooleanArray | None:
    if not target.args:
        easy = pc.match_substring_regex(array, r"^[+-]?\d{1,1000}(\.\d{0,1000})?$")
        return judge(array, easy, lambda text: _decimal(text) is not None)
    precision, scale = precision_and_scale(target)
    whole = min(max(precision - scale, 0), 1000)
    fraction = rf"(\.\d{{0,{min(scale, 1000)}}}0*)?" if scale > 0 else r"(\.0*)?"
    easy = (
        pc.match_substring_regex(array, rf"^[+-]?0*\d{{1,{whole}}}{fraction}$")
        if whole and scale >= 0
        else pc.is_null(array)
    )
    return judge(array, easy, lambda text: _fits(text, precision, scale))


def _decimal(text: str) -> Decimal | None:
    """Python reads more spellings than PostgreSQL does."""
    plain = text.strip(" ")
    if not plain.isascii() or "_" in plain:
        return None
    try:
        number = Decimal(plain)
    except InvalidOperation:
        return None
    if number.is_nan():
        return number if plain.lower() == "nan" else None
    if number.is_finite() and not _LOWEST_EXPONENT <= number.adjusted() <= _HIGHEST_EXPONENT:
        return None
    return number


def _fits(text: str, precision: int, scale: int) -> bool:
    number = _decimal(text)
    if number is None or number.is_infinite():
        return False
    if number.is_nan() or number == 0:
        return True
    _, digits, exponent = number.as_tuple()
    shown = "".join(map(str, digits))
    significant = shown.rstrip("0")
    lowest = int(exponent) + len(shown) - len(significant)
    return -lowest <= scale and len(shown) + int(exponent) <= precision - scale


def _is_json(text: str) -> bool:
    try:
        _DECODER.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _decodes(text: str) -> bool:
    """jsonb decodes escapes, and has neither U+0000 nor halves of pairs. What is no JSON is refused for that."""
    try:
        decoded = json.dumps(_DECODER.decode(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return True
    try:
        decoded.encode()
    except UnicodeEncodeError:
        return False
    return "\\u0000" not in decoded.replace("\\\\", "")


def _no_constant(name: str) -> Any:
    raise ValueError(name)


# Numbers stay text: Python refuses to convert integers of more than 4,300 digits.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_no_constant)


def _addresses(array: pa.Array, target: PgType) -> pa.BooleanArray | None:
    easy = pc.match_substring_regex(
        array, r"^(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])(\.(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])){3}$"
    )
    return judge(array, easy, lambda text: _is_address(text, network=target.name == "cidr"))


def _is_address(text: str, *, network: bool) -> bool:
    _, slash, bits = text.partition("/")
    if "%" in text or (slash and not bits.isdigit()):
        return False
    try:
        if network:
            ipaddress.ip_network(text)
        else:
            ipaddress.ip_interface(text)
    except ValueError:
        return False
    return True
