"""What a worker tells the audit DB of the slices it holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hakiri_dagster.audit.chunks import ChunkStore
from hakiri_dagster.audit.claims import Claim
from hakiri_dagster.audit.database import AuditDb, open_audit
from hakiri_dagster.destinations.contract import Fence
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.pipeline.claims import ClaimedSlice
from hakiri_dagster.planning.chunk_plan import plan_full
from hakiri_dagster.planning.chunks import Slice
from hakiri_dagster.planning.states import ChunkState, DueSlice


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[AuditDb]:
    opened = open_audit(None, tmp_path)
    yield opened
    opened.close()


def claim(store: ChunkStore, holder: str) -> Claim:
    (chunk,) = plan_full()
    attempts = next((state.attempts for state in store.states("shop", "orders")), 0)
    (claimed,) = store.claim(
        "shop",
        "orders",
        [DueSlice(Slice(chunk, chunk.bounds), attempts)],
        holder=holder,
        run_id=holder,
        ttl_seconds=600,
        holder_is_dead=lambda _holder: True,
    ).claimed
    return claimed


def test_a_failure_of_a_chunk_that_another_worker_took_over_stops_nothing(audit: AuditDb) -> None:
    (chunk,) = plan_full()
    audit.chunks.save("shop", "orders", [ChunkState(chunk.key, chunk.bounds)])
    ours = ClaimedSlice(claim(audit.chunks, "we"), Fence(1, 1), audit.chunks)
    claim(audit.chunks, "they")
    ours.failed(DestinationError("the target refused the rows"))
    assert ours.settled
    (state,) = audit.chunks.states("shop", "orders")
    assert state.status == "running"
