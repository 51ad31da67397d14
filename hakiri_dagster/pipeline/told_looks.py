"""What is told of a look that no run follows; a run tells by itself."""

from __future__ import annotations

from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.alerts import raise_alert_without_run
from hakiri_dagster.pipeline.long_transactions import find_long_transactions
from hakiri_dagster.pipeline.misses import miss_found
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.unread_parts import unread_alerts, unread_parts


def tell_of_a_look(runtime: Runtime, table: Table, found: Survey | HakiriError) -> None:
    """The source gives no reason to start a run, or an error keeps it from starting."""
    if isinstance(found, HakiriError):
        runtime.audit.runs.refused(table.pipeline_id, table.name, found.kind, str(found))
    else:
        tell_of_parts(runtime, found)
    alert = miss_found(table, found)
    if alert is not None:
        raise_alert_without_run(runtime.audit, runtime.observer, table, alert)


def tell_of_parts(runtime: Runtime, survey: Survey) -> None:
    """Of those that could not be read, and of what keeps the source's cursor back."""
    table = survey.table
    for alert in (
        *unread_alerts(survey, runtime.audit),
        *(one.alert for one in find_long_transactions(table, survey.discovery)),
    ):
        raise_alert_without_run(runtime.audit, runtime.observer, table, alert)
    for error in unread_parts(survey)[:1]:
        runtime.audit.runs.refused(table.pipeline_id, table.name, error.kind, str(error))
