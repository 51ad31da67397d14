"""The lines on which a file's records begin, by the records' numbers. On disk, for there may be as many as rows."""

from __future__ import annotations

import os
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import IO

from hakiri_dagster.connectors.files.record_lines import Unclear

_BLOCK = 1024
"""Pairs that are read at once; of each block one number stays in memory."""

_PAIR = 2 * array("q").itemsize


class Spool:
    """A file that is gone when nobody holds it any more."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._end = 0
        self._last: tuple[int, array[int]] | None = None

    @cached_property
    def _file(self) -> IO[bytes]:
        return tempfile.TemporaryFile(dir=self._folder)

    @property
    def end(self) -> int:
        return self._end

    def add(self, numbers: array[int]) -> None:
        self._file.write(numbers)
        self._file.flush()
        self._end += len(numbers) * numbers.itemsize

    def read(self, start: int, size: int) -> array[int]:
        """Who asks, asks mostly for the same again."""
        if self._last is None or self._last[0] != start:
            numbers = array("q")
            numbers.frombytes(os.pread(self._file.fileno(), size, start))
            self._last = start, numbers
        return self._last[1]


class LineIndex:
    """Lines grow as records do, but for headers, blank lines and values of several lines: those places are kept."""

    def __init__(self, lines: Iterator[int], spool: Spool) -> None:
        self._spool = spool
        self._start = spool.end
        self._heads = array("q")
        self.records = 0
        self.whole = True
        """Whether all of the file is known."""
        try:
            self._fill(lines)
        except Unclear:
            self.whole = False
        self._end = spool.end

    def _fill(self, lines: Iterator[int]) -> None:
        pairs, ahead = array("q"), -1
        try:
            for line in lines:
                if line - self.records != ahead:
                    ahead = line - self.records
                    if not pairs:
                        self._heads.append(self.records)
                    pairs.extend((self.records, line))
                    if len(pairs) == 2 * _BLOCK:
                        self._spool.add(pairs)
                        pairs = array("q")
                self.records += 1
        finally:
            self._spool.add(pairs)

    def line(self, record: int) -> int | None:
        if not 0 <= record < self.records:
            return None
        start = self._start + (bisect_right(self._heads, record) - 1) * _BLOCK * _PAIR
        pairs = self._spool.read(start, min(_BLOCK * _PAIR, self._end - start))
        place = bisect_right(range(0, len(pairs), 2), record, key=pairs.__getitem__) - 1
        known, line = pairs[2 * place : 2 * place + 2]
        return line + record - known
