"""`hakiri plan`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.explain import document, explain
from hakiri_dagster.cli.opening import chosen_pipelines, opened_project
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.security.secrets import redact
from hakiri_dagster.settings import Settings


def plan(root: Path, ids: Sequence[str], as_json: bool) -> int:
    project = opened_project(root)
    tables = [table for pipeline in chosen_pipelines(project, ids) for table in pipeline.tables]
    with Runtime(project, Settings.from_env()) as runtime:
        planned = runtime.plan(tables).plan
    if as_json:
        print_json(document(planned))
    else:
        print(redact(explain(planned)))
    return 1 if any(table.verdict in ("error", "refused") for table in planned.tables) else 0
