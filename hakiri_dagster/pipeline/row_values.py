"""The way back of `row_json`: JSON values as the Arrow values that they were, exactly, or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as at

Reader = Callable[[Any], object]
"""Raises ValueError for what cannot have been a value of its type."""

_DAY = re.compile(r"-?\d{4,6}-\d\d-\d\d")
_MOMENT = re.compile(r"(-?\d{4,6}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d{1,6})?)(\+00:00|Z)?")
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_SPAN = re.compile(r"(?:(-?\d+) days?, )?(\d{1,2}):(\d\d):(\d\d)(?:\.(\d{6}))?")
_NOT_FINITE = frozenset({"nan", "inf", "-inf"})
_NEGATIVE_ZERO = "-0.0"
_LOST_NUL = "\\u0000"
_MOST_DIGITS = 80


class ValueLost(ValueError):
    """What the value was can no longer be told."""


def column_of(values: Sequence[object], kind: pa.DataType) -> tuple[pa.Array, dict[int, ValueError]]:
    """NULL where a value cannot be read back; why, by its place."""
    read = reader_of(kind)
    found: list[object] = []
    failed: dict[int, ValueError] = {}
    for place, value in enumerate(values):
        try:
            found.append(None if value is None else read(value))
        except ValueError as error:
            failed[place] = error
            found.append(None)
    return pa.array(found, kind), failed


def reader_of(kind: pa.DataType) -> Reader:
    if at.is_list(kind) or at.is_large_list(kind):
        return _list_reader(reader_of(kind.value_type))
    if at.is_struct(kind):
        return _struct_reader({field.name: reader_of(field.type) for field in kind})
    if at.is_map(kind):
        return _map_reader(reader_of(kind.key_type), reader_of(kind.item_type))
    if at.is_integer(kind):
        return _integer_reader(kind)
    if at.is_decimal(kind):
        return _decimal_reader(kind)
    if at.is_timestamp(kind):
        return _moment_with_zone if kind.tz is not None else _moment_without_zone
    if at.is_floating(kind):
        return _real if at.is_float32(kind) else _double
    for is_one, reader in _READERS:
        if is_one(kind):
            return reader
    return _nothing


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    if _LOST_NUL in value:
        raise ValueLost("it may have held U+0000, which JSON in PostgreSQL does not keep")
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError
    return bytes.fromhex(value)


def _integer_reader(kind: pa.DataType) -> Reader:
    lowest, highest = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            raise ValueError
        return value

    return read


def _double(value: Any) -> float:
    if isinstance(value, str) and (value in _NOT_FINITE or value == _NEGATIVE_ZERO):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    return float(value)


def _real(value: Any) -> float:
    number = _double(value)
    with np.errstate(over="ignore"):
        kept = float(np.float32(number))
    if kept != number and number == number:
        raise ValueError
    return number


def _decimal_reader(kind: pa.DataType) -> Reader:
    step = Decimal(1).scaleb(-kind.scale)
    beyond = Decimal(10) ** (kind.precision - kind.scale)

    def read(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ValueError
        with localcontext(prec=_MOST_DIGITS):
            try:
                number = Decimal(value)
                exact = number.quantize(step)
            except InvalidOperation:
                raise ValueError from None
            if exact != number or abs(exact) >= beyond:
                raise ValueError
        return exact

    return read


def _day(value: Any) -> int:
    if not isinstance(value, str) or _DAY.fullmatch(value) is None:
        raise ValueError
    return int(np.datetime64(value, "D").astype(np.int64))


def _moment_with_zone(value: Any) -> int:
    return _moment(value, zoned=True)


def _moment_without_zone(value: Any) -> int:
    return _moment(value, zoned=False)


def _moment(value: Any, *, zoned: bool) -> int:
    found = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if found is None or (found[3] is not None) is not zoned:
        raise ValueError
    return int(np.datetime64(f"{found[1]}T{found[2]}", "us").astype(np.int64))


def _clock(value: Any) -> int:
    found = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    return _microseconds(0, *found.groups())


def _span(value: Any) -> int:
    found = _SPAN.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    return _microseconds(int(found[1] or 0), *found.groups()[1:])


def _microseconds(days: int, hours: str, minutes: str, seconds: str, fraction: str | None) -> int:
    whole = ((days * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(seconds)
    return whole * 1_000_000 + int((fraction or "").ljust(6, "0"))


def _nothing(_value: Any) -> object:
    raise ValueError


def _list_reader(item: Reader) -> Reader:
    def read(value: Any) -> list[object]:
        if not isinstance(value, list):
            raise ValueError
        return [None if one is None else item(one) for one in value]

    return read


def _struct_reader(fields: dict[str, Reader]) -> Reader:
    def read(value: Any) -> dict[str, object]:
        if not isinstance(value, dict) or value.keys() - fields.keys():
            raise ValueError
        return {name: None if value.get(name) is None else field(value[name]) for name, field in fields.items()}

    return read


def _map_reader(key: Reader, item: Reader) -> Reader:
    """Maps are lists of pairs there."""

    def read(value: Any) -> list[tuple[object, object]]:
        if not isinstance(value, list) or not all(isinstance(one, list) and len(one) == 2 for one in value):
            raise ValueError
        return [(key(one[0]), None if one[1] is None else item(one[1])) for one in value]

    return read


_READERS: tuple[tuple[Callable[[pa.DataType], bool], Reader], ...] = (
    (at.is_boolean, _boolean),
    (at.is_string, _text),
    (at.is_large_string, _text),
    (at.is_binary, _bytes),
    (at.is_large_binary, _bytes),
    (at.is_date32, _day),
    (at.is_time64, _clock),
    (at.is_duration, _span),
)
