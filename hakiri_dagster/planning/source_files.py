"""Files under a table with a cursor: which part of the plan a new or rewritten file makes owed again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from hakiri_dagster.planning.chunks import Interval
from hakiri_dagster.planning.intervals import NOTHING, Intervals, union


@dataclass(frozen=True, slots=True)
class FileVersion:
    """One file with one content. `lower` and `upper` are its lowest and highest cursor, both inclusive."""

    path: str
    fingerprint: str
    content_hash: str
    lower: int | None = None
    upper: int | None = None
    nulls: int = 0
    rows: int | None = None

    @property
    def reach(self) -> Iterable[Interval]:
        if self.lower is not None and self.upper is not None:
            yield Interval(self.lower, self.upper + 1)


UNSETTLED: Final = ""
"""The content hash of a version that stands for several: some of its rows may be loaded."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What changed files reach, and which files are gone since the plan last took them in."""

    intervals: Intervals = NOTHING
    nulls: bool = False
    missing: tuple[FileVersion, ...] = ()

    @property
    def anything(self) -> bool:
        return bool(self.intervals) or self.nulls


def touched_by(taken_in: Mapping[str, FileVersion], current: Iterable[FileVersion]) -> Touched:
    """A rewritten file reaches what it held before as well: its earlier rows there are to go."""
    intervals: list[Interval] = []
    nulls = False
    here = set()
    for file in current:
        here.add(file.path)
        before = taken_in.get(file.path)
        if before is not None and before.content_hash == file.content_hash:
            continue
        for version in (file, before):
            if version is not None:
                intervals.extend(version.reach)
                nulls = nulls or version.nulls > 0
    missing = tuple(file for path, file in taken_in.items() if path not in here)
    return Touched(union(intervals), nulls, missing)


def unsettled(taken_in: Mapping[str, FileVersion], current: Iterable[FileVersion]) -> Iterator[FileVersion]:
    """What a plan has taken in that could not be written down whole, because an attempt held one of its chunks.

    A changed file then reaches as far as all versions that may be loaded, and counts as changed next time too.
    """
    for file in current:
        before = taken_in.get(file.path)
        if before is not None and before.content_hash == file.content_hash:
            yield file
            continue
        reach = union(part for version in (file, before) if version is not None for part in version.reach)
        yield replace(
            file,
            content_hash=UNSETTLED,
            lower=reach[0].lower if reach else None,
            upper=None if not reach or reach[-1].upper is None else reach[-1].upper - 1,
            nulls=max(file.nulls, 0 if before is None else before.nulls),
        )
