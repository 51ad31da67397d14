"""Changes of a source that stop its table: written down once, and told to whoever looks after it."""

from __future__ import annotations

from collections.abc import Iterator

from hakiri_dagster.audit.alerts import Alert
from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.pipeline.alerts import raise_alert, raise_alert_without_run
from hakiri_dagster.pipeline.evolution import note_refused, told
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.way import Observer, Way


def tell_of_refused_changes(way: Way, survey: Survey) -> None:
    note_refused(way.audit, way.table, survey.refused_changes, run_id=way.run_id)
    for alert in _alerts(survey):
        raise_alert(way, alert)


def tell_of_refused_changes_without_run(audit: AuditDb, observer: Observer, survey: Survey) -> None:
    """They are why there is none."""
    note_refused(audit, survey.table, survey.refused_changes)
    for alert in _alerts(survey):
        raise_alert_without_run(audit, observer, survey.table, alert)


def _alerts(survey: Survey) -> Iterator[Alert]:
    for change in survey.refused_changes:
        details = {"change": change.kind, "from": change.before, "to": change.after}
        yield Alert("schema_change", f"nothing is loaded: {told(change)}", details=details, subject=change.column)
