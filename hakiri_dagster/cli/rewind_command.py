"""`hakiri backfill rewind`."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from hakiri_dagster.audit.rewinds import RewindAnswer
from hakiri_dagster.cli.documents import print_json
from hakiri_dagster.cli.explain import some
from hakiri_dagster.cli.opening import chosen_pipeline, chosen_tables, opened_project
from hakiri_dagster.errors import HakiriError, UsageError
from hakiri_dagster.manifest.tables import Pipeline, Table
from hakiri_dagster.pipeline.rewinding import (
    Wish,
    nothing_there,
    planned_keys,
    reached,
    refuse_unknown_parts,
    refuse_without_cursor,
    stretch_of,
)
from hakiri_dagster.pipeline.rewinding import (
    rewind as rewind_table,
)
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.chunks import Interval
from hakiri_dagster.security.secrets import redact
from hakiri_dagster.settings import Settings


class RewindDocument(TypedDict):
    pipeline_id: str
    table: str
    rewind: int | None
    generation: int | None
    reason: str
    rewound: list[str]
    not_at_source: list[str]
    owed_already: list[str]
    error: str | None


def rewind(
    root: Path,
    pipeline_id: str,
    name: str | None,
    stretch: tuple[str, str],
    reason: str,
    parts: Sequence[str] = (),
    *,
    as_json: bool,
) -> int:
    wish = Wish(*stretch, reason, getpass.getuser(), frozenset(parts))
    project = opened_project(root)
    pipeline = chosen_pipeline(project, pipeline_id)
    with Runtime(project, Settings.from_env()) as runtime:
        wanted = _reached(runtime, _to_be_rewound(runtime, pipeline, name, wish), wish)
        documents = [_rewound(runtime, survey, stretch, wish) for survey, stretch in wanted]
    if as_json:
        print_json({"rewinds": documents})
    else:
        for line in _lines(pipeline_id, documents):
            print(redact(line))
    return 1 if any(document["error"] for document in documents) else 0


def _to_be_rewound(runtime: Runtime, pipeline: Pipeline, name: str | None, wish: Wish) -> list[Table]:
    tables = chosen_tables(pipeline, name)
    for table in tables:
        try:
            refuse_without_cursor(table, runtime.source(table))
            refuse_unknown_parts(table, runtime.source(table), wish.parts)
        except UsageError as error:
            if len(tables) == 1:
                raise
            hint = f"name the table that is to be rewound with --table; of this one, {error.hint}"
            raise UsageError(error.what, where=error.where, hint=hint) from error
    return tables


def _reached(runtime: Runtime, tables: Sequence[Table], wish: Wish) -> list[tuple[Survey, Interval]]:
    """Before anything is changed. One of the tables is enough."""
    surveys = [runtime.survey(table) for table in tables]
    wanted = [(survey, stretch_of(survey, wish)) for survey in surveys]
    if not any(reached(survey, stretch, wish.parts).states for survey, stretch in wanted):
        raise nothing_there(surveys[0], wish)
    return wanted


def _rewound(runtime: Runtime, survey: Survey, stretch: Interval, wish: Wish) -> RewindDocument:
    table = survey.table
    try:
        return _document(survey, wish, rewind_table(runtime, survey, stretch, wish), None)
    except HakiriError as error:
        return _document(survey, wish, None, error.told_within(table.label))


def _document(survey: Survey, wish: Wish, answer: RewindAnswer | None, error: str | None) -> RewindDocument:
    planned = planned_keys(survey)
    taken = [] if answer is None else [state.key for state in answer.reach.published]
    return RewindDocument(
        pipeline_id=survey.table.pipeline_id,
        table=survey.table.name,
        rewind=None if answer is None else answer.rewind_id,
        generation=None if answer is None or answer.rewind_id is None else answer.generation,
        reason=wish.reason.strip(),
        rewound=[key for key in taken if planned is None or key in planned],
        not_at_source=[key for key in taken if planned is not None and key not in planned],
        owed_already=[] if answer is None else [state.key for state in answer.reach.owed],
        error=error,
    )


def _lines(pipeline_id: str, documents: Sequence[RewindDocument]) -> Iterator[str]:
    for document in documents:
        told = list(_told(document))
        label = f"{document['pipeline_id']}/{document['table']}"
        yield from (f"{label}: {line}" for line in told or ["no chunk of it lies there"])
    if any(document["rewound"] or document["owed_already"] for document in documents):
        yield f"next: hakiri apply {pipeline_id}"


def _told(document: RewindDocument) -> Iterator[str]:
    if document["error"]:
        yield f"error: {document['error']}"
    if document["rewound"]:
        yield (
            f"{len(document['rewound'])} chunk(s) are pending again: {some(document['rewound'])}; "
            "their rows stay until the new ones are published"
        )
    if document["not_at_source"]:
        yield (
            f"{len(document['not_at_source'])} chunk(s) of which the source has no row now keep theirs, and are loaded "
            f"again when it has some there: {some(document['not_at_source'])}"
        )
    if document["owed_already"]:
        yield f"{len(document['owed_already'])} chunk(s) are to be loaded anyway: {some(document['owed_already'])}"
