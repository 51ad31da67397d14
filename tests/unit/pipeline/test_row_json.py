"""Rows as JSON text that a jsonb column takes."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from hakiri_dagster.pipeline.row_json import rows_as_json


def test_values_of_all_kinds_are_told_as_they_are_read() -> None:
    batch = pa.record_batch(
        {
            "whole": pa.array([2**62, None]),
            "cents": pa.array([Decimal("-0.10"), None], pa.decimal128(15, 2)),
            "day": [date(2024, 2, 29), None],
            "at": pa.array([datetime(2024, 2, 29, 6, tzinfo=UTC), None]),
            "part": [float("nan"), 0.5],
            "text": ["a\0\n\u2028ä", "[b"],
            "raw": [b"\x00\xff", None],
            "many": [[1, None], []],
            "deep": [{"k": "v\0"}, {"k": None}],
            "so": [True, None],
        }
    )
    first, second = rows_as_json(batch)
    assert json.loads(first) == {
        "whole": 2**62,
        "cents": "-0.10",
        "day": "2024-02-29",
        "at": "2024-02-29 06:00:00+00:00",
        "part": "nan",
        "text": "a\\u0000\n\u2028ä",
        "raw": "00ff",
        "many": [1, None],
        "deep": {"k": "v\\u0000"},
        "so": True,
    }
    assert json.loads(second)["part"] == 0.5
    assert "\n" not in first, "a line of the file of bad rows is one row"


def test_texts_are_escaped_whatever_else_their_column_holds() -> None:
    texts = ['say "hi"', "C:\\new", '\\"', "", None, "ä/\u2028", "null"]
    columns = {"plain": texts, "with controls": [*texts[:-1], "a\tb\r\n\x01"], 'na"me\\': texts}
    batch = pa.record_batch({name: pa.array(values, pa.string()) for name, values in columns.items()})
    told = [json.loads(text) for text in rows_as_json(batch)]
    assert told == batch.to_pylist()


def test_none_of_many_large_rows_is_left_out() -> None:
    batch = pa.record_batch({"n": range(40), "text": [f"{n}" * 300_000 for n in range(40)]}).slice(3)
    assert [json.loads(text) for text in rows_as_json(batch)] == batch.to_pylist()


def test_a_batch_without_rows_tells_none() -> None:
    assert list(rows_as_json(pa.record_batch({"n": pa.array([], pa.int64())}))) == []
