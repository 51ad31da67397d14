"""`hakiri pipeline rename` in a process that tests kill."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.pipeline.renaming import parse_rename, rename_loads
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.settings import Settings


def rename_without_dagster(root: Path, env: Mapping[str, str], old: str, new: str) -> None:
    with Runtime(load_project(root, env=env), Settings(retries=0)) as runtime:
        rename_loads(runtime, parse_rename(old, new), lambda moves: tuple(0 for _ in moves))
