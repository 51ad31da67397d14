"""The sensor that takes messages off queues and stores them as deliveries. It starts no run itself."""

# No `from __future__ import annotations` here: Dagster reads the annotations of decorated functions.
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dagster as dg

from hakiri_dagster.audit.alerts import Alert, Severity
from hakiri_dagster.audit.database import AuditDb, open_audit
from hakiri_dagster.errors import AuditError, HakiriError, QueueUnavailable
from hakiri_dagster.manifest.tables import Project
from hakiri_dagster.orchestration.names import QUEUES
from hakiri_dagster.settings import Settings
from hakiri_dagster.triggers.intake import Foreign, take_in, told_of_foreign
from hakiri_dagster.triggers.registry import SharedQueue, open_queue, queues_of

SECONDS_BETWEEN_LOOKS = 20
SECONDS_A_TICK = 25
_IDS_TOLD = 20
_LONGEST_REST = 3600


def queue_sensors(project: Project, settings: Settings) -> list[dg.SensorDefinition]:
    """None where no pipeline has a queue among its triggers."""
    queues = queues_of(project.pipelines)
    return [_queue_sensor(project, queues, settings)] if queues else []


def _queue_sensor(project: Project, queues: Sequence[SharedQueue], settings: Settings) -> dg.SensorDefinition:
    rests: dict[int, float] = {}

    @dg.sensor(
        name=QUEUES,
        minimum_interval_seconds=SECONDS_BETWEEN_LOOKS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Takes messages off queues, and stores them as deliveries before it deletes them.",
        asset_selection=dg.AssetSelection.all(),
    )
    def fetch(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        end = time.monotonic() + SECONDS_A_TICK
        told: list[str] = []
        begin = _turn(context.cursor, len(queues))
        with open_audit(project.audit_url, project.state_dir) as audit:
            for number in range(len(queues)):
                if time.monotonic() >= end:
                    break
                place = (begin + number) % len(queues)
                context.update_cursor(str(place + 1))  # whoever comes late is the first in the next tick
                if time.monotonic() < rests.get(place, 0):
                    continue
                fetched = fetch_from(queues[place], settings, audit, end, context.log.warning)
                rests[place] = time.monotonic() + fetched.rest
                told.append(fetched.told)
        return dg.SkipReason("; ".join(told) or "every queue asked to be left alone")

    return fetch


@dataclass(frozen=True, slots=True)
class Fetched:
    """`rest`: for how many seconds the queue asks to be left alone."""

    told: str
    rest: float = 0


def fetch_from(
    shared: SharedQueue, settings: Settings, audit: AuditDb, end: float, log: Callable[[str], None]
) -> Fetched:
    """One queue's trouble is an alert of its pipelines, and does not concern the others."""
    queue = open_queue(shared.trigger, settings)

    def tell(foreign: Sequence[Foreign]) -> None:
        message = told_of_foreign(queue, foreign)
        log(message)
        ids = [one.message.id for one in foreign[:_IDS_TOLD]]
        _raise(audit, shared, Alert("foreign_message", message, details={"ids": ids}, subject=queue.name))

    try:
        taken = take_in(queue, shared.readers, audit.deliveries, end=end, tell=tell)
        if taken.refused is not None:
            raise taken.refused
    except AuditError:
        raise  # nothing is deleted that is not stored, and no alert can be either
    except HakiriError as error:
        log(str(error))
        _raise(audit, shared, Alert("queue_trouble", str(error), severity=_severity(error), subject=queue.name))
        rest = (error.retry_after or 0) if isinstance(error, QueueUnavailable) else 0
        return Fetched(f"{queue.name}: {error.what}", min(rest, _LONGEST_REST))
    finally:
        queue.close()
    return Fetched(f"{queue.name}: {taken.summary}")


def _severity(error: HakiriError) -> Severity:
    return "warning" if error.kind == "transient" else "error"


def _raise(audit: AuditDb, shared: SharedQueue, alert: Alert) -> None:
    """Of a pipeline as a whole, so of no table."""
    for pipeline_id in dict.fromkeys(reader.pipeline_id for reader in shared.readers):
        audit.alerts.raise_(pipeline_id, "", alert, None)


def _turn(cursor: str | None, queues: int) -> int:
    return int(cursor) % queues if cursor and cursor.isdigit() else 0
