"""Rows that were set aside: what destinations tell of those that they keep."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

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
class KeptCount:
    rule: str
    on_fail: RowOnFail | None
    rows: int


@dataclass(frozen=True, slots=True)
class Kept:
    """`sample`: some of them, the newest first."""

    counts: tuple[KeptCount, ...]
    sample: tuple[KeptRow, ...]
