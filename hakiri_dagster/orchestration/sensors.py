"""Sensors that put right what was killed, and pass alerts on. With nothing to do, a tick of theirs is one query."""

# No `from __future__ import annotations` here: Dagster reads the annotations of decorated functions.
import dagster as dg

from hakiri_dagster.orchestration.killed_runs import end_killed_runs
from hakiri_dagster.orchestration.names import ALERTS, KILLED_RUNS, STALE_LEASES
from hakiri_dagster.orchestration.resources import OpenProject

SECONDS_BETWEEN_LOOKS_AT_RUNS = 30
SECONDS_BETWEEN_LOOKS_AT_LEASES = 30
SECONDS_BETWEEN_LOOKS_AT_ALERTS = 30


@dg.sensor(
    name=KILLED_RUNS,
    minimum_interval_seconds=SECONDS_BETWEEN_LOOKS_AT_RUNS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Ends runs whose process was killed: they would hold their table and a place among all runs for ever.",
)
def killed_runs(context: dg.SensorEvaluationContext, project: dg.ResourceParam[OpenProject]) -> dg.SkipReason:
    ended = end_killed_runs(context.instance, project.other_hosts)
    return dg.SkipReason(f"ended {', '.join(ended)}" if ended else "no run of a killed process")


@dg.sensor(
    name=STALE_LEASES,
    minimum_interval_seconds=SECONDS_BETWEEN_LOOKS_AT_LEASES,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Takes chunks back from processes that were killed, and from holders whose lease has ended; ends what"
    " they left at work in the destination, and removes their files.",
)
def stale_leases(context: dg.SensorEvaluationContext, project: dg.ResourceParam[OpenProject]) -> dg.SkipReason:
    swept = project.sweep_leases()
    for error in swept.failures:
        context.log.error(str(error))
    return dg.SkipReason(swept.summary)


@dg.sensor(
    name=ALERTS,
    minimum_interval_seconds=SECONDS_BETWEEN_LOOKS_AT_ALERTS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Passes alerts on: to this sensor's log, and to HAKIRI_ALERT_WEBHOOK_URL if that is set.",
)
def alerts(context: dg.SensorEvaluationContext, project: dg.ResourceParam[OpenProject]) -> dg.SkipReason:
    told = project.pass_alerts_on(context.log.warning, context.instance)
    return dg.SkipReason(told.summary)
