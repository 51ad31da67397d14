"""Which tables the UI shows as late, and when."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.errors import ManifestError
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.settings import Settings


def policy(root: Path, validate: dict[str, Any]) -> dg.FreshnessPolicy | None:
    folder = root / "manifests" / "pipelines"
    folder.mkdir(parents=True)
    pipeline = {"id": "shop", "source": {"connector": "files", "config": {"path": "data/o.csv"}}, "tables": ["orders"]}
    (folder / "shop.json").write_text(json.dumps(pipeline | {"validate": validate}))
    graph = project_definitions(load_project(root), Settings()).resolve_asset_graph()
    return graph.get(dg.AssetKey(["shop", "orders"])).freshness_policy


def test_without_a_promise_nothing_is_late(tmp_path: Path) -> None:
    assert policy(tmp_path, {}) is None


def test_rows_that_may_be_a_day_old_must_come_every_day(tmp_path: Path) -> None:
    ages = [{"column": "a", "within_hours": 48, "on_fail": "warn"}, {"column": "b", "within_hours": 24}]
    promised = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=24))
    assert policy(tmp_path, {"dataset_level": {"freshness": ages}}) == promised


def test_what_is_said_counts_more(tmp_path: Path) -> None:
    said = {
        "late": {"afterHours": 6, "warnAfterHours": 4},
        "datasetLevel": {"freshness": {"column": "a", "withinHours": 1}},
    }
    promised = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=6), warn_window=timedelta(hours=4))
    assert policy(tmp_path, said) == promised


@pytest.mark.parametrize(
    "late", [{"after_hours": 1, "warn_after_hours": 1}, {"after_hours": 0}, {"after_hours": 0.001}]
)
def test_times_that_make_no_sense_are_told(tmp_path: Path, late: dict[str, float]) -> None:
    with pytest.raises(ManifestError, match="late"):
        policy(tmp_path, {"late": late})
