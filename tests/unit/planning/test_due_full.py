from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hakiri_dagster.planning.chunks import WholeTable
from hakiri_dagster.planning.due_full import due_full
from hakiri_dagster.planning.repair import after_ledger
from hakiri_dagster.planning.states import ChunkState, Due
from tests.unit.planning.ledger_rows import PublishedSlice

NOW = datetime(2026, 11, 18, 12, 7, tzinfo=UTC)
LOADED = ChunkState(
    "full", WholeTable(), status="done", attempts=1, generation=1, seen="f1", completed_at=NOW - timedelta(minutes=5)
)


def _due(state: ChunkState | None, *, fingerprint: str | None = None, schedule: str | None = None) -> Due:
    states = [] if state is None else [state]
    return due_full(states, fingerprint=fingerprint, schedule=schedule, timezone="UTC", now=NOW)


@pytest.mark.parametrize(
    ("fingerprint", "schedule", "due"),
    [
        ("f1", None, False),
        ("f2", None, True),
        (None, None, True),
        (None, "every 15m", False),
        (None, "every 1m", True),
        (None, "*/5 * * * *", True),
    ],
)
def test_a_whole_table_is_due_when_its_files_changed_or_its_schedule_ticked(
    fingerprint: str | None, schedule: str | None, due: bool
) -> None:
    found = _due(LOADED, fingerprint=fingerprint, schedule=schedule)
    assert bool(found.slices) is due
    assert [slice_.seen for slice_ in found.slices] == ([fingerprint] if due else [])


def test_a_publish_that_only_the_ledger_tells_of_counts_from_when_it_was_published() -> None:
    held = replace(LOADED, status="running", completed_at=None)
    ledger = [PublishedSlice("full", WholeTable(), 3, None, 1, 1, published_at=NOW - timedelta(minutes=5))]
    (state,) = after_ledger([held], ledger)
    assert not _due(state, schedule="every 15m").slices
    assert _due(state, schedule="every 1m").slices


def test_a_failed_load_is_due_whatever_the_fingerprint_says() -> None:
    assert _due(replace(LOADED, status="failed"), fingerprint="f1").slices


def test_a_held_one_is_busy() -> None:
    found = _due(replace(LOADED, status="running"), fingerprint="f2")
    assert (len(found.busy), found.states) == (1, ())


def test_windows_that_were_never_loaded_are_retired_when_the_table_is_loaded_whole() -> None:
    window = ChunkState("2026-01", WholeTable(), status="pending", generation=1)
    held = ChunkState("2026-02", WholeTable(), status="running", generation=1)
    found = due_full([window, held], fingerprint="f1", schedule=None, timezone="UTC", now=NOW)
    assert {state.key: state.status for state in found.states} == {"full": "pending", "2026-01": "retired"}
    assert found.overtaken == ("2026-02",)
