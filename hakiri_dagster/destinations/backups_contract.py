"""Targets as they were: what destinations tell of the copies that they keep."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class Backup:
    """The target as it was before a load, or before the restoring of another backup. `load_id` is the later one's;
    `generation` 1 is the newest."""

    generation: int
    load_id: int
    run_id: str
    relation: str
    rows: int
    made_before: Literal["load", "restore"]
    made_at: datetime


@dataclass(frozen=True, slots=True)
class Restored:
    """`left_out` are columns that the target no longer has. `undoable`: the rows that these replace are a backup now;
    where there were none, there is none."""

    rows: int
    backup: Backup
    left_out: tuple[str, ...]
    undoable: bool
