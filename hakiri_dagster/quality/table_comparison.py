"""What a source and a destination offer so that the rows of one can be compared with those of the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Final, Protocol

from hakiri_dagster.planning.verification import ChunkTally, ComparableChunk, in_cursor_order
from hakiri_dagster.quality.measures import Form

Forms = tuple[tuple[str, Form], ...]
KeyText = tuple[str | None, ...]
"""The values of a key, each as PostgreSQL writes it."""

_MOST_CHUNKS_A_QUERY: Final = 2000
_EXPLAINED: Final = 8
_DEARER_AT_MOST: Final = 1.25


@dataclass(frozen=True, slots=True)
class ComparedColumns:
    """What of a row is hashed, in forms that both sides compute alike. `key` tells rows apart, `values` are compared;
    both may be empty. `hard_delete` is the source's column that flags rows as deleted. `empty_as_null`: empty texts of
    the source are loaded as NULL."""

    cursor: str | None
    key: Forms = ()
    values: Forms = ()
    hard_delete: str | None = None
    empty_as_null: bool = False
    merges_by_key: bool = False
    """The target holds one row a key, whatever the source holds."""

    @property
    def tells_rows_apart(self) -> bool:
        return bool(self.key or self.values)


@dataclass(frozen=True, slots=True)
class RowHash:
    """`key` and `values` are 64-bit hashes; without a key `key` is that of the values. `is_own`: a load of the table
    has written the row."""

    key: int
    values: int
    is_own: bool = True


class ComparedTable(Protocol):
    """One side of a comparison. Safe to share between threads: each call has a connection of its own."""

    @property
    def most_queries(self) -> int:
        """How many queries it bears at once."""
        ...

    def batches(self, chunks: Sequence[ComparableChunk], size: int) -> Sequence[Sequence[ComparableChunk]]:
        """Cut the chunks into queries of about `size` chunks each, if an index finds the rows of each. Where it does
        not, one query reads all of them: reading the table once costs the server less than once a batch."""
        ...

    def tally(self, chunks: Sequence[ComparableChunk]) -> Mapping[str, ChunkTally]:
        """Count the rows of the chunks, and sum up their values if there are any to compare."""
        ...

    def row_hashes(self, chunk: ComparableChunk) -> AbstractContextManager[Iterator[RowHash]]:
        """Read the hashes of a chunk's rows, by key. They are as of the moment when the block is entered."""
        ...

    def keys(self, chunk: ComparableChunk, hashes: Sequence[int]) -> Sequence[KeyText]:
        """Return the keys of the chunk's rows that have one of these hashes."""
        ...

    def count_elsewhere(self, chunk: ComparableChunk, keys: Sequence[KeyText]) -> int:
        """Count how many of the keys, which are not among the chunk's rows, belong to a row elsewhere in the table.

        At the source that is a row with another cursor by now; in a target that is merged by key, a newer version."""
        ...


def cut_into_batches(
    chunks: Sequence[ComparableChunk], size: int, cost: Callable[[Sequence[ComparableChunk]], float]
) -> Sequence[Sequence[ComparableChunk]]:
    """Cut the chunks into queries as `ComparedTable.batches` describes. `cost` is what the planner expects of a query
    that counts these chunks; some of the batches stand for all of them."""
    windows = in_cursor_order(chunk for chunk in chunks if chunk.intervals)
    others = [[chunk] for chunk in chunks if not chunk.intervals]
    small = [windows[start : start + size] for start in range(0, len(windows), size)]
    if len(small) > 1:
        some = small[:: -(-len(small) // _EXPLAINED)]
        expected = sum(map(cost, some)) / len(some) * len(small)
        if expected > _DEARER_AT_MOST * cost(windows):
            starts = range(0, len(windows), _MOST_CHUNKS_A_QUERY)
            small = [windows[start : start + _MOST_CHUNKS_A_QUERY] for start in starts]
    return [*small, *others]


@dataclass(slots=True)
class HashDifference:
    """How the rows of one chunk differ. `missing_hashes` and `surplus_hashes` are the first of those keys that only the
    source or only the target has."""

    source_rows: int = 0
    target_rows: int = 0
    missing: int = 0
    surplus: int = 0
    extra: int = 0
    changed: int = 0
    missing_hashes: list[int] = field(default_factory=list)
    surplus_hashes: list[int] = field(default_factory=list)


def compare_hashes(
    source: Iterable[RowHash], target: Iterable[RowHash], *, merges_by_key: bool, most_hashes: int
) -> HashDifference:
    """Walk both sides once, in the order of their keys.

    Where the target is merged by key, one row of it stands for all that the source has of the key. Otherwise a key may
    repeat, as often on one side as on the other.
    """
    found = HashDifference()
    by_key = attrgetter("key")
    sources, targets = groupby(source, by_key), groupby(target, by_key)
    ours, theirs = next(sources, None), next(targets, None)
    while ours is not None or theirs is not None:
        if theirs is None or (ours is not None and ours[0] < theirs[0]):
            assert ours is not None
            count = sum(1 for _ in ours[1])
            found.source_rows += count
            found.missing += 1 if merges_by_key else count
            if len(found.missing_hashes) < most_hashes:
                found.missing_hashes.append(ours[0])
            ours = next(sources, None)
        elif ours is None or theirs[0] < ours[0]:
            count = sum(row.is_own for row in theirs[1])
            found.target_rows += count
            found.surplus += count
            if count and len(found.surplus_hashes) < most_hashes:
                found.surplus_hashes.append(theirs[0])
            theirs = next(targets, None)
        else:
            _compare_group(list(ours[1]), list(theirs[1]), found, merges_by_key=merges_by_key)
            ours, theirs = next(sources, None), next(targets, None)
    return found


def _compare_group(
    source: Sequence[RowHash], target: Sequence[RowHash], found: HashDifference, *, merges_by_key: bool
) -> None:
    own = [row for row in target if row.is_own]
    found.source_rows += len(source)
    found.target_rows += len(own)
    if merges_by_key:
        known = {row.values for row in source}
        found.changed += sum(row.values not in known for row in target)
        return
    found.missing += max(0, len(source) - len(own))
    found.extra += max(0, len(own) - len(source))
    same = Counter(row.values for row in source) & Counter(row.values for row in own)
    found.changed += min(len(source), len(own)) - same.total()
