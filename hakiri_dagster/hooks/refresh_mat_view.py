"""`refresh_mat_view`: REFRESH MATERIALIZED VIEW."""

from __future__ import annotations

from hakiri_dagster.hooks.surroundings import Surroundings
from hakiri_dagster.manifest.hook_spec import RefreshMatViewHook


def run(hook: RefreshMatViewHook, around: Surroundings) -> None:
    schema, _, name = hook.view.partition(".")
    around.execute("REFRESH MATERIALIZED VIEW {table}", (schema, name))
