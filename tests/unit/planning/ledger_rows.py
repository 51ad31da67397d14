"""A row of a destination's ledger, as far as planning goes."""

from __future__ import annotations

from dataclasses import dataclass

from hakiri_dagster.planning.chunks import Bounds


@dataclass(frozen=True)
class PublishedSlice:
    chunk_key: str
    bounds: Bounds
    rows: int
    cursor_committed: int | None
    load_id: int
    attempt: int
