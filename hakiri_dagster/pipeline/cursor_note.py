"""`pipeline_cursor`: how far a table is read, for people and other programs. What is due follows from the chunks."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from hakiri_dagster.pipeline.shapes import cursor_of
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.way import Way
from hakiri_dagster.planning.chunks import CursorKind


def note_cursor(way: Way, survey: Survey) -> None:
    name, kind = cursor_of(way.table), survey.discovery.cursor_kind
    if name is None or kind is None:
        return
    reached = way.audit.chunks.reached(way.table.pipeline_id, way.table.name)
    if reached is not None:
        way.audit.cursors.put(way.table.pipeline_id, way.table.name, {name: shown_position(kind, reached)})


def shown_position(kind: CursorKind, position: int) -> str | int:
    """A position (`planning/chunks.py`) in the cursor's own terms. Years may have more than four digits."""
    match kind:
        case "timestamp":
            return f"{np.datetime64(position, 'us')}Z"
        case "date":
            return str(np.datetime64(position, "us").astype("datetime64[D]"))
        case "numeric":
            return position
        case _:
            assert_never(kind)
