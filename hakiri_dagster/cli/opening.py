"""Opening a project from the command line: which pipelines are meant, and quiet, redacted logs."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.manifest.tables import Pipeline, Project, Table
from hakiri_dagster.security.secrets import RedactingFilter

_TOLD_AS_ERRORS = ("psycopg", "sqlalchemy.pool")
"""A server that goes away, which these log when they put its connections away, is told as an error, and tried again."""


def opened_project(root: Path) -> Project:
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(RedactingFilter())
    asked = os.environ.get("HAKIRI_LOG")
    logging.basicConfig(level=_log_level(asked or "WARNING"), handlers=[handler])
    if not asked:
        for name in _TOLD_AS_ERRORS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
    return load_project(root)


def _log_level(name: str) -> str:
    known = logging.getLevelNamesMapping()
    if name.upper() not in known:
        raise UsageError(f"HAKIRI_LOG is {name!r}", hint=f"one of {', '.join(known)}")
    return name.upper()


def chosen_pipelines(project: Project, ids: Sequence[str]) -> list[Pipeline]:
    return [chosen_pipeline(project, pipeline_id) for pipeline_id in ids] if ids else list(project.pipelines)


def chosen_pipeline(project: Project, pipeline_id: str) -> Pipeline:
    pipeline = project.pipeline(pipeline_id)
    if pipeline is None:
        raise UsageError(
            f"there is no pipeline `{pipeline_id}` in this project",
            hint=_meant(pipeline_id, [p.id for p in project.pipelines]),
        )
    return pipeline


def chosen_tables(pipeline: Pipeline, name: str | None) -> list[Table]:
    if name is None:
        return list(pipeline.tables)
    table = pipeline.table(name)
    if table is None:
        raise UsageError(
            f"pipeline `{pipeline.id}` has no table `{name}`", hint=_meant(name, [t.name for t in pipeline.tables])
        )
    return [table]


def _meant(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f"did you mean `{close[0]}`?" if close else f"known: {', '.join(known) or 'none'}"
