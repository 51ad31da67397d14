from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.dagster_home import write_home
from hakiri_dagster.orchestration.names import pool_name


@pytest.mark.parametrize(("parallelism", "sizes"), [(1, [5]), (2, [2, 3]), (8, [1, 1, 1, 1, 1])])
def test_a_pipeline_has_no_more_pools_than_passes_at_once(tmp_path: Path, parallelism: int, sizes: list[int]) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "hakiri.toml").write_text(
        '[[pipeline]]\nid = "shop"\nsource = { connector = "files", config = { path = "data" } }\n'
        f'tables = ["a", "b", "c", "d", "e"]\nbackfill.parallelism = {parallelism}\n'
    )
    pools = Counter(map(pool_name, load_project(tmp_path).tables))
    assert sorted(pools.values()) == sizes
    assert all(name.startswith("shop/") for name in pools)


def test_the_queue_starts_no_more_runs_than_passes_may_be_at_work(tmp_path: Path) -> None:
    for most, runs in ((None, 4), (1, 1), (9, 4)):
        text = (write_home(tmp_path, most) / "dagster.yaml").read_text()
        assert f"max_concurrent_runs: {runs}\n" in text
