"""What is leaned on in Dagster: an upgrade that changes it fails here first."""

from __future__ import annotations

from pathlib import Path

from hakiri_dagster.cli.manifest_commands import init
from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.jobs import EVERY_ASSET_JOB
from hakiri_dagster.settings import Settings


def test_dagsters_job_over_all_assets_has_the_name_that_schedules_launch(tmp_path: Path) -> None:
    init(tmp_path)
    definitions = project_definitions(load_project(tmp_path), Settings())
    assert definitions.resolve_implicit_global_asset_job_def().name == EVERY_ASSET_JOB
