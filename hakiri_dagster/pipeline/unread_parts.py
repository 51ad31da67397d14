"""Parts of a table that its source refuses, or does not answer for: the others are loaded, and somebody is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from hakiri_dagster.audit.alerts import Alert
from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.part_names import name_of
from hakiri_dagster.pipeline.alerts import not_failing, raise_alert
from hakiri_dagster.pipeline.steps import FailedChunk
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.wanted import Wanted
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.chunks import Part
from hakiri_dagster.planning.parts import part_name

_OUTLOOK: Final = {
    "permanent": "its other parts are loaded, and this one when it can be read again; if it is gone for good, take it "
    "out of the partition keys",
    "transient": "its other parts are loaded, and this one when it answers again",
}
SILENT_AT_LEAST: Final = timedelta(minutes=30)
"""From the first look that had no answer for a part until somebody is alerted: what passes by itself wakes nobody."""


def told_unread(survey: Survey) -> tuple[str, ...]:
    return tuple(error.what for error in unread_parts(survey))


def unread_parts(survey: Survey) -> tuple[HakiriError, ...]:
    """Why a load of the table is not all that it should be. Of the same kinds as what the source has said."""
    away, label = survey.discovery.away, survey.table.label
    return tuple(type(error)(_told(part, error), where=label) for part, error in away.items())


def unread_alerts(survey: Survey, audit: AuditDb) -> Iterator[Alert]:
    """What has been silent only for a moment is remembered instead."""
    if not survey.source.hint.partition_keys:
        return
    table, away = survey.table, survey.discovery.away
    silent = [part.value for part, error in away.items() if error.kind == "transient"]
    for_long = audit.silent_parts.note(table.pipeline_id, table.name, silent)
    for part, error in away.items():
        if error.kind == "permanent" or for_long[part.value] >= SILENT_AT_LEAST:
            yield Alert("unread_part", _told(part, error), "error", {"reason": error.what}, subject=part.value)


def unread_part_of(survey: Survey, key: str) -> HakiriError | None:
    """Why a chunk is not known: it is of a part that was never read."""
    return _away_by_name(survey).get(part_name(key))


def tell_of_unread_parts(way: Way, survey: Survey) -> None:
    """Last, for what is recorded of the run does not keep hooks of the other parts from running."""

    def alert() -> None:
        for one in unread_alerts(survey, way.audit):
            raise_alert(way, one)

    way.totals.errors += unread_parts(survey)
    not_failing(way, alert)


def chunks_of_unread_parts(way: Way, survey: Survey, wanted: Wanted) -> Iterator[FailedChunk]:
    """Those that somebody asks for by name, and that owe something: nothing is claimed of them."""
    away = _away_by_name(survey)
    if not away:
        return
    settled = survey.published_by(wanted)
    if wanted.due_only:
        settled |= {state.key for state in survey.states if state.status == "done"}
    for key in wanted.keys:
        error = away.get(part_name(key))
        if error is not None and key not in settled:
            yield _not_even_claimed(way, key, error)


def _away_by_name(survey: Survey) -> dict[str, HakiriError]:
    """As keys begin."""
    return {name_of(part.value): error for part, error in survey.discovery.away.items()}


def _told(part: Part, error: HakiriError) -> str:
    return f"{part.column} {part.value} cannot be read: {error.what}; {_OUTLOOK[error.kind]}"


def _not_even_claimed(way: Way, key: str, error: HakiriError) -> FailedChunk:
    way.totals.note_failed(key, error)
    way.observer.failed(way.table, key, error)
    return FailedChunk(key, error)
