"""Rows that were set aside: what destinations tell of those that they keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from hakiri_dagster.manifest.rule_spec import RowOnFail


@dataclass(frozen=True, slots=True)
class KeptChoice:
    """Which rows of a table; None: whatever it is. `rules` are ids; none of them: no row."""

    rules: tuple[str, ...] | None = None
    run_id: str | None = None
    chunk_key: str | None = None


@dataclass(frozen=True, slots=True)
class KeptRow:
    """`row` is JSON text. `on_fail` is None for rows that an earlier version has kept; `source_line` also where
    a source has no lines, and where it could not be told for certain."""

    rule: str
    on_fail: RowOnFail | None
    message: str | None
    row: str
    run_id: str
    chunk_key: str | None
    load_id: int | None
    source_file: str | None
    source_line: int | None
    kept_at: datetime


@dataclass(frozen=True, slots=True)
class KeptLine:
    """A row as it is to be read once more. `row` is JSON text without line breaks."""

    id: int
    chunk_key: str
    load_id: int
    source_file: str | None
    row: str


@dataclass(frozen=True, slots=True)
class Replay:
    """Of a load whose rows come out of the quarantine. `beside`: the loads that had rows within its bounds when they
    were chosen; `of`: those among them that are its own chunk's."""

    beside: frozenset[int]
    of: frozenset[int]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a row when it was tried again. `kept_id` is its own in the quarantine. `on_fail`: `skip` of a row
    that stays, `warn` of one that is loaded and kept as well."""

    kept_id: int
    rule: str
    message: str
    on_fail: RowOnFail


class Verdicts(Protocol):
    """Of the rows of one replay. Rows stream; each is gone through several times."""

    def tried(self) -> Iterator[int]:
        """The ids of all rows that were read."""
        ...

    def told(self) -> Iterator[Verdict]:
        """Of rows that stay as they are, `skip` without a rule; of the others that are not just loaded, why."""
        ...

    def overtaken(self) -> Iterator[int]:
        """The ids of rows that a later load has read again, so that they are obsolete here."""
        ...


@dataclass(frozen=True, slots=True)
class KeptCount:
    rule: str
    on_fail: RowOnFail | None
    rows: int


@dataclass(frozen=True, slots=True)
class Kept:
    """`sample`: some of them, the newest first."""

    counts: tuple[KeptCount, ...]
    sample: tuple[KeptRow, ...]
