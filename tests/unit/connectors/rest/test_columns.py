from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.connectors.json.type_inference import ObservedValues
from hakiri_dagster.connectors.rest.columns import Shown, columns_of, shown_by
from hakiri_dagster.planning.columns import Column, SourceSchema
from tests.unit.connectors.rest.records import record


def shown(*texts: str, settled: frozenset[str] = frozenset()) -> Shown:
    return shown_by([record(text) for text in texts], settled)


def found(*texts: str, known: SourceSchema | None = None, **declared: str) -> dict[str, str]:
    schema, _ = columns_of([shown(*texts)], known, declared)
    return {column.name: column.native_type or column.spark_type for column in schema.columns}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "20000000000"], "bigint"),
        (["9223372036854775807", "-9223372036854775808"], "bigint"),
        (["9223372036854775808"], "numeric"),
        (["1.5", "2"], "numeric"),
        (["1e5", "2"], "numeric"),
        (["true", "false"], "boolean"),
        (['"2024-01-31"'], "date"),
        (['"2024-01-31T10:00:00Z"', "null"], "timestamp"),
        (['"2024-01-31T10:00:00.123+02:00"'], "timestamp"),
        (['"2024-01-31 10:00:00"'], "timestamp_ntz"),
        (['"2024-01-31"', '"soon"'], "string"),
        (['"1"', '"2"'], "string"),
        (['"1"', "2"], "string"),
        (["true", "1"], "string"),
        (["null"], "string"),
        (['{"a":1}', "null"], "jsonb"),
        (["[1]", '{"a":1}'], "jsonb"),
        (['{"a":1}', '"text"'], "string"),
    ],
)
def test_types_follow_from_the_values(values: list[str], expected: str) -> None:
    assert found(*(f'{{"x":{value}}}' for value in values)) == {"x": expected}


def test_columns_keep_the_order_in_which_they_were_first_seen() -> None:
    known = SourceSchema((Column("b", "bigint"), Column("a", "string")))
    assert list(found('{"z":1}', '{"a":1,"c":2}', known=known, d="text")) == ["b", "a", "z", "c", "d"]


def test_what_is_known_wins_over_the_sample_and_what_is_declared_over_both() -> None:
    known = SourceSchema((Column("x", "bigint"), Column("y", "bigint")))
    assert found('{"x":"text","y":1}', known=known, y="numeric(10,2)") == {"x": "bigint", "y": "numeric(10,2)"}


def test_declared_columns_are_there_though_no_record_shows_them() -> None:
    assert found('{"x":1}', closed_at="timestamptz") == {"x": "bigint", "closed_at": "timestamptz"}


def test_a_declared_array_is_read_as_one() -> None:
    schema, _ = columns_of([shown('{"l":["a"]}')], None, {"l": "text[]", "n": "integer[]"})
    assert [(c.spark_type, c.native_type) for c in schema.columns] == [
        ("array<string>", "text[]"),
        ("array<int>", "integer[]"),
    ]


def test_what_is_no_object_has_no_columns() -> None:
    assert found("5", "[1]", "null", '{"x":1}') == {"x": "bigint"}


def test_names_that_loads_write_themselves_are_left_out_with_a_warning() -> None:
    schema, warnings = columns_of([shown('{"_hakiri_load_id":1,"Id":1,"id":2}')], None, {})
    assert [column.name for column in schema.columns] == ["Id", "id"]
    assert len(warnings) == 2


def test_half_a_character_in_a_text_is_text_and_in_a_name_is_left_out_with_a_warning() -> None:
    assert found('{"x":"\\udc00"}') == {"x": "string"}
    schema, warnings = columns_of([shown('{"a\\ud800":1,"b":2}')], None, {})
    assert [column.name for column in schema.columns] == ["b"]
    assert warnings == ('the member "a\\ud800" is not loaded: there is half of a character in its name',)


NUMBERS = ("1", "-7", "1.5", "0.1234567890123456789", "1e5", "9223372036854775808")
TEXTS = ("", "1", "some", "2024-01-31", "2024-02-30", "2024-01-31 10:00", "2024-01-31T10:00:00Z")
VALUES = st.sampled_from((*NUMBERS, *(f'"{text}"' for text in TEXTS), "true", "null", "[1]", '{"a":1}'))


@given(st.lists(st.lists(VALUES, max_size=3), max_size=3))
def test_pages_tell_together_what_all_their_records_would(pages: list[list[str]]) -> None:
    texts = [[f'{{"x":{value}}}' for value in page] for page in pages]
    together = columns_of([shown(*(text for page in texts for text in page))], None, {})
    assert columns_of([shown(*page) for page in texts], None, {}) == together


def test_nobody_looks_at_values_of_columns_that_have_a_type_already() -> None:
    told = shown('{"x":1,"y":2}', '{"z":true}', settled=frozenset({"x", "z"}))
    assert told == {"x": ObservedValues(), "y": ObservedValues("integer"), "z": ObservedValues()}
    assert list(told) == ["x", "y", "z"]
