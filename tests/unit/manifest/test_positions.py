"""Every key and value is found where it is written, in TOML and in JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from hakiri_dagster.manifest.documents import parse_document
from hakiri_dagster.manifest.positions import KeyPath, Position, Positions, json_positions, toml_positions

TOML = """\
title = "x"                         # 1
[a."b.c".d]
e.f = 1
[[pipeline]]
id = "one"
source = { connector = "files", config = { path = 'p' } }
tables = [
  "plain",  # a comment
  { name = \"\"\"
two\"\"\", 'primary_key' = ["k"] },
]
[pipeline.backfill]
window = "1mo"
[[pipeline]]
id = "two"
[[pipeline.validate.row_level]]
type = "regex"
[[pipeline.validate.row_level]]
type = "range"
"""


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        (("title",), (1, 1), (1, 9)),
        (("a", "b.c", "d", "e", "f"), (3, 3), (3, 7)),
        (("pipeline", 0), None, (4, 1)),
        (("pipeline", 0, "id"), (5, 1), (5, 6)),
        (("pipeline", 0, "source", "config", "path"), (6, 44), (6, 51)),
        (("pipeline", 0, "tables", 0), None, (8, 3)),
        (("pipeline", 0, "tables", 1, "name"), (9, 5), (9, 12)),
        (("pipeline", 0, "tables", 1, "primary_key", 0), None, (10, 26)),
        (("pipeline", 0, "backfill"), (12, 11), (12, 1)),
        (("pipeline", 0, "backfill", "window"), (13, 1), (13, 10)),
        (("pipeline", 1), None, (14, 1)),
        (("pipeline", 1, "validate", "row_level", 1, "type"), (19, 1), (19, 8)),
    ],
)
def test_a_toml_key_and_its_value_are_found(path: KeyPath, key: tuple[int, int] | None, value: tuple[int, int]) -> None:
    positions = toml_positions(TOML)
    assert positions.values[path] == Position(*value)
    if key is not None:
        assert positions.keys[path] == Position(*key)


def test_windows_line_ends_and_wide_characters_count_as_an_editor_counts_them() -> None:
    positions = toml_positions('a = 1\r\n"üü" = "😀"\r\n"ä" = { b = "😀😀", c = 2 }\r\n')
    assert positions.values[("üü",)] == Position(2, 8)
    assert positions.keys[("ä", "c")] == Position(3, 19)


def test_a_tab_is_one_column() -> None:
    assert toml_positions("\ta\t=\t1\n").values[("a",)] == Position(1, 6)


def test_a_byte_order_mark_shifts_nothing() -> None:
    document = parse_document(b'\xef\xbb\xbfid = "x"\n', "m.toml")
    assert document.data == {"id": "x"}
    assert document.positions.values[("id",)] == Position(1, 6)


def test_json_keys_and_values_are_found() -> None:
    positions = json_positions('{\n  "id": "x",\n  "t\\u0061bles": ["ü", {"name": "b"}]\n}')
    assert positions.values[()] == Position(1, 1)
    assert positions.keys[("tables",)] == Position(3, 3)
    assert positions.values[("tables", 1)] == Position(3, 24)
    assert positions.values[("tables", 1, "name")] == Position(3, 33)


def test_what_is_not_written_stands_where_its_surroundings_begin() -> None:
    positions = toml_positions("[a]\nb = [1]\n")
    assert positions.value(("a", "b", 7, "x")) == Position(2, 5)
    assert positions.key(("a", "nothing")) == Position(1, 1)
    assert Positions().value(("x",)) == Position(1, 1)


KEYS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=0, max_size=8)
SCALARS = st.one_of(
    st.integers(-(2**60), 2**60),
    st.booleans(),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12),
    st.dates().map(lambda day: day.isoformat()),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)
MANIFESTS = st.dictionaries(KEYS, VALUES, max_size=4)


@settings(deadline=None)
@given(MANIFESTS)
def test_every_place_of_any_json_is_known(data: dict[str, Any]) -> None:
    text = json.dumps(data, indent=1)
    positions = parse_document(text.encode(), "m.json").positions
    lines = text.split("\n")
    for path, value in _places(data):
        position = positions.values[path]
        assert lines[position.line - 1][position.column - 1 :].startswith(json.dumps(value)[:1])
        if path and isinstance(path[-1], str):
            key = positions.keys[path]
            assert lines[key.line - 1][key.column - 1 :].startswith(json.dumps(path[-1]))


@settings(deadline=None)
@given(MANIFESTS)
def test_every_place_of_any_toml_is_known(data: dict[str, Any]) -> None:
    text = tomlkit.dumps(data)
    document = parse_document(text.encode(), "m.toml")
    assert document.data == data
    for path, _ in _places(data):
        assert path in document.positions.values
        if path and isinstance(path[-1], str):
            assert path in document.positions.keys


def _places(value: Any, path: KeyPath = ()) -> list[tuple[KeyPath, Any]]:
    here: list[tuple[KeyPath, Any]] = [(path, value)]
    if isinstance(value, dict):
        return here + [place for key, child in value.items() for place in _places(child, (*path, key))]
    if isinstance(value, list):
        return here + [place for i, child in enumerate(value) for place in _places(child, (*path, i))]
    return here
