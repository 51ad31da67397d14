"""What Dagster is told of a pipeline's schedule."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.settings import Settings


@pytest.mark.parametrize(("timezone", "told"), [("", "UTC"), ('timezone = "Asia/Tokyo"', "Asia/Tokyo")])
def test_a_schedule_ticks_by_the_clock_of_its_time_zone(tmp_path: Path, timezone: str, told: str) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "hakiri.toml").write_text(
        '[[pipeline]]\nid = "shop"\nsource = { connector = "files", config = { path = "data" } }\n'
        f'tables = ["orders"]\nschedule = "0 6 * * *"\n{timezone}\n'
    )
    schedule = project_definitions(load_project(tmp_path), Settings()).resolve_schedule_def("shop")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 6 * * *", told)
