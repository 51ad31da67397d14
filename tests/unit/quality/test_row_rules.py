"""Rules, asked of Arrow columns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from hakiri_dagster.manifest.rule_spec import RowRule, RowRules, fields_of, id_of
from hakiri_dagster.planning.arrow_types import NativeText
from hakiri_dagster.quality.row_rules import broken_by, objections, shown

RULE: TypeAdapter[RowRule] = TypeAdapter(RowRule)
DAYS = pa.array([date(2024, 1, 1), date(2024, 1, 31), date(2024, 2, 1), None])
CENTS = pa.array([Decimal("0.10"), Decimal("0.11"), Decimal("-1.00"), None], pa.decimal128(15, 2))
NOON = pa.array([datetime(2024, 1, 1, 12, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
UUID = "6f9619ff-8b86-d011-b42d-00c04fc964ff"


def rule(**said: Any) -> RowRule:
    return RULE.validate_python({"field": "v"} | said)


def breaking(asked: RowRule, values: Any, **others: Any) -> list[int]:
    """Where in the column the rows are that break it."""
    batch = pa.record_batch({"v": values, **others})
    assert list(objections([asked], {field.name: field.type for field in batch.schema})) == []
    found = broken_by(asked, batch)
    return [] if found is None else [index for index, broken in enumerate(found.to_pylist()) if broken]


@pytest.mark.parametrize(
    ("said", "values", "broken"),
    [
        ({"type": "not_null"}, ["a", None, ""], [1]),
        ({"type": "regex", "pattern": "^.+@.+$"}, ["a@b", "ab", "", None], [1, 2]),
        ({"type": "regex", "pattern": "b"}, ["abc", "ac"], [1]),
        ({"type": "regex", "pattern": "(a+)+$"}, ["a" * 5000 + "!", "a"], [0]),
        ({"type": "range", "min": 1, "max": 3}, [0, 1, 3, 4, None], [0, 3]),
        ({"type": "range", "min": 0.5, "max": 2.5}, [0, 1, 2, 3], [0, 3]),
        ({"type": "range", "max": 2**62}, [2**62, 2**62 + 1], [1]),
        ({"type": "range", "min": 1e300}, [1, 2**62], [0, 1]),
        ({"type": "range", "min": 0, "max": 0.1}, CENTS, [1, 2]),
        ({"type": "range", "max": 0.105}, CENTS, [1]),
        ({"type": "range", "max": 1e300}, CENTS, []),
        ({"type": "range", "min": 0, "max": 1}, [0.5, float("nan"), float("inf"), None], [1, 2]),
        ({"type": "range", "min": 0.1, "max": 0.1}, pa.array([0.1, 0.10000001, 0.09999999], pa.float32()), [1, 2]),
        ({"type": "range", "max": 1e300}, pa.array([0.1, float("inf")], pa.float32()), [1]),
        ({"type": "range", "min": "2024-01-01", "max": "2024-01-31"}, DAYS, [2]),
        ({"type": "range", "min": "2024-01-01T12:00:00Z"}, NOON, []),
        ({"type": "range", "min": "2024-01-01T13:30:00+01:00"}, NOON, [0]),
        ({"type": "max_length", "max": 2}, ["äö", "äöü", None], [1]),
        ({"type": "min_length", "min": 1}, ["", "a", None], [0]),
        ({"type": "max_length", "max": 1}, [[1], [1, 2], None], [1]),
        ({"type": "one_of", "values": ["a", "b"]}, ["a", "c", None], [1]),
        ({"type": "one_of", "values": [0.1, -1]}, CENTS, [1]),
        ({"type": "field_type", "expected": "integer"}, ["1", "-2", "1.0", "", None], [2, 3]),
        ({"type": "field_type", "expected": "integer"}, [1.0, 1.5], [1]),
        ({"type": "field_type", "expected": "float"}, ["1", "1e3", ".5", "NaN", "x"], [4]),
        ({"type": "field_type", "expected": "boolean"}, ["true", "F", "0", "maybe"], [3]),
        ({"type": "field_type", "expected": "date"}, ["2024-02-29", "2023-02-29", "29.2.2024"], [1, 2]),
        ({"type": "field_type", "expected": "timestamp"}, ["2024-02-29 06:00", "2024-01-01T06:00:00.5Z", "6:00"], [2]),
        ({"type": "field_type", "expected": "json"}, ['{"a": [1]}', "{a}", None], [1]),
        ({"type": "field_type", "expected": "uuid"}, [UUID, UUID.upper(), UUID[:-1]], [2]),
        ({"type": "field_type", "expected": "string"}, [1, None], []),
    ],
)
def test_a_rule_finds_the_rows_that_break_it(said: dict[str, Any], values: Any, broken: list[int]) -> None:
    assert breaking(rule(**said), values) == broken


@pytest.mark.parametrize(
    ("op", "other", "broken"),
    [
        ("<", pa.array([2, 1, None]), [1]),
        ("<=", pa.array([1.0, 0.5, 9.0]), [1]),
        ("=", pa.array([Decimal("1.0"), Decimal("1.5"), None]), [1]),
        ("!=", pa.array([1, 2, 3]), [0]),
        (">=", pa.array([float("nan"), 1.0, 1.0]), [0]),
    ],
)
def test_two_fields_of_a_row_are_compared(op: str, other: pa.Array, broken: list[int]) -> None:
    assert breaking(rule(type="compare", op=op, other="w"), [1, 1, None], w=other) == broken


@given(st.lists(st.none() | st.text(st.sampled_from("aä€😀"), max_size=9)), st.integers(0, 9), st.integers(0, 9))
def test_lengths_are_of_characters_however_many_bytes_these_have(texts: list[str | None], low: int, high: int) -> None:
    values = pa.array(texts, pa.string())
    short = [i for i, text in enumerate(texts) if text is not None and len(text) < low]
    long = [i for i, text in enumerate(texts) if text is not None and len(text) > high]
    assert breaking(rule(type="min_length", min=low), values) == short
    assert breaking(rule(type="max_length", max=high), values) == long


@pytest.mark.parametrize("other", ["bad", "bad {}"])
def test_a_pattern_finds_the_same_rows_among_few_values_and_among_many(other: str) -> None:
    texts = [[None, "good", "fine", other.format(place)][place % 4] for place in range(5000)]
    expected = [place for place in range(5000) if place % 4 == 3]
    assert breaking(rule(type="regex", pattern="^(good|fine)$"), pa.array(texts)) == expected
    assert breaking(rule(type="regex", pattern="^(good|fine)$"), pa.array(texts).slice(3, 2000)) == [
        place - 3 for place in expected if 3 <= place < 2003
    ]


@pytest.mark.parametrize(
    ("native", "objected"),
    [("uuid", False), ("inet", False), ("numeric", False), ("interval", True), ("jsonb", True), ("numeric[]", True)],
)
def test_values_that_may_be_written_in_several_ways_cannot_be_unique(native: str, objected: bool) -> None:
    told = list(objections([rule(type="unique_within_load", field="x")], {"x": NativeText(native)}))
    assert bool(told) is objected
    assert all(f"x is {native}, of which equal values may be written in several ways" in one for one in told)


def test_a_column_that_is_not_there_is_told_with_the_one_that_may_be_meant() -> None:
    asked = rule(type="regex", id="named", field="Name", pattern="x")
    told = "rule named is about Name, which the source does not have; did you mean name?"
    assert list(objections([asked], {"id": pa.int64(), "name": pa.string()})) == [told]


def test_dates_compare_to_times() -> None:
    assert breaking(rule(type="compare", op="<=", other="w"), DAYS[:2], w=NOON) == []


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**40))
def test_a_range_of_whole_numbers_is_exact(values: list[int | None], low: int, width: int) -> None:
    broken = breaking(rule(type="range", min=low, max=low + width), pa.array(values, pa.int64()))
    assert broken == [i for i, value in enumerate(values) if value is not None and not low <= value <= low + width]


@pytest.mark.parametrize(
    ("said", "values", "told"),
    [
        ({"type": "regex", "pattern": "x"}, [1], "rule regex_v: v is bigint, and a pattern is for text"),
        ({"type": "range", "min": 1}, ["a"], "rule range_v: v is text, and the bounds are numbers"),
        ({"type": "range", "min": "2024-01-01"}, [1], "rule range_v: v is bigint, and the bounds are dates"),
        ({"type": "max_length", "max": 1}, [1], "rule max_length_v: v is bigint, which has no length"),
        ({"type": "one_of", "values": ["a"]}, [1], "rule one_of_v: v is bigint, which not all of the values are"),
        ({"type": "field_type", "expected": "uuid"}, [1], "rule field_type_v: v is bigint, and never a uuid"),
        (
            {"type": "compare", "op": "<", "other": "v", "field": "w"},
            [1],
            "rule compare_w is about w, which the source does not have",
        ),
    ],
)
def test_what_cannot_be_asked_of_a_column_is_told(said: dict[str, Any], values: list[Any], told: str) -> None:
    kinds = {"v": pa.array(values).type}
    assert list(objections([rule(**said)], kinds)) == [told]


def test_an_id_stays_when_a_bound_changes_and_tells_odd_names_apart() -> None:
    assert id_of(rule(type="range", max=1)) == id_of(rule(type="range", max=2)) == "range_v"
    odd = {id_of(rule(type="not_null", field=field)) for field in ("A b", "a b", "a_b", "ä", "x" * 200)}
    assert len(odd) == 5
    assert all(len(name) <= 63 for name in odd)


def test_what_a_rule_asks_for_is_told_in_words() -> None:
    assert shown(rule(type="range", min=0, max=150)) == "v lies between 0 and 150"


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ([{"type": "regex", "field": "v", "pattern": "("}], "is not a pattern: missing )"),
        ([{"type": "regex", "field": "v", "pattern": r"(a)\1"}], "is not a pattern: invalid escape sequence"),
        ([{"type": "regex", "field": "v", "pattern": "(?=a)"}], "is not a pattern: invalid perl operator"),
        ([{"type": "range", "field": "v", "min": 2, "max": 1}], "min is 2 and max 1, so no value would pass"),
        ([{"type": "range", "field": "v", "min": "2024-01-02", "max": "2024-01-01"}], "so no value would pass"),
        ([{"type": "range", "field": "v", "min": "soon"}], "is neither a number nor a date"),
        (
            [{"type": "range", "field": "v", "max": 10**400}],
            "it is beyond all numbers that a column may hold as floats",
        ),
        ([{"type": "range", "field": "v"}], "a range needs `min`, `max` or both"),
        ([{"type": "range", "field": "v", "min": 1, "max": "2024-01-01"}], "must both be numbers, or both dates"),
        ([{"type": "not_null", "field": "v", "id": "No"}], "is not the id of a check"),
        ([{"type": "not_null", "field": "v", "id": "no_rows_set_aside"}], "is the name of a check of our own"),
        ([{"type": "not_null", "field": "v", "max_failed_rows": 1}], 'are for on_fail = "skip"'),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(rules: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(RowRules).validate_python(rules)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("said", "name", "told"),
    [
        ({"field": "email"}, "unique_within_load_email", "email is unique within the load"),
        ({"fields": ["email"]}, "unique_within_load_email", "email is unique within the load"),
        ({"fields": ["a", "b"]}, "unique_within_load_a_b", "(a, b) is unique within the load"),
        ({"fields": ["A", "b"]}, "unique_within_load_a_b_08eb65ad", "(A, b) is unique within the load"),
    ],
)
def test_a_key_names_its_rule(said: dict[str, Any], name: str, told: str) -> None:
    asked = RULE.validate_python({"type": "unique_within_load"} | said)
    assert (id_of(asked), shown(asked)) == (name, told)


@pytest.mark.parametrize("said", [{}, {"field": "a", "fields": ["a"]}, {"fields": []}, {"fields": ["a", "a"]}])
def test_a_key_has_either_a_field_or_fields(said: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RULE.validate_python({"type": "unique_within_load"} | said)


def test_an_expression_is_named_after_its_text_unless_it_has_an_id() -> None:
    named = {id_of(RULE.validate_python({"type": "expression", "expression": text})) for text in ("a > 1", "a > 2")}
    assert len(named) == 2
    assert all(name.startswith("expression_") for name in named)
    assert id_of(RULE.validate_python({"type": "expression", "expression": "a > 1", "id": "low"})) == "low"


def test_rules_know_all_columns_that_they_are_about() -> None:
    asked = RULE.validate_python({"type": "expression", "expression": "`a b` > c AND c > 0"})
    assert fields_of(asked) == ("a b", "c")
    assert fields_of(rule(type="compare", op="<", other="w")) == ("v", "w")
