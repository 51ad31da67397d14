"""What a project needs for a plain `dagster dev`, as `hakiri init` writes it. Does not import Dagster, for speed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

_NAMES = ("dagster.yaml", "workspace.yaml")


def dagster_files() -> Mapping[str, str]:
    scaffold = files("hakiri_dagster") / "scaffold"
    return {name: (scaffold / name).read_text(encoding="utf-8") for name in _NAMES}
