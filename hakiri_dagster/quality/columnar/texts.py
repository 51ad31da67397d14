"""Functions of texts, by bytes or by characters as Spark counts them."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.expressions.tree import Number, Text
from hakiri_dagster.quality.columnar.types import BYTES, INTEGER, TEXT
from hakiri_dagster.quality.columnar.values import Cells, NotInArrow, Value, by_column

_FARTHEST = 2**31 - 1
_TRIMS = {"trim": pc.ascii_trim, "btrim": pc.ascii_trim, "ltrim": pc.ascii_ltrim, "rtrim": pc.ascii_rtrim}
_SEARCHES = {"startswith": pc.starts_with, "endswith": pc.ends_with, "contains": pc.match_substring}
TRIMS, SEARCHES = frozenset(_TRIMS), frozenset(_SEARCHES)


def joined(*texts: Cells) -> Cells:
    return pc.binary_join_element_wise(*texts, pa.scalar("", TEXT), null_handling="emit_null")


def trimmed(function: str, text: Cells) -> Cells:
    """Of spaces, and of nothing else."""
    return _TRIMS[function](text, characters=" ")


def searched(function: str, text: Cells, sought: Value) -> Cells:
    if not isinstance(sought.written, Text):
        raise NotInArrow(f"{function} of another column")
    return _SEARCHES[function](text, pattern=sought.written.value)


def characters(cells: Cells) -> Cells:
    counted = pc.binary_length(cells) if cells.type == BYTES else pc.utf8_length(cells)
    return counted.cast(INTEGER)


def octets(cells: Cells) -> Cells:
    return pc.binary_length(cells).cast(INTEGER)


def written_number(value: Value) -> int:
    if not isinstance(value.written, Number):
        raise NotInArrow("a number that each row has its own of")
    return int(value.written.digits)


def substring(text: Cells, first: int, length: int = _FARTHEST) -> Cells:
    """`first` counts from 1, or from -1 at the end; what would lie before the text counts, too."""
    start = first - 1 if first > 0 else first
    stop = min(start + length, _FARTHEST)
    if length <= 0:
        stop = start
    elif start < 0 <= stop:
        return _sliced(text, start, None)
    return _sliced(text, start, stop)


def first_characters(text: Cells, count: int) -> Cells:
    return substring(text, 1, count)


def last_characters(text: Cells, count: int) -> Cells:
    return _sliced(text, -count, None) if count > 0 else _sliced(text, 0, 0)


def _sliced(text: Cells, start: int, stop: int | None) -> Cells:
    try:
        return pc.utf8_slice_codeunits(text, start, stop)
    except pa.ArrowInvalid:  # not UTF-8, which is for the target to refuse, row by row
        return pc.utf8_slice_codeunits(by_column(_as_utf8, text), start, stop)


def _as_utf8(column: pa.Array) -> pa.Array:
    texts = column.cast(BYTES).to_pylist()
    return pa.array([None if text is None else text.decode(errors="replace") for text in texts], TEXT)


def like(text: Cells, pattern: str) -> Cells:
    """The common patterns without RE2."""
    marks = re.findall(r"\\.|.", pattern, re.DOTALL)
    if "_" not in marks:
        match _between_gaps(marks):
            case [whole]:
                return pc.equal(text, pa.scalar(whole, TEXT))
            case [start, ""]:
                return pc.starts_with(text, start)
            case ["", end]:
                return pc.ends_with(text, end)
            case ["", part, ""]:
                return pc.match_substring(text, part)
    return pc.match_substring_regex(text, rf"(?s)\A{''.join(map(_as_regex, marks))}\z")


def _between_gaps(marks: list[str]) -> list[str]:
    pieces = [""]
    for mark in marks:
        if mark == "%":
            pieces.append("")
        else:
            pieces[-1] += mark[-1]
    return pieces


def _as_regex(mark: str) -> str:
    if mark == "%":
        return r"\C*"  # of bytes: whether they are UTF-8 is not the question
    return "." if mark == "_" else f"\\x{{{ord(mark[-1]):x}}}"
