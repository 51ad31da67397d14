"""Alerts on the way: into the audit DB, to the observer, and among the run's steps, from which the UI shows them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from hakiri_dagster.audit.alerts import Alert
from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.retries import retried
from hakiri_dagster.pipeline.way import Observer, Way

Step = TypeVar("Step")


@dataclass(frozen=True, slots=True)
class RaisedAlert:
    alert: Alert


def raise_alert(way: Way, alert: Alert) -> None:
    """May be called wherever a run has something to say. Never makes it fail."""
    _tell(way.observer, way.table, alert)
    way.raised.append(alert)
    told = way.audit.alerts.raise_
    not_failing(way, lambda: retried(way, lambda: told(way.table.pipeline_id, way.table.name, alert, way.run_id)))


def raise_alert_without_run(audit: AuditDb, observer: Observer, table: Table, alert: Alert) -> None:
    """Of what is found out before there is a run, and is why there is none."""
    _tell(observer, table, alert)
    try:
        audit.alerts.raise_(table.pipeline_id, table.name, alert, None)
    except HakiriError as error:
        observer.warned(table, _unrecorded(error))


def not_failing(way: Way, work: Callable[[], object]) -> None:
    """What is only told of a load does not undo it."""
    try:
        work()
    except HakiriError as error:
        way.observer.warned(way.table, _unrecorded(error))
        way.log(f"{way.table.label}: {_unrecorded(error)}")


def with_alerts(way: Way, steps: Generator[Step]) -> Iterator[Step | RaisedAlert]:
    """The steps of a run, and between them the alerts that were raised meanwhile."""
    try:
        with closing(steps):
            for step in steps:
                yield from _raised(way)
                yield step
    except HakiriError:
        yield from _raised(way)
        raise
    yield from _raised(way)


def _raised(way: Way) -> Iterator[RaisedAlert]:
    while way.raised:
        yield RaisedAlert(way.raised.popleft())


def _tell(observer: Observer, table: Table, alert: Alert) -> None:
    observer.warned(table, alert.message)


def _unrecorded(error: HakiriError) -> str:
    return f"an alert could not be recorded: {error.what}"
