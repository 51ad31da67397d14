"""Broken and hostile files are refused with file, line, column and plain words."""

from __future__ import annotations

import pytest

from hakiri_dagster.errors import ManifestError, Problem
from hakiri_dagster.manifest.documents import MAX_BYTES, MAX_DEPTH, parse_document


def refusal(content: bytes, file: str) -> Problem:
    with pytest.raises(ManifestError) as refused:
        parse_document(content, file)
    (problem,) = refused.value.problems
    return problem


@pytest.mark.parametrize(
    ("content", "file", "line", "column", "words"),
    [
        (b'a = 1\nb = "\n', "m.toml", 2, 6, "not valid TOML"),
        (b"a = 1\na = 2", "m.toml", 2, 6, "cannot overwrite a value"),
        (b"[a]\nb = 1\n[a]\n", "m.toml", 3, 3, "twice"),
        (b"a = 1\r\nb = = 2\r\n", "m.toml", 2, 5, "not valid TOML"),
        (b"a = 1\0", "m.toml", 1, 6, "not valid TOML"),
        (b"a = 2024-13-01\n", "m.toml", 1, 9, "not valid TOML"),
        (b"a =", "m.toml", 1, 4, "invalid value"),
        (b'{"a": 1,\n "b" 2}', "m.json", 2, 6, "not valid JSON"),
        (b"", "m.json", 1, 1, "not valid JSON"),
        (b"[1]", "m.json", 1, 1, "one object"),
        (b'{"t": "NaN",\n "a": [1, NaN]}', "m.json", 2, 11, "NaN is not a JSON value"),
        (b'{"a": -Infinity}', "m.json", 1, 7, "-Infinity is not a JSON value"),
        (b'{"a": 1e999}', "m.json", 1, 7, "not a finite number"),
        (b"a = nan\n", "m.toml", 1, 5, "not a finite number"),
        (b"a = 1\nb = 9223372036854775808\n", "m.toml", 2, 5, "too large"),
        (b'{"x": {"id": 1}, "a": {"id": 1,\n "id": 2}, "id": 3}', "m.json", 2, 2, "`id` is written twice"),
        (b'{"a": "\\ud800"}', "m.json", 1, 7, "half of a surrogate pair"),
        (b'{"a\\u0000": 1}', "m.json", 1, 2, "NUL"),
        (b'x = 1\na = "b\\u0000c"\n', "m.toml", 2, 5, "NUL"),
        (b'a = 1\nb = "\xc3\xbc\xe4"\n', "m.toml", 2, 7, "not UTF-8"),
        ("id = 'x'".encode("utf-16"), "m.toml", 1, 1, "not UTF-8"),
        (b"a = " + b"9" * 5000, "m.toml", 1, 1, "too many digits"),
    ],
)
def test_a_broken_file_is_told_at_its_place(content: bytes, file: str, line: int, column: int, words: str) -> None:
    problem = refusal(content, file)
    assert (problem.file, problem.line, problem.column) == (file, line, column)
    assert words in problem.message


@pytest.mark.parametrize(
    ("content", "file"),
    [
        (b"[" * 100_000, "m.json"),
        (b'{"a":' * 100_000, "m.json"),
        (b"a = " + b"[" * 100_000, "m.toml"),
        (b"a = " + b"{a=" * 100_000, "m.toml"),
        (b"a" + b".a" * 10_000 + b" = 1", "m.toml"),
        (b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH, "m.json"),
    ],
)
def test_deep_nesting_is_refused_and_breaks_nothing(content: bytes, file: str) -> None:
    assert "levels deep" in refusal(content, file).message


def test_a_file_that_is_too_large_is_not_even_parsed() -> None:
    assert "larger than 8 MiB" in refusal(b"#" * (MAX_BYTES + 1), "m.toml").message


def test_all_values_that_cannot_be_used_are_told_at_once() -> None:
    with pytest.raises(ManifestError) as refused:
        parse_document(b'a = nan\nb = "\\u0000"\n[c]\nd = inf\n', "m.toml")
    assert [problem.line for problem in refused.value.problems] == [1, 2, 4]


def test_dates_of_toml_are_the_text_that_json_would_hold() -> None:
    document = parse_document(b"a = 2020-01-01\nb = [2020-01-01T06:00:00Z]\n", "m.toml")
    assert document.data == {"a": "2020-01-01", "b": ["2020-01-01T06:00:00+00:00"]}
