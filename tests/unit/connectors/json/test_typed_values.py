from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hakiri_dagster.connectors.json.type_inference import declared_json_column
from hakiri_dagster.connectors.json.typed_values import typed_values
from hakiri_dagster.planning.columns import Column

BAD = object()
NOON = datetime(2024, 1, 2, 12, 0)
UTC_NOON = NOON.replace(tzinfo=UTC)

CASES: dict[str, dict[str, Any]] = {
    "text": {'"a\\u00e9\\n"': "aé\n", "1.10": "1.10", "true": "true", '{"a": 1.10}': '{"a": 1.10}', '""': "",
             '"\\ud83d\\ude00"': "😀", '"\\ud800"': BAD, '"\\u0000"': "\0", '"null"': "null"},
    "jsonb": {'"a"': '"a"', "1.10": "1.10", '{"a" : [1.10]}': '{"a" : [1.10]}'},
    "numeric": {"1.10": "1.10", "1E+400": "1E+400", "-0": "-0", '" 7.0 "': "7.0", '"x"': BAD, "true": BAD, "[1]": BAD,
                '""': None, '"NaN"': "NaN"},
    "numeric(6,2)": {"1.10": Decimal("1.10"), "1.1000": Decimal("1.10"), "1e3": Decimal("1000"), "1.101": BAD,
                     "10000": BAD, "9999.99": Decimal("9999.99"), "1e999999999": BAD, '"5"': Decimal(5), '"0x5"': BAD},
    "integer": {"1": 1, "-2147483648": -2147483648, "2147483648": BAD, "1.0": BAD, "1e2": BAD, '"+5"': 5, '"0x1A"': BAD,
                "true": BAD, '"5 "': 5},
    "bigint": {"9223372036854775807": 9223372036854775807, "9223372036854775808": BAD, '"\uff11\uff12"': BAD},
    "double precision": {"0.1": 0.1, "1e308": 1e308, "1e309": BAD, "1e-400": BAD, "5e-324": 5e-324, "0e-999": 0.0,
                         '"Infinity"': math.inf, '"1d"': BAD, "false": BAD},
    "real": {"0.5": 0.5, "1e39": BAD, "1e-60": BAD, "-0.0": -0.0, '"1e-60"': BAD},
    "boolean": {"true": True, "false": False, "1": True, '"No"': False, '"perhaps"': BAD, "2": BAD},
    "date": {'"2024-01-02"': date(2024, 1, 2), '"2024-1-2"': date(2024, 1, 2), '"2024-02-30"': BAD, "20240102": BAD,
             '"2024-01-02T00:00:00"': BAD, '"0000-01-01"': BAD, '"\uff12024-01-05"': BAD},
    "timestamp": {'"2024-01-02T12:00:00"': NOON, '"2024-01-02 12:00"': NOON, '"2024-01-02"': NOON.replace(hour=0),
                  '"2024-01-02T12:00:00Z"': BAD, '"2024-01-02T25:00"': BAD, '"12:00"': BAD, "2024": BAD},
    "timestamptz": {'"2024-01-02T12:00:00Z"': UTC_NOON, '"2024-01-02T14:00:00+02"': UTC_NOON,
                    '"2024-01-02 11:30:00 -00:30"': UTC_NOON, '"2024-01-02T12:00"': UTC_NOON,
                    '"2024-01-02T12:00:00.123456Z"': UTC_NOON.replace(microsecond=123456),
                    '"2024-01-02T12:00:00+24:00"': BAD},
    "integer[]": {"[1, null,3]": [1, None, 3], '["2"]': [2], "[]": [], "[1.5]": BAD, '{"a":1}': BAD, "1": BAD},
    "text[]": {'["a", 1.10, {"b" : 1}]': ["a", "1.10", '{"b" : 1}']},
    "timestamptz[]": {'["2024-01-02T12:00:00Z"]': [UTC_NOON]},
}  # fmt: skip


@pytest.mark.parametrize("declared", CASES)
def test_a_value_is_exactly_what_is_written_or_does_not_fit(declared: str) -> None:
    """Each value alone, and all of them together: a column converts as a whole where it can."""
    column = declared_json_column("x", declared)
    cases = CASES[declared]
    for texts in [[text] for text in cases] + [[*cases, None]]:
        found = typed_values(pa.array(texts, pa.large_string()), column)
        misfits = found.misfits.to_pylist() if found.misfits is not None else [False] * len(texts)
        expected = [cases.get(text) for text in texts if text is not None] + [None] * texts.count(None)
        assert misfits == [value is BAD for value in expected]
        assert found.values.to_pylist() == [None if value is BAD else value for value in expected]


INFERRED: dict[Column, dict[str, Any]] = {
    Column("x", "bigint"): {"7": 7, '""': None, '" "': None, '"n/a"': None, '"007"': BAD, '"7"': BAD, "1.0": BAD,
                            "true": BAD},
    Column("x", "string", native_type="numeric"): {"1.10": "1.10", '""': None, '"7"': BAD, '"inf"': BAD, "true": BAD},
    Column("x", "boolean"): {"true": True, '""': None, "1": BAD, '"t"': BAD, '"true"': BAD},
    Column("x", "date"): {'"2024-01-05"': date(2024, 1, 5), '""': None, '"2024-1-5"': BAD, "20240105": BAD},
    Column("x", "timestamp_ntz"): {'"2024-01-02T12:00"': NOON, '"2024-01-02"': NOON.replace(hour=0), "1": BAD,
                                   '"2024-1-2 12:00"': BAD},
    Column("x", "timestamp"): {'"2024-01-02T12:00:00Z"': UTC_NOON, '"2024-1-2 12:0:0Z"': BAD, '"2024-01-02"': BAD},
    Column("x", "string"): {"7": "7", '"007"': "007"},
}  # fmt: skip


@pytest.mark.parametrize("column", INFERRED, ids=str)
def test_a_column_whose_type_was_inferred_converts_nothing(column: Column) -> None:
    cases = INFERRED[column]
    for texts in [[text] for text in cases] + [[*cases, None]]:
        found = typed_values(pa.array(texts, pa.large_string()), column, ["n/a"], is_declared=False)
        misfits = found.misfits.to_pylist() if found.misfits is not None else [False] * len(texts)
        expected = [cases.get(text) for text in texts if text is not None] + [None] * texts.count(None)
        assert misfits == [value is BAD for value in expected]
        assert found.values.to_pylist() == [None if value is BAD else value for value in expected]


def test_texts_that_mean_null_are_null_in_columns_of_any_type() -> None:
    raw = pa.array(['"n/a"', '"7"', "7"], pa.large_string())
    for declared, seven in (("text", "7"), ("integer", 7), ("numeric", "7")):
        found = typed_values(raw, declared_json_column("x", declared), ["n/a"])
        assert found.misfits is None
        assert found.values.to_pylist() == [None, seven, seven]
