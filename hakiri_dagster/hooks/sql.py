"""`sql`: a maintenance statement."""

from __future__ import annotations

from collections.abc import Sequence

from hakiri_dagster.hooks.surroundings import Surroundings
from hakiri_dagster.manifest.hook_spec import SqlHook


def run(hook: SqlHook, around: Surroundings) -> Sequence[str]:
    """What the statement says."""
    return around.execute(hook.statement, around.relation)
