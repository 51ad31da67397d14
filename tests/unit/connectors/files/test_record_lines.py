from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakiri_dagster.connectors.files.record_lines import (
    QuotedRecords,
    Unclear,
    blank_in_csv,
    records_of_lines,
)


def cut(text: str) -> Iterable[str]:
    """As text files give their lines: with their endings, and none but those."""
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8", newline="")


def known(lines: Iterator[int]) -> tuple[list[int], bool]:
    """The lines, and whether they are all that there are."""
    found = []
    try:
        for line in lines:
            found.append(line)  # noqa: PERF402  # what came before the exception counts
    except Unclear:
        return found, False
    return found, True


def quoted(text: str, *, header: bool = False, delimiter: str = ",", quote: str = '"', escape: str = '"'):
    return known(QuotedRecords(delimiter, quote, escape).begin(cut(text), header=header))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a,b", [1]),
        ("a\n\n\nb\n", [1, 4]),
        ('a\n"b\n\nc",d\ne\n', [1, 2, 5]),
        ('"a\nb","c\nd"\ne', [1, 4]),
        ('"a ""quoted"" \n"" word"\nb\n', [1, 3]),
        ('5" pipe,6" pipe\n7\n', [1, 2]),
        ('a, "b\nc"\n', [1, 2]),
        ('""\n"",""\n\na\n', [1, 2, 4]),
        (" \na\n", [1, 2]),
        ('a\r\n"b\r\nc\nd"\r\n\r\ne\r\n', [1, 2, 6]),
        ("a\x0b\x0c\x85\u2028b\nc\n", [1, 2]),
    ],
)
def test_records_begin_where_their_first_line_is(text, lines):
    assert quoted(text) == (lines, True)


@pytest.mark.parametrize("text", ["\nid\n1\n", '"i\nd"\n1\n'])
def test_the_first_record_is_no_row_if_it_is_the_header(text):
    assert quoted(text, header=True) == ([3], True)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('a\n"b" c\nd\n', [1]),
        ('a\n"b"c,"d\ne"\n', [1]),
        ('a\n"b\nc" d\ne\n', [1]),
        ('a\n"b\nc\n', [1]),
        ("a\nb\rc\nd\n", [1]),
        ("a\r\nb\nc\r\n", [1]),
        ('a\nb\r\n"c"\r\nd\n', [1, 2]),
        ("a\n\r\nb\n", [1]),
    ],
)
def test_where_parsers_may_differ_the_rest_is_not_known(text, lines):
    assert quoted(text) == (lines, False)


def test_delimiter_quote_and_escape_are_those_of_the_manifest():
    text = "a|'b\\'|\nc'|d\ne|'f\\\\'\ng\n"
    assert quoted(text, delimiter="|", quote="'", escape="\\") == ([1, 3, 4], True)
    assert quoted("a]'b\n']c\nd\n", delimiter="]", quote="'", escape="^") == ([1, 3], True)


@given(st.lists(st.lists(st.text(alphabet='ab,"\n ', max_size=5), min_size=1, max_size=3), max_size=8))
def test_what_a_writer_writes_is_understood_to_the_end(rows):
    lines, text = [], io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        lines.append(text.getvalue().count("\n") + 1)
        writer.writerow(row)
    assert quoted(text.getvalue()) == (lines, True)


@given(st.text(alphabet='ab,"\n ', max_size=60))
def test_what_is_certain_is_what_pythons_own_parser_says(text):
    lines, _ = quoted(text)
    reader = csv.reader(io.StringIO(text, newline=""))
    begins, before = [], 0
    for record in reader:
        if record:
            begins.append(before + 1)
        before = reader.line_num
    assert begins[: len(lines)] == lines


def test_lines_that_are_blank_are_no_records():
    assert known(records_of_lines(cut("id\n\n \t\n1\n\x00\n2"), blank_in_csv, header=True)) == ([4, 6], True)
    assert known(records_of_lines(cut('1,"\n2\r3\n'), blank_in_csv, header=False)) == ([1], False)
