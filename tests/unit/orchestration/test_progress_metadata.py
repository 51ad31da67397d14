from __future__ import annotations

from dataclasses import replace

from hakiri_dagster.audit.progress import TableProgress
from hakiri_dagster.audit.recent_loads import RecentLoads
from hakiri_dagster.manifest.rates import Rate
from hakiri_dagster.orchestration.events import progress_metadata
from hakiri_dagster.pipeline.told_progress import ToldProgress

LATELY = RecentLoads(chunks=50, seconds=10.0, rows=8_500, bytes=12_400_000)
TABLE = TableProgress(done=47, running=4, pending=261, failed=0, recent=LATELY)


def values(told: ToldProgress | None) -> dict[str, object]:
    return {name: value.value for name, value in progress_metadata(told).items()}


def test_all_that_status_tells_is_told() -> None:
    found = values(ToldProgress(TABLE, Rate.parse("60/min"), 87))
    assert found == {
        "status/chunks_done": 47,
        "status/chunks_running": 4,
        "status/chunks_pending": 261,
        "status/chunks_failed": 0,
        "status/rows_per_sec": 850,
        "status/bytes_per_sec": 1_240_000,
        "status/eta_seconds": 53,
        "status/rate_budget": "60/min",
        "status/rate_budget_used_pct": 87,
    }


def test_what_is_not_known_is_left_out() -> None:
    assert "status/eta_seconds" not in values(
        ToldProgress(replace(TABLE, recent=RecentLoads(0, 0.0, 0, 0)), None, None)
    )
    assert "status/rate_budget" not in values(ToldProgress(TABLE, None, None))
    assert values(None) == {}
