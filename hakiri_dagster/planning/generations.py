"""Generations of a table's plan: cut otherwise, its chunks begin a new one; the old one's history stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hakiri_dagster.planning.chunks import Chunk, CursorKind
from hakiri_dagster.planning.states import ChunkState, Due
from hakiri_dagster.planning.windows import DEFAULT_ID_WINDOW, DEFAULT_TIME_WINDOW


def plan_text(kind: CursorKind, window: str | int | None) -> str:
    """How a plan was cut, to be compared with how it is cut now: `timestamp 1mo`."""
    default = DEFAULT_ID_WINDOW if kind == "numeric" else DEFAULT_TIME_WINDOW
    return f"{kind} {default if window is None else window}"


def parse_plan_text(text: str) -> tuple[CursorKind, str] | None:
    """None for plans without a cursor."""
    kind, _, window = text.partition(" ")
    match kind:
        case "timestamp" | "date" | "numeric":
            return kind, window
        case _:
            return None


def with_generation(due: Due, chunks: Sequence[Chunk], states: Sequence[ChunkState], changed: bool) -> Due:
    """New chunks belong to the newest generation; a plan that is cut anew is the next one, with all its chunks."""
    newest = max((state.generation for state in states), default=0) + (1 if changed else 0)
    if newest == 0:
        return due
    after = {state.key: state for state in states} | {state.key: state for state in due.states}
    planned = {chunk.key for chunk in chunks}
    moved = {
        key: replace(state, generation=newest)
        for key, state in after.items()
        if key in planned and state.generation != newest
    }
    others = [state for state in due.states if state.key not in moved]
    return replace(due, states=(*others, *moved.values()))
