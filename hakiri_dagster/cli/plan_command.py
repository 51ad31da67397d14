"""`hakiri plan`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.explain import document, explain
from hakiri_dagster.cli.opening import chosen_pipelines, opened_project
from hakiri_dagster.pipeline.planner import Planned
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.unread_parts import told_unread
from hakiri_dagster.planning.plan import ProjectPlan
from hakiri_dagster.security.secrets import redact
from hakiri_dagster.settings import Settings


def plan(root: Path, ids: Sequence[str], as_json: bool, *, partitions: bool = False) -> int:
    project = opened_project(root)
    tables = [table for pipeline in chosen_pipelines(project, ids) for table in pipeline.tables]
    with Runtime(project, Settings.from_env()) as runtime:
        found = runtime.plan(tables, look_for_gaps=True)
        planned = _compared_with_dagster(runtime, found) if partitions else found.plan
    if as_json:
        print_json(document(planned))
    else:
        print(redact(explain(planned)))
    unread = any(told_unread(survey) for _, survey in found.surveys)
    return 1 if unread or any(table.verdict in ("error", "refused") for table in planned.tables) else 0


def _compared_with_dagster(runtime: Runtime, planned: Planned) -> ProjectPlan:
    from hakiri_dagster.orchestration.wiped import chunks_not_shown

    published = [(table, survey) for table, survey in planned.surveys if survey.due.done]
    wiped = chunks_not_shown(runtime, published) if published else {}
    tables = (replace(t, not_shown=wiped.get((t.pipeline_id, t.table), ())) for t in planned.plan.tables)
    return replace(planned.plan, tables=tuple(tables))
