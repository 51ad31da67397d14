"""Rows that PostgreSQL would refuse or change are found before they are sent."""

from __future__ import annotations

import pickle
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hakiri_dagster.destinations.postgres.column_plan import ColumnPlan
from hakiri_dagster.destinations.postgres.conversion import wire_for
from hakiri_dagster.destinations.postgres.encoding import PostgresEncoderPlan, is_binary
from hakiri_dagster.destinations.postgres.types import PgType, parse_type


def plan_for(target: str, kind: pa.DataType, **more: Any) -> ColumnPlan:
    parsed = PgType("enum") if target == "enum" else parse_type(target)
    assert parsed is not None
    wire = wire_for(kind, parsed)
    assert wire is not None
    return ColumnPlan("c", parsed, wire.type, wire.binary, **more)


D = Decimal
CASES: list[tuple[str, pa.DataType, list[Any], list[Any]]] = [
    ("text", pa.string(), ["a", "", None], ["a\0b", "\0"]),
    ("varchar(3)", pa.string(), ["abc", "äöü"], ["abcd", "ab  "]),
    ("char(3)", pa.string(), ["abc", "ab   "], ["abcd"]),
    ("name", pa.string(), ["a" * 63], ["ä" * 32]),
    ("smallint", pa.int64(), [32767, -32768, None], [32768, -32769]),
    ("integer", pa.int64(), [2**31 - 1], [2**31]),
    ("integer", pa.float64(), [1.0, -5.0], [1.5, 1e10, float("nan"), float("inf")]),
    ("integer", pa.decimal128(10, 2), [D("5.00")], [D("5.01")]),
    ("integer", pa.string(), ["5", "-7"], ["", "x", "5.5", "99999999999"]),
    ("double precision", pa.int64(), [2**53], [2**53 + 1]),
    ("real", pa.float64(), [1.5, float("inf"), float("nan")], [1e300]),
    ("numeric(4,2)", pa.decimal128(15, 2), [D("99.99"), D("-0.01")], [D("100.00")]),
    ("numeric(6,1)", pa.decimal128(15, 2), [D("12345.60")], [D("1.25"), D("123456.00")]),
    ("numeric(4,0)", pa.int64(), [9999], [10000]),
    ("numeric(4,2)", pa.string(), ["1.5", "99.99", "1e1", "NaN", "0012.340"], ["1.234", "100", "inf", "x", "1_0"]),
    ("numeric(4,2)", pa.float64(), [1.25, float("nan")], [1.255, 100.0, float("inf")]),
    ("numeric", pa.string(), ["1e500", "nan", " 2.5", "-inf"], ["", "abc", "1_0", "\uff11", "nan1", "1e200000"]),
    ("numeric(5,-2)", pa.string(), ["12300"], ["12345"]),
    ("boolean", pa.string(), ["true", "0"], ["maybe"]),
    ("date", pa.string(), ["2024-02-29"], ["2023-02-29", "yesterday"]),
    ("date", pa.timestamp("us"), [datetime(2024, 1, 1)], [datetime(2024, 1, 1, 5)]),
    ("timestamptz", pa.string(), ["2024-01-01", "2024-01-01T10:00:00", "2024-01-01 10:00:00+02"], ["2024-13-01"]),
    ("uuid", pa.string(), ["12345678-1234-5678-1234-567812345678"], ["nope", ""]),
    ("jsonb", pa.string(), ['{"a": [1, "\\u00e9"]}', "1"], ["{", "", "NaN", '"\\u0000"', '"\\ud800"']),
    ("json", pa.string(), ['"\\u0000"'], ["{"]),
    ("inet", pa.string(), ["10.0.0.1", "10.0.0.0/8", "::1"], ["256.0.0.1", "x", "10.0.0.0/255.0.0.0", "fe80::1%eth0"]),
    ("integer[]", pa.list_(pa.int64()), [[1, None], [], None], [[1, 2**40]]),
    ("text[]", pa.list_(pa.string()), [["a"]], [["a", "b\0"]]),
    ("varchar(2)[]", pa.list_(pa.string()), [["ab"]], [["abc"]]),
]  # fmt: skip


@pytest.mark.parametrize(("target", "kind", "good", "bad"), CASES)
def test_only_what_does_not_fit_is_refused(target: str, kind: pa.DataType, good: list[Any], bad: list[Any]) -> None:
    converted, refusals = plan_for(target, kind).prepare(pa.array([*good, *bad], kind))
    refused = {index for refusal in refusals for index, hit in enumerate(refusal.mask.to_pylist()) if hit}
    assert refused == set(range(len(good), len(good) + len(bad)))
    assert converted.is_valid().to_pylist() == [value is not None for value in good] + [False] * len(bad)


def test_dates_and_times_outside_postgresqls_range_are_refused() -> None:
    days = pa.array([-2440588, -2440589, 2145042905, 2145042906], pa.int32()).cast(pa.date32())
    _, refusals = plan_for("date", pa.date32()).prepare(days)
    assert [refusal.mask.to_pylist() for refusal in refusals] == [[False, True, False, True]]
    moments = pa.array([-210866803200000000, -210866803200000001, 2**63 - 1], pa.int64()).cast(pa.timestamp("us"))
    _, refusals = plan_for("timestamp", moments.type).prepare(moments)
    assert [refusal.mask.to_pylist() for refusal in refusals] == [[False, True, False]]


def test_a_value_that_is_no_label_of_the_enum_is_refused() -> None:
    _, refusals = plan_for("enum", pa.string(), labels=("ok", "bad")).prepare(pa.array(["ok", "so-so", None]))
    assert [refusal.mask.to_pylist() for refusal in refusals] == [[False, True, False]]


def test_a_null_that_the_target_does_not_allow_is_refused_with_the_reason() -> None:
    plan = plan_for("integer", pa.int32(), required="the target does not allow it")
    _, refusals = plan.prepare(pa.array([1, None], pa.int32()))
    assert [(refusal.rule, refusal.message) for refusal in refusals] == [
        ("not_null", "c is NULL, and the target does not allow it")
    ]


@pytest.mark.parametrize(
    ("target", "kind"),
    [("integer", pa.binary()), ("bytea", pa.string()), ("boolean", pa.int32()), ("uuid", pa.int64()),
     ("integer[]", pa.int32()), ("date", pa.int32()), ("text", pa.binary()), ("json", pa.binary())],
)  # fmt: skip
def test_types_that_do_not_fit_at_all_are_told_before_any_row_moves(target: str, kind: pa.DataType) -> None:
    parsed = parse_type(target)
    assert parsed is not None
    assert wire_for(kind, parsed) is None


@pytest.mark.parametrize("binary", [True, False])
def test_blocks_of_several_encoders_follow_each_other(binary: bool) -> None:
    columns = [plan_for("bigint", pa.int64()), *([] if binary else [plan_for("inet", pa.string())])]
    plan = pickle.loads(pickle.dumps(PostgresEncoderPlan(tuple(columns))))
    batch = pa.RecordBatch.from_arrays(
        [pa.array([7]), *([] if binary else [pa.array(["::1"])])],
        schema=pa.schema([(p.name + p.target.name, p.wire) for p in columns]),
    )
    encoder = pickle.loads(pickle.dumps(plan.encoder()))
    block = encoder.write(batch) + encoder.finish()
    again = encoder.write(batch) + encoder.finish()
    assert block == again
    assert is_binary(block) is binary
    expected = b"\x00\x01\x00\x00\x00\x08" + (7).to_bytes(8, "big") if binary else b"7\t::1\n"
    assert block == expected


def test_nothing_of_a_large_batch_is_kept_back_after_finish() -> None:
    plan = PostgresEncoderPlan((plan_for("bigint", pa.int64()),))
    encoder = plan.encoder()
    batch = pa.RecordBatch.from_arrays([pa.array(range(300_000))], names=["c"])
    encoded = encoder.write(batch) + encoder.write(batch) + encoder.finish()
    assert len(encoded) == 600_000 * 14
    assert encoded.endswith((299_999).to_bytes(8, "big"))


@pytest.mark.parametrize("first", [chr(number) for number in range(1, 32)])
def test_a_block_of_text_never_looks_like_a_block_of_binary(first: str) -> None:
    plan = PostgresEncoderPlan((plan_for("text", pa.string()), plan_for("inet", pa.string())))
    batch = pa.RecordBatch.from_arrays([pa.array([first]), pa.array(["::1"])], names=["a", "b"])
    assert not is_binary(plan.encoder().write(batch))


def test_a_lenient_column_leaves_a_value_out_and_not_its_row() -> None:
    converted, (refusal,) = plan_for("integer", pa.int64(), lenient=True).prepare(pa.array([1, 2**40]))
    assert converted.to_pylist() == [1, None]
    assert refusal.value_only
    _, found = plan_for("integer", pa.int64(), lenient=True, required="it is a key").prepare(pa.array([1, 2**40]))
    assert [refusal.value_only for refusal in found] == [False], "there is no row without it"
