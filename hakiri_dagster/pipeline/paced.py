"""A candidate that is written no faster than `destination_writes_per_sec`: each of its blocks is one write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hakiri_dagster.connectors.network import FreePermits, Permits
from hakiri_dagster.destinations.contract import Candidate
from hakiri_dagster.errors import AuditError
from hakiri_dagster.pipeline.way import Way

SHARED: Final = ""
"""What looks at a source need, and reads that serve several chunks."""


def paced(way: Way, candidate: Candidate, chunk: str) -> Candidate:
    return candidate if isinstance(way.writes, FreePermits) else PacedCandidate(candidate, way.writes, chunk)


def waited_ms(way: Way, chunk: str = SHARED) -> int | None:
    """So far in this run, for permits that the chunk alone needed, or that no chunk alone did; None: it has no budget,
    or nobody can tell."""
    if not way.has_budgets:
        return None
    try:
        return way.audit.rate_budgets.waited_ms(way.run_id, way.table.pipeline_id, way.table.name, chunk)
    except AuditError:
        return None  # the chunk is published, whatever can be told of it


@dataclass(frozen=True, slots=True)
class PacedCandidate:
    """The same rows. It waits where nothing but the load's own transaction is open."""

    _candidate: Candidate
    _writes: Permits
    _chunk: str

    def blocks(self) -> Iterator[bytes]:
        """Whoever asks for the next block has written the one before."""
        for block in self._candidate.blocks():
            with self._writes.permit(self._chunk):
                try:
                    yield block
                except GeneratorExit:  # the load was given up: nothing of it arrives later, unlike a request
                    return

    @property
    def rows(self) -> int:
        return self._candidate.rows

    @property
    def bytes(self) -> int:
        return self._candidate.bytes

    @property
    def cursor_max(self) -> int | None:
        return self._candidate.cursor_max

    @property
    def set_aside(self) -> int:
        return self._candidate.set_aside
