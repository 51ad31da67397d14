"""How many distinct values there are, in bounded memory: the k lowest of their hashes, which any number of parts can be
merged into. Fewer than k: it is exact. More: their spread tells how many there are, within about 1/√k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from hakiri_dagster.planning.arrow_types import is_bytes, is_text
from hakiri_dagster.quality.hashing import hashed, words_of

LEAST_KEPT = 2048
MOST_EXACT = 20_000
"""Values that are counted one by one: tallies of all tasks and slices come together in one place."""

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class Sketch:
    """`hashes`: the lowest ones, sorted, at most `keeps`. Those `waiting` are sorted in when there are as many, as
    each time costs as much as all of them."""

    keeps: int
    hashes: Hashes
    waiting: tuple[Hashes, ...] = ()

    @classmethod
    def of(cls, hashes: Hashes, exact: int, keeps: int | None = None) -> Sketch:
        """Which counts up to `exact` values one by one. The hashes wait: most of them another sketch has no use for."""
        wanted = max(LEAST_KEPT if keeps is None else keeps, exact + 1)
        return cls(min(wanted, MOST_EXACT + 1), np.empty(0, dtype=np.uint64), (hashes,))

    def plus(self, other: Sketch) -> Sketch:
        merged = self
        for more in (other.hashes, *other.waiting):
            merged = merged.taking_in(more)
        return merged

    def taking_in(self, more: Hashes) -> Sketch:
        if len(self.hashes) == self.keeps:
            more = more[more < self.hashes[-1]]
        if not len(more):
            return self
        taken = Sketch(self.keeps, self.hashes, (*self.waiting, more))
        return taken if sum(map(len, taken.waiting)) < len(self.hashes) else taken.settled()

    def settled(self) -> Sketch:
        if not self.waiting:
            return self
        return Sketch(self.keeps, np.unique(np.concatenate([self.hashes, *self.waiting]))[: self.keeps])

    @property
    def count(self) -> int:
        hashes = self.settled().hashes
        if len(hashes) < self.keeps:
            return len(hashes)
        reach = (float(hashes[-1]) + 1) / 2**64
        return max(self.keeps, round((self.keeps - 1) / reach))


def hashes_of(array: pa.Array) -> Hashes:
    """At least one for each value that occurs, and none for others; the same in every process."""
    values = array.drop_null() if array.null_count else array
    if not len(values):
        return np.empty(0, dtype=np.uint64)
    if is_text(values.type) or is_bytes(values.type):
        values = pc.unique(values)
        return _mixed(hashed([words_of(values, seed=0)], len(values), seed=0, words=1)[:, 0])
    if at.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))  # of -0.0 and 0.0 makes one value
        values = pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), values)
    if at.is_boolean(values.type):
        values = values.cast(pa.uint8())
    return _mixed(_of_fixed_width(values))


def _of_fixed_width(values: pa.Array) -> Hashes:
    """Word by word: a decimal has two, or four."""
    width = values.type.bit_width // 8
    raw = np.frombuffer(values.buffers()[1], dtype=np.uint8)[values.offset * width :][: len(values) * width]
    if width < 8:
        raw = np.pad(raw.reshape(len(values), width), ((0, 0), (0, 8 - width))).reshape(-1)
    words = np.ascontiguousarray(raw).view(np.uint64).reshape(len(values), -1)
    mixed = np.zeros(len(values), dtype=np.uint64)
    for place in range(words.shape[1]):
        mixed = _mixed(mixed ^ words[:, place])
    return mixed


def _mixed(words: Hashes) -> Hashes:
    """Every bit of a word changes about half of those that come out (SplitMix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
