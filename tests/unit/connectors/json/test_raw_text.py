from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.connectors.json.raw_text import NotJson, TooMany, elements_of, members_of, read_document

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)
BLANK = st.sampled_from(["", " ", "\n\t "])


def written(value: Any, blank: str) -> str:
    return json.dumps(value, indent=2 if blank else None, separators=(f",{blank}", f":{blank}")) + blank


@given(st.lists(VALUES, max_size=5), BLANK, VALUES)
def test_records_are_what_the_json_module_finds(values: list[Any], blank: str, other: Any) -> None:
    body = written({"a": other, "d": {"r": values, "x": other}, "z": [other]}, blank).encode()
    document = read_document(body, ("d", "r"))
    assert document.records is not None
    assert [record.value for record in document.records] == values
    assert [json.loads(record.text) for record in document.records] == values
    assert document.around == {"a": other, "d": {"r": [], "x": other}, "z": [other]}


@given(st.dictionaries(st.text(), VALUES, max_size=5), BLANK)
def test_members_are_what_the_json_module_finds(value: dict[str, Any], blank: str) -> None:
    members = list(members_of(blank + written(value, blank)))
    assert {member.name: member.value for member in members} == value
    assert {member.name: json.loads(member.text) for member in members} == value


@given(st.text(alphabet='[]{}:,"01ax \\', max_size=12))
def test_only_what_the_json_module_takes_is_json(text: str) -> None:
    for path in ((), ("a",), ("a", "a")):
        try:
            expected = json.loads(text)
        except ValueError:
            with pytest.raises(NotJson):
                read_document(text.encode(), path)
        else:
            document = read_document(text.encode(), path)
            if not path and isinstance(expected, list):
                assert [record.value for record in document.records or ()] == expected


@pytest.mark.parametrize(
    "text", ['[{"a":NaN}]', "[Infinity]", "[1,]", '{"r":[],}', '{"r":[] "x":1}', "[" * 100_000, '{"a" 1}']
)
def test_what_is_no_json_is_not_taken_for_it(text: str) -> None:
    with pytest.raises(NotJson):
        read_document(text.encode(), ("r",) if text.startswith("{") else ())


def test_no_more_records_are_made_than_were_allowed_for() -> None:
    for body in (b"[1,1,1]", b'{"r": [1, 1, 1]}'):
        path = () if body.startswith(b"[") else ("r",)
        assert len(read_document(body, path, 3 * 64).records or ()) == 3
        with pytest.raises(TooMany, match="2 records"):
            read_document(body, path, 3 * 64 - 1)


def test_elements_are_made_as_they_are_taken() -> None:
    elements = elements_of("[1, and no JSON behind it")
    assert next(elements).value == 1


def test_other_encodings_of_unicode_are_understood() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        (record,) = read_document('[{"n": "é"}]'.encode(encoding), ()).records or ()
        assert record.value == {"n": "é"}
