"""A candidate that is written no faster than `destination_writes_per_sec`: each of its blocks is one write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hakiri_dagster.connectors.network import FreePermits, Permits
from hakiri_dagster.destinations.contract import Candidate
from hakiri_dagster.errors import AuditError
from hakiri_dagster.pipeline.way import Way


def paced(way: Way, candidate: Candidate, chunk: str) -> Candidate:
    return candidate if isinstance(way.writes, FreePermits) else PacedCandidate(candidate, way.writes, chunk)


def waited_ms(way: Way, chunk: str) -> int | None:
    """So far in this run, for permits that the chunk needed, or that the whole table did; None: it has no budget."""
    if not way.has_budgets:
        return None
    try:
        uses = way.audit.rate_budgets.uses(way.run_id, way.table.pipeline_id, way.table.name)
    except AuditError:
        return None  # the chunk is published, whatever can be told of it
    return sum(uses[key].wait_ms for key in (chunk, "") if key in uses)


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
                yield block

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
