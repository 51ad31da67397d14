"""Texts of columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hakiri_dagster.quality.columnar.values import NotInArrow
from tests.unit.quality.columnar.asking import cells_of, value_of

NOT_UTF8 = pa.Array.from_buffers(pa.string(), 2, pa.array([b"a\xff b ", b" \xf0"], pa.binary()).buffers())


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("abc", ["abc"]),
        ("a%", ["abc", "a\nc", "a%c", "abcabc", "a"]),
        ("%c", ["abc", "a\nc", "a%c", "abcabc", "c"]),
        ("%b%", ["abc", "abcabc"]),
        ("a%c", ["abc", "a\nc", "a%c", "abcabc"]),
        ("a%a", []),
        ("abc%abc", ["abcabc"]),
        ("a%b%", ["abc", "abcabc"]),
        ("a_c", ["abc", "a\nc", "a%c"]),
        ("a!%c", ["a%c"]),
        ("_", ["a", "c", "😀"]),
        ("%_c", ["abc", "a\nc", "a%c", "abcabc"]),
        ("", [""]),
        ("%", ["abc", "a\nc", "a%c", "abcabc", "a", "c", "😀", ""]),
    ],
)
def test_like(pattern: str, matches: list[str]) -> None:
    texts = ["abc", "a\nc", "a%c", "abcabc", "a", "c", "😀", ""]
    found = cells_of(f"v LIKE '{pattern}' ESCAPE '!'", v=[*texts, None])
    assert [text for text, matching in zip(texts, found[:-1], strict=True) if matching] == matches
    assert found[-1] is None


@pytest.mark.parametrize("sign", list(".*+?()[]{}|^$#&-/ \u00e4"))
def test_no_letter_of_a_pattern_is_special_but_its_own_two(sign: str) -> None:
    assert cells_of(f"v LIKE '_{sign}%x'", v=[f"a{sign}bx", "ab", f"{sign}x"]) == [True, False, False]


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("substring(v, 1, 2)", ["ä😀", "a", ""]),
        ("substring(v, 0, 2)", ["ä😀", "a", ""]),
        ("substring(v, 2)", ["😀c", "", ""]),
        ("substring(v, -2, 1)", ["😀", "", ""]),
        ("substring(v, -2, 5)", ["😀c", "a", ""]),
        ("substring(v, -5, 3)", ["ä", "", ""]),
        ("substring(v, 1, 0)", ["", "", ""]),
        ("substring(v, 2147483647, 2147483647)", ["", "", ""]),
        ("left(v, 2)", ["ä😀", "a", ""]),
        ("left(v, -1)", ["", "", ""]),
        ("right(v, 2)", ["😀c", "a", ""]),
        ("right(v, 0)", ["", "", ""]),
    ],
)
def test_parts_are_of_characters(text: str, cells: list[str]) -> None:
    assert cells_of(text, v=["ä😀c", "a", "", None]) == [*cells, None]


def test_a_part_from_the_end_may_be_longer_than_what_is_left() -> None:
    assert cells_of("substring(v, -2, 5)", v=["abcdefgh"]) == ["gh"]


def test_lengths() -> None:
    texts = ["ä😀", "", None]
    assert cells_of("length(v)", v=texts) == [2, 0, None]
    assert cells_of("octet_length(v)", v=texts) == [6, 0, None]
    assert cells_of("bit_length(v)", v=texts) == [48, 0, None]
    assert cells_of("length(v)", v=[b"\xff\x00", None]) == [2, None]


def test_only_spaces_are_trimmed() -> None:
    texts = [" \ta \u00a0 ", None]
    assert cells_of("trim(v)", v=texts) == ["\ta \u00a0", None]
    assert cells_of("ltrim(v)", v=texts) == ["\ta \u00a0 ", None]
    assert cells_of("rtrim(v)", v=texts) == [" \ta \u00a0", None]
    assert cells_of("btrim(v)", v=texts) == ["\ta \u00a0", None]


def test_what_is_joined_with_null_is_null() -> None:
    assert cells_of("v || '-' || w", v=["a", None], w=["b", "c"]) == ["a-b", None]
    assert cells_of("concat(v)", v=["a", None]) == ["a", None]


@pytest.mark.parametrize(
    ("function", "cells"), [("startswith", [True, False]), ("endswith", [False, True]), ("contains", [True, True])]
)
def test_texts_in_texts(function: str, cells: list[Any]) -> None:
    assert cells_of(f"{function}(v, 'a.')", v=["a.b", "ba.", None]) == [*cells, None]


@pytest.mark.parametrize(
    "text", ["contains(v, w)", "substring(v, i)", "left(v, i)", "btrim(v, 'a')", "v ILIKE 'a%'", "upper(v) = w"]
)
def test_what_arrow_has_no_like_of_is_left_to_spark(text: str) -> None:
    with pytest.raises(NotInArrow):
        value_of(text, v=["a"], w=["b"], i=pa.array([1], pa.int32()))


@pytest.mark.parametrize(
    "text",
    ["substring(v, 2, 1)", "right(v, 2)", "length(v)", "trim(v)", "v LIKE 'a%b%'", "v LIKE '_%'", "v || v", "v < 'a'",
     "v IN ('a', 'b')"],
)  # fmt: skip
def test_bytes_that_are_no_text_stop_nothing(text: str) -> None:
    assert len(value_of(text, v=NOT_UTF8).cells) == 2


def test_gaps_are_of_any_bytes() -> None:
    assert cells_of("v LIKE 'a%b%'", v=NOT_UTF8) == [True, False]
