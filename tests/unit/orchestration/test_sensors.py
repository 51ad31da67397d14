"""Which sensors a project has, and that all of them are up from the start."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.jobs import EVERY_ASSET_JOB
from hakiri_dagster.settings import Settings

ALWAYS = ["_alerts", "_killed_runs", "_planner", "_stale_leases"]


@pytest.mark.parametrize(
    ("triggers", "names"),
    [("", ALWAYS), ('[{ type = "source" }]', ALWAYS), ('[{ type = "files" }]', sorted([*ALWAYS, "_file_arrivals"]))],
)
def test_there_are_as_many_sensors_however_many_pipelines(tmp_path: Path, triggers: str, names: list[str]) -> None:
    (tmp_path / "manifests").mkdir()
    pipelines = (
        f'[[pipeline]]\nid = "p{n}"\nsource = {{ connector = "files", config = {{ path = "data" }} }}\n'
        f'tables = ["t{n}"]\n' + (f"triggers = {triggers}\n" if triggers else "")
        for n in range(3)
    )
    (tmp_path / "manifests" / "hakiri.toml").write_text("".join(pipelines))
    repository = project_definitions(load_project(tmp_path), Settings()).get_repository_def()
    sensors = {sensor.name: sensor for sensor in repository.sensor_defs}
    assert sorted(sensors) == names
    assert all(sensor.default_status == dg.DefaultSensorStatus.RUNNING for sensor in sensors.values())
    starting = [sensor for name, sensor in sensors.items() if name in ("_planner", "_file_arrivals")]
    assert {sensor.job_name for sensor in starting} == {EVERY_ASSET_JOB}
