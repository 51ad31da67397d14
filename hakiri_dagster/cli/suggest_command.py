"""`hakiri suggest`: rules and validators that targets pass as they are, to be put into the manifest."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from hakiri_dagster.cli.opening import chosen_pipeline, chosen_tables, opened_project
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.snippet import Addition, comment, snippet
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.manifest.written_tables import WrittenTable, written_table
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.suggestions import suggestions
from hakiri_dagster.pipeline.target_profile import profile_of_target
from hakiri_dagster.quality.profile import TableProfile
from hakiri_dagster.settings import Settings

FEW_ROWS = 100
"""Fewer say little of the rows to come."""


def suggest(root: Path, pipeline_id: str, name: str | None) -> int:
    project = opened_project(root)
    tables = chosen_tables(chosen_pipeline(project, pipeline_id), name)
    failed = False
    with Runtime(project, Settings.from_env()) as runtime:
        for table in tables:
            try:
                print(suggested(runtime, table), flush=True)
            except HakiriError as error:
                failed = True
                print(f"error: {error}", file=sys.stderr)
    return 1 if failed else 0


def suggested(runtime: Runtime, table: Table) -> str:
    """The text of one table."""
    profile = profile_of_target(runtime, table)
    notes = [*_about(profile)]
    try:
        source = runtime.survey(table).schema
    except HakiriError as error:
        source = None
        notes.append(f"not compared with the columns of the source: {error.what}")
    found = suggestions(table, profile, runtime.destination(table), source, datetime.now(UTC))
    label = f"{table.label}: proposed by `hakiri suggest`, {profile.rows:,} row(s) of the target"
    if not found:
        return _commented([label, *notes, "nothing to propose that the manifest has not already"])
    place = written_table(runtime.project.root, table)
    additions = [Addition(proposal.check, proposal.why) for proposal in found]
    text = snippet(table, place, additions)
    told = [label, *notes, *_where(place)]
    if place.form == "json":  # which has no comments
        print(_commented(told), file=sys.stderr)
        return text
    return f"{_commented(told)}\n{text}\n"


def _commented(lines: list[str]) -> str:
    return "\n".join(f"# {comment(line)}" for line in lines)


def _about(profile: TableProfile) -> Iterator[str]:
    if not profile.rows:
        yield "the target has no rows: load some, and ask again"
    elif profile.rows < FEW_ROWS:
        yield "few rows say little of those to come: look at every bound"
    if profile.rows:
        yield 'all of it warns only; `on_fail = "abort"` makes a gate of a check, and "skip" a rule set rows aside'


def _where(place: WrittenTable) -> Iterator[str]:
    at = f"{place.file}, line {place.line}"
    match place.form:
        case "json":
            yield f"a member of the {'pipeline' if place.of_pipeline else 'table'} at {at}"
        case "section" if place.of_pipeline:
            yield f"at the end of the pipeline at {at}, before the next `[[pipeline]]`"
        case "section":
            yield f"at the end of the table at {at}, before the next table or pipeline"
        case "entry":
            yield f"into the table's entry at {at}; between its other keys, with commas"
        case "name":
            yield f"in place of the table's name at {at}"
    if place.there:
        yield f"in place of {', '.join(f'`{key}`' for key in place.there)}, which is in it"
