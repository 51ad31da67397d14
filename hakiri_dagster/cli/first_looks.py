"""Tables that nobody has planned yet are looked at before Dagster loads the project, so that it knows their partitions
from the start. Nothing waits for a source that takes its time: Dagster loads the project anew when that is known."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from hakiri_dagster.cli.children import Children
from hakiri_dagster.cli.opening import opened_project
from hakiri_dagster.manifest.tables import Project, Table
from hakiri_dagster.pipeline.remembering import remember
from hakiri_dagster.pipeline.runtime import Runtime, stored_plans
from hakiri_dagster.settings import Settings

_NAME: Final = "first looks"
_SECONDS: Final = 20.0


def look_at_new_tables(project: Project, children: Children) -> None:
    """In a process of its own: one that waits for an answer cannot be interrupted otherwise. What it does not find out,
    the planner's ticks do."""
    if not _new_tables(project):
        return
    print("planning …", file=sys.stderr, flush=True)
    children.start(_NAME, [sys.executable, "-m", __name__, str(project.root)])
    if not children.has_ended(_NAME, within=_SECONDS):
        print("sources that have not answered yet are planned meanwhile", file=sys.stderr, flush=True)


def _new_tables(project: Project) -> list[Table]:
    known = stored_plans(project)
    return [table for table in project.tables if table.label not in known]


def _look(project: Project) -> None:
    with Runtime(project, Settings.from_env()) as runtime:
        for table in _new_tables(project):
            for _, survey in runtime.plan([table]).surveys:  # sources that are down come later
                remember(runtime.audit, survey, survey.due)


if __name__ == "__main__":
    _look(opened_project(Path(sys.argv[1])))
