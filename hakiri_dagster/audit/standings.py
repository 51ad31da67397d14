"""What tables owe their sources, as the audit DB knows of their newest plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, func, select, tuple_

from hakiri_dagster.audit.chunk_rows import NOTHING, bounds_from_json, number_from_text
from hakiri_dagster.audit.schema import PIPELINE_CHUNKS, TABLE_STATE
from hakiri_dagster.planning.chunks import CursorRange
from hakiri_dagster.planning.generations import parse_plan_text
from hakiri_dagster.planning.phases import Owed, Standing

_C: Final = PIPELINE_CHUNKS.c
_OWED: Final = ("pending", "running", "failed")
IN_PLAN: Final = ("done", *_OWED)
_TOLD: Final = (
    "table_name", "predicate", "cursor_committed", "load_id", "carried_from", "completed_at", "rewind_id", "gap",
)  # fmt: skip


def in_newest_plan(pipeline_id: str) -> tuple[ColumnElement[bool], ...]:
    """Chunks of an earlier plan of a table say nothing of its progress any more."""
    of_pipeline = _C.pipeline_id == pipeline_id
    newest = select(_C.table_name, func.max(_C.generation)).where(of_pipeline).group_by(_C.table_name)
    return of_pipeline, tuple_(_C.table_name, _C.generation).in_(newest), _C.status.in_(IN_PLAN)


def standings(connection: Connection, pipeline_id: str, chunks: Mapping[str, int]) -> dict[str, Standing]:
    """By table, as it was last looked at. `chunks`: how many there are of each. Of a hundred thousand that are owed no
    more is read than it takes."""
    query = select(*(_C[name] for name in _TOLD)).where(*in_newest_plan(pipeline_id), _C.status.in_(_OWED))
    owed: dict[str, list[Owed]] = {}
    for row in connection.execute(query):
        owed.setdefault(row.table_name, []).append(_owed(row))
    looks = connection.execute(select(TABLE_STATE).where(TABLE_STATE.c.pipeline_id == pipeline_id)).all()
    known = {look.table_name: look for look in looks}
    return {table: _standing(count, owed.get(table, []), known.get(table)) for table, count in chunks.items()}


def _owed(row: Row[Any]) -> Owed:
    mark = number_from_text(row.cursor_committed)
    return Owed.told(
        mark=mark,
        lower=None if mark is not None else _lower(row.predicate),
        loaded=row.load_id is not None or row.carried_from != NOTHING,
        again=row.rewind_id is not None or bool(row.gap),
        completed_at=row.completed_at,
    )


def _lower(predicate: str) -> int | None:
    bounds = bounds_from_json(predicate)
    return bounds.interval.lower if isinstance(bounds, CursorRange) else None


def _standing(chunks: int, owed: Sequence[Owed], look: Row[Any] | None) -> Standing:
    if look is None:
        return Standing(chunks, owed)
    planned = parse_plan_text(look.plan)
    kind = None if planned is None else planned[0]
    return Standing(chunks, owed, kind, number_from_text(look.source_upper), look.planned_at)
