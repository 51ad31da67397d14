"""`hakiri pipeline rename` in a process that tests kill."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hakiri_dagster.cli.rename_command import rename_everywhere
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration import renamed_assets  # noqa: F401  # imported once, before workers are forked
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.settings import Settings


def rename_with_dagster(root: Path, env: Mapping[str, str], dagster_url: str, old: str, new: str) -> None:
    with Runtime(load_project(root, env=env), Settings(retries=0, dagster_url=dagster_url)) as runtime:
        rename_everywhere(runtime, old, new)
