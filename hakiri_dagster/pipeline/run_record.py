"""`pipeline_run`: what ran and how it ended, whatever the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from hakiri_dagster.engine.process_identity import is_dead
from hakiri_dagster.errors import EngineError, HakiriError
from hakiri_dagster.pipeline.way import Totals, Way


@contextmanager
def recorded(way: Way) -> Iterator[None]:
    table = way.table
    way.audit.runs.start(
        way.run_id,
        table.pipeline_id,
        table.name,
        holder=way.holder,
        holder_is_dead=is_dead,
        trace_id=way.trace.trace_id,
    )
    try:
        yield
    except HakiriError as error:
        way.totals.errors.append(error)
        way.observer.stopped(table, error)
        raise
    except BaseException:
        way.totals.errors.append(EngineError("the run was interrupted", where=table.label, hint="apply again"))
        raise
    finally:
        _finish(way)


def _finish(way: Way) -> None:
    totals = way.totals
    first = totals.errors[0] if totals.errors else None
    way.audit.runs.finish(
        way.run_id,
        way.table.pipeline_id,
        way.table.name,
        status=_status(totals),
        rows=totals.rows,
        bytes_=totals.bytes,
        error_kind=first.kind if first else None,
        error_message=str(first) if first else None,
    )


def _status(totals: Totals) -> Literal["success", "failed", "partial"]:
    if not totals.errors:
        return "success"
    return "partial" if totals.chunks else "failed"
