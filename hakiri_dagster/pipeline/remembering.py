"""What a look leaves in the audit DB."""

from __future__ import annotations

from dataclasses import replace

from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.pipeline.evolution import settle
from hakiri_dagster.pipeline.garbage import garbage_kept
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.planning.states import Due


def remember(audit: AuditDb, survey: Survey, due: Due) -> None:
    """Stores the plan, and what was found out about the source."""
    remember_source(audit, survey)
    table, history = survey.table, survey.cursor_history
    with garbage_kept():
        is_stored = audit.tables.sync(
            table.pipeline_id,
            table.name,
            due,
            plan=survey.stored_plan,
            files=survey.versions(),
            last_rewind=survey.last_rewind,
        )
    if history is not None:
        if is_stored and not due.busy:  # the chunk states say now what is to be read again
            history = replace(history, went_back_to=None)
        audit.cursor_history.save(table.pipeline_id, table.name, history)


def remember_source(audit: AuditDb, survey: Survey) -> None:
    """So that nothing is looked at twice. Of what is due it says nothing: others may be at work on it."""
    table, schema = survey.table, survey.discovery.schema
    if schema is not None and survey.source.text_format:
        audit.tables.put_schema(table.pipeline_id, table.name, schema, survey.source.read_as)
    audit.files.put(table.pipeline_id, table.name, survey.versions())
    if survey.evolution is not None and survey.evolution.known is None and survey.target is not None:
        # loaded before there was a record: what is there now is what was accepted
        settle(audit, table, survey.evolution)
