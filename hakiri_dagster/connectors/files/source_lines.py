"""Which line of its file a row came from. Looked up afterwards, in one pass over each file that has such rows.

Rows carry no line: they tell how many rows after the first one of their split they came (`splits.py`). Which record of
the file that is, and where records begin (`record_lines.py`), is the rest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hakiri_dagster.connectors.contract import FileState, RecordPlace
from hakiri_dagster.connectors.files.contents import refuse_changed
from hakiri_dagster.connectors.files.line_index import LineIndex, Spool
from hakiri_dagster.connectors.files.markers import marker_of
from hakiri_dagster.connectors.files.splits import Splits
from hakiri_dagster.errors import SourceError

Begins = Callable[[str], Iterator[int]]
"""By path: the lines on which a file's records begin, for as long as that is certain."""


@dataclass(frozen=True)
class Lookup:
    """What a reading knows of its files. `passes_over`: not all records of a split are wanted."""

    begins: Begins
    states: Mapping[str, FileState]
    splits: Callable[[], Splits]
    passes_over: bool
    label: str

    def in_folder(self, folder: Path) -> SourceLines:
        return SourceLines(self, Spool(folder))


@dataclass(frozen=True)
class SourceLines:
    """Asked from several threads, one for each slice that is being prepared."""

    lookup: Lookup
    spool: Spool
    _indexes: dict[str, LineIndex | None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, place: RecordPlace) -> int | None:
        with self._lock:
            if place.split == 0 and not self.lookup.passes_over:
                return self._line(place.file, place.after)
            splits, marker = self._splits, marker_of(place.file)
            if splits is None or (marker, place.split) not in splits.firsts:
                return None
            return self._line(place.file, splits.firsts[marker, place.split] + place.after, splits.records[marker])

    def _line(self, path: str, record: int, records: int | None = None) -> int | None:
        """`records`: how many Spark has counted in the file."""
        index = self._index(path)
        if index is None or (index.whole and records not in (None, index.records)):
            return None
        return index.line(record)

    @cached_property
    def _splits(self) -> Splits | None:
        try:
            splits = self.lookup.splits()
            refuse_changed(self.lookup.states.values(), self.lookup.label)
        except (SourceError, OSError):
            return None  # the rows were read, which counts
        return splits

    def _index(self, path: str) -> LineIndex | None:
        if path not in self._indexes:
            self._indexes[path] = self._made(path)
        return self._indexes[path]

    def _made(self, path: str) -> LineIndex | None:
        try:
            index = LineIndex(self.lookup.begins(path), self.spool)
            refuse_changed([self.lookup.states[path]], self.lookup.label)
        except (SourceError, OSError, UnicodeError):
            return None
        return index
