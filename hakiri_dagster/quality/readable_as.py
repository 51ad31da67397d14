"""Which values cannot be read as a type."""

from __future__ import annotations

import json
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.manifest.rule_spec import FieldTypeName
from hakiri_dagster.planning.arrow_types import has_texts, is_number, is_numeric_text, is_text, is_time
from hakiri_dagster.quality.numerics import shortest

_INTEGER = r"^\s*[+-]?[0-9]+\s*$"
_INTEGER_SHORTEST = r"^-?[0-9]+(e[0-9]+)?$"
_FLOAT = r"(?i)^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?\s*$|^\s*([+-]?inf(inity)?|nan)\s*$"
_BOOLEAN = r"(?i)^\s*(true|false|t|f|yes|no|y|n|on|off|1|0)\s*$"
_UUID = r"(?i)^\s*\{?[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\}?\s*$"
_DATE = r"^\s*[0-9]{4}-[0-9]{2}-[0-9]{2}\s*$"
_OF_DAY = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_TIME = rf"^\s*[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([T ]{_OF_DAY}\s*{_ZONE}?)?\s*$"


def ever(expected: FieldTypeName, kind: pa.DataType) -> bool:
    """False: no value of a column of this kind is readable so."""
    as_text = has_texts(kind) and not is_number(kind)
    return as_text or _always(expected, kind) or (expected == "integer" and is_number(kind))


def _always(expected: FieldTypeName, kind: pa.DataType) -> bool:
    match expected:
        case "string":
            return True
        case "integer":
            return bool(at.is_integer(kind))
        case "float":
            return is_number(kind)
        case "boolean":
            return bool(at.is_boolean(kind))
        case "date":
            return bool(at.is_date(kind))
        case "timestamp":
            return is_time(kind)
        case "json":
            return bool(at.is_nested(kind)) or is_number(kind) or bool(at.is_boolean(kind))
        case "uuid":
            return bool(kind == pa.binary(16))
        case _:
            assert_never(expected)


def unreadable(array: pa.Array, expected: FieldTypeName) -> pa.BooleanArray | None:
    """None: every value is readable."""
    if is_numeric_text(array.type):
        array = shortest(array)
        if expected == "integer":
            return _no_match(array, _INTEGER_SHORTEST)
    if _always(expected, array.type):
        return None
    if not is_text(array.type):
        return pc.not_equal(pc.floor(array), array)
    match expected:
        case "integer":
            return _no_match(array, _INTEGER)
        case "float":
            return _no_match(array, _FLOAT)
        case "boolean":
            return _no_match(array, _BOOLEAN)
        case "uuid":
            return _no_match(array, _UUID)
        case "date":
            return pc.or_(_no_match(array, _DATE), _no_day(array))
        case "timestamp":
            return pc.or_(_no_match(array, _TIME), _no_day(array))
        case "json":
            return _one_by_one(array)
        case "string":
            return None
        case _:
            assert_never(expected)


def _no_match(array: pa.Array, pattern: str) -> pa.BooleanArray:
    return pc.invert(pc.match_substring_regex(array, pattern))


def _no_day(array: pa.Array) -> pa.BooleanArray:
    """The 31st of February looks like a date."""
    days = pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(array), 0, 10)
    moments = pc.strptime(days, format="%Y-%m-%d", unit="s", error_is_null=True)
    back = pc.strftime(moments, format="%Y-%m-%d")
    return pc.or_(pc.is_null(moments), pc.fill_null(pc.not_equal(back, days), True))


def _one_by_one(array: pa.Array) -> pa.BooleanArray:
    bad = np.array([text is not None and not _is_json(text) for text in array.to_pylist()], dtype=bool)
    return pa.array(bad)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
