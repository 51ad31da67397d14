"""Digests on disk: sorted runs that tasks write, ranges of them, and those that are there more than once.

Runs in Spark's workers. A file holds the first halves of its digests, sorted, and then their second halves.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hakiri_dagster.pipeline.key_digests import Digests

Words = npt.NDArray[np.uint64]

RUN_ROWS = 1 << 20
"""16 MiB: what a task keeps in memory before it writes."""

FOUND_SCHEMA = "place int, file string"
FOUND_ARROW = pa.schema([("place", pa.int32()), ("file", pa.string())])


@dataclass(frozen=True, slots=True)
class KeyFile:
    """Opened by whoever needs it, for as long as that."""

    firsts: Words
    seconds: Words

    @classmethod
    def open(cls, path: Path) -> KeyFile:
        words = np.memmap(path, dtype=np.uint64, mode="r")
        half = len(words) // 2
        return cls(words[:half], words[half:])

    def between(self, lower: int, upper: int) -> KeyFile:
        """What has a first half from `lower` up to, and not with, `upper`."""
        start = int(np.searchsorted(self.firsts, np.uint64(lower)))
        end = len(self.firsts) if upper >= 1 << 64 else int(np.searchsorted(self.firsts, np.uint64(upper)))
        return KeyFile(self.firsts[start:end], self.seconds[start:end])

    @property
    def digests(self) -> Digests:
        return np.stack([self.firsts, self.seconds], axis=1)

    def holds(self, digests: Digests) -> npt.NDArray[np.bool_]:
        places = np.searchsorted(self.firsts, digests[:, 0])
        found = np.zeros(len(digests), dtype=bool)
        alike = np.ones(len(digests), dtype=bool)
        while alike.any():  # more than once only where first halves are the same and second ones are not
            alike &= places < len(self.firsts)
            at = places[alike]
            same = self.firsts[at] == digests[alike, 0]
            found[alike] |= same & (self.seconds[at] == digests[alike, 1])
            alike[alike] = same & ~found[alike]
            places += 1
        return found


def write_keys(directory: Path, kind: str, digests: Digests) -> str:
    """Under a name that no other task or attempt uses; the digests are sorted by their first halves."""
    name = f"{kind}-{uuid.uuid4().hex}.keys"
    with (directory / name).open("wb") as file:
        file.write(np.ascontiguousarray(digests[:, 0]).data)
        file.write(np.ascontiguousarray(digests[:, 1]).data)
    return name


class Runs:
    """What one task has seen, written whenever there is enough of it."""

    def __init__(self, directory: Path, run_rows: int) -> None:
        self._directory = directory
        self._run_rows = run_rows
        self._waiting: list[Digests] = []
        self._rows = 0
        self.written: list[tuple[str, int]] = []

    def add(self, digests: Digests) -> None:
        self._waiting.append(digests)
        self._rows += len(digests)
        if self._rows >= self._run_rows:
            self.flush()

    def flush(self) -> None:
        if not self._rows:
            return
        digests = np.concatenate(self._waiting)
        digests = _twice_at_most(np.take(digests, np.argsort(digests[:, 0]), axis=0))
        self.written.append((write_keys(self._directory, "run", digests), len(digests)))
        self._waiting, self._rows = [], 0


def _twice_at_most(digests: Digests) -> Digests:
    """So that a key that all rows have makes no range large: more than twice is no more than twice."""
    same = _like_the_next(digests)
    again = np.zeros(len(digests), dtype=bool)
    again[2:] = same[1:] & same[:-1]
    return digests[~again] if again.any() else digests


@dataclass(frozen=True, slots=True)
class Merge:
    """For `mapInArrow` over the numbers of ranges, of which each is small enough to be sorted in memory."""

    directory: str
    runs: tuple[str, ...]
    ranges: int

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            places = batch.column(0).to_pylist()
            found = [{"place": place, "file": self.repeated(place)} for place in places]
            yield pa.RecordBatch.from_pylist(found, schema=FOUND_ARROW)

    def repeated(self, place: int) -> str | None:
        """The file of what is there more than once in a range."""
        directory = Path(self.directory)
        lower, upper = bounds_of(place, self.ranges)
        mine = [KeyFile.open(directory / run).between(lower, upper) for run in self.runs]
        if not _any_twice(np.concatenate([part.firsts for part in mine])):
            return None
        digests = repeated(np.concatenate([part.digests for part in mine]))
        return write_keys(directory, "repeated", digests) if len(digests) else None


def bounds_of(place: int, ranges: int) -> tuple[int, int]:
    return -(-(place << 64) // ranges), -(-((place + 1) << 64) // ranges)


def places_of(digests: Digests, ranges: int) -> npt.NDArray[np.int64]:
    """The range of each."""
    edges = np.array([bounds_of(place, ranges)[0] for place in range(1, ranges)], dtype=np.uint64)
    return np.searchsorted(edges, digests[:, 0], side="right")


def repeated(digests: Digests) -> Digests:
    """Those that are there more than once, each once, sorted."""
    digests = np.take(digests, np.lexsort((digests[:, 1], digests[:, 0])), axis=0)
    same = _like_the_next(digests)
    first = same.copy()
    first[1:] &= ~same[:-1]  # where a group begins
    found: Digests = digests[:-1][first]
    return found


def _any_twice(firsts: Words) -> bool:
    """Mostly none, and told much sooner than by whole digests."""
    firsts = np.sort(firsts)
    return bool((firsts[1:] == firsts[:-1]).any())


def _like_the_next(digests: Digests) -> npt.NDArray[np.bool_]:
    """Half by half: numpy takes fifty times as long to compare rows of two."""
    same: npt.NDArray[np.bool_] = digests[1:, 0] == digests[:-1, 0]
    same &= digests[1:, 1] == digests[:-1, 1]
    return same


def ranges_for(rows: int, rows_a_range: int = 2 * RUN_ROWS) -> int:
    return max(1, -(-rows // rows_a_range))
