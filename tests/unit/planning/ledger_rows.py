"""A row of a destination's ledger, as far as planning goes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from hakiri_dagster.planning.chunks import Bounds

PUBLISHED_AT = datetime(2024, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class PublishedSlice:
    chunk_key: str
    bounds: Bounds
    rows: int
    cursor_committed: int | None
    load_id: int
    attempt: int
    superseded: bool = False
    token: str | None = None
    bytes: int = 70
    run_id: str = "run"
    published_at: datetime = PUBLISHED_AT


def told(rows: Iterable[PublishedSlice], loads: Collection[int]) -> list[PublishedSlice]:
    """What a destination answers: the newest of each chunk that is not superseded, and those that are asked for."""
    every = {row.load_id: row for row in rows}
    newest = {row.chunk_key: row for row in sorted(every.values(), key=lambda r: r.load_id) if not row.superseded}
    asked = [row for load_id, row in every.items() if load_id in loads and newest.get(row.chunk_key) is not row]
    return [*newest.values(), *asked]
