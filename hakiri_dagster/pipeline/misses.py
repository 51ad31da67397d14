"""A source that comes up empty: `load.on_miss_action = "alert"`.

A table that is loaded whole is empty when its load read no row; one of files when a run loaded some and none held a
row; one with a cursor when the source holds no row at all, for a window without rows is nothing unusual. A path that
leads to no file is empty as well, although it is an error besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hakiri_dagster.audit.alerts import Alert
from hakiri_dagster.errors import HakiriError, NothingThere
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.alerts import raise_alert
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.way import Way


def miss_found(table: Table, found: Survey | HakiriError) -> Alert | None:
    """What looking at the source tells, before anything is read."""
    if not _asked_for(table):
        return None
    if isinstance(found, HakiriError):
        return _alert(table, found.what) if isinstance(found, NothingThere) else None
    extent = found.discovery.extent
    if found.shape != "cursor" or extent is None or extent.upper is not None or extent.nulls:
        return None
    return _alert(table, "it holds no row")


@contextmanager
def misses_told(way: Way) -> Iterator[None]:
    """Around the look at the source."""
    try:
        yield
    except NothingThere as error:
        _raise(way, miss_found(way.table, error))
        raise


def tell_of_a_miss(way: Way, survey: Survey) -> None:
    """After the loads, those included that were refused because of it."""
    read = way.totals.rows_read
    windows = survey.shape in ("cursor", "segments")  # the last may well be empty
    if not windows and read and not any(read) and _asked_for(way.table):
        _raise(way, _alert(way.table, "0 rows were read"))
    else:
        _raise(way, miss_found(way.table, survey))


def _asked_for(table: Table) -> bool:
    return table.load.on_miss_action == "alert"


def _alert(table: Table, why: str) -> Alert:
    return Alert("empty_source", f"the source came up empty: {why}", details={"mode": table.mode, "reason": why})


def _raise(way: Way, alert: Alert | None) -> None:
    if alert is not None:
        raise_alert(way, alert)
