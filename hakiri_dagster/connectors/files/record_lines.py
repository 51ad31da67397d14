"""On which line of a text file each of its records begins, counted as editors count lines.

Spark tells no lines, so its cutting of records is followed here; but only where a file can be cut in no other way. At
the first place where parsers may differ it ends: what comes after is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

_CONTROLS = "".join(map(chr, range(33)))
"""What Spark trims from a line, before it asks whether it is blank."""


class Unclear(Exception):
    """Another parser might end the record elsewhere."""


def records_of_lines(lines: Iterable[str], is_blank: Callable[[str], bool], *, header: bool) -> Iterator[int]:
    """Each line that is not blank is a record."""
    numbers = (number for number, line in enumerate(_clear(lines), 1) if not is_blank(line))
    return islice(numbers, 1 if header else 0, None)


def blank_in_csv(line: str) -> bool:
    return not line.strip(_CONTROLS)


@dataclass(frozen=True)
class QuotedRecords:
    """CSV whose quoted values may hold line breaks."""

    delimiter: str
    quote: str
    escape: str

    def begin(self, lines: Iterable[str], *, header: bool) -> Iterator[int]:
        return islice(self._all(lines), 1 if header else 0, None)

    def _all(self, lines: Iterable[str]) -> Iterator[int]:
        quote, usual = self.quote, ""
        began = 0  # where the record began whose quote is still open
        for number, line in enumerate(_clear(lines), 1):
            text = line.rstrip("\r\n")
            ending = line[len(text) :]
            usual = usual or ending
            quoted = began or quote in text
            if quoted:
                found = (self._rest if began else self._whole).fullmatch(text)
                if found is None:
                    raise Unclear
                began = began or number
                if found.lastgroup:  # a quote is open
                    continue
            # Spark goes by the first ending that it sees.
            if ending not in (usual, "") and (usual == "\r\n" or quoted or not text):
                raise Unclear
            if text or quoted:
                yield began or number
            began = 0
        if began:
            raise Unclear

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile(self._fields)

    @cached_property
    def _rest(self) -> re.Pattern[str]:
        """Of a record whose quote is open: nothing that closes it, or what closes it and the fields behind it."""
        quote, delimiter = re.escape(self.quote), re.escape(self.delimiter)
        return re.compile(rf"{self._inside}(?:(?P<still>\Z)|{quote}(?:\Z|{delimiter}{self._fields}))")

    @cached_property
    def _inside(self) -> str:
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        if self.quote == self.escape:
            return f"(?:[^{quote}]|{quote}{quote})*+"
        return f"(?:[^{quote}{escape}]|{escape}[{quote}{escape}])*+"

    @cached_property
    def _fields(self) -> str:
        quote, delimiter = re.escape(self.quote), re.escape(self.delimiter)
        closed = rf"{quote}{self._inside}{quote}(?={delimiter}|\Z)"
        field = rf"(?:{closed}|[^{quote}{delimiter}][^{delimiter}]*+|(?={delimiter}|\Z))"
        return rf"(?:{field}{delimiter})*+(?:{field}|{quote}{self._inside}(?P<open>))"


def _clear(lines: Iterable[str]) -> Iterator[str]:
    """A carriage return alone ends a line for some, and not for others."""
    for line in lines:
        if line.endswith("\r"):
            raise Unclear
        yield line
