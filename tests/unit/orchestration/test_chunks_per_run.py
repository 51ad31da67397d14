from __future__ import annotations

import pytest

from hakiri_dagster.orchestration.assets import chunks_per_run


@pytest.mark.parametrize(("chunks", "a_run"), [(0, 100), (1, 100), (5_000, 100), (5_001, 101), (100_000, 2_000)])
def test_a_table_is_planned_no_more_than_fifty_times_however_many_chunks_it_has(chunks: int, a_run: int) -> None:
    assert chunks_per_run(chunks) == a_run
