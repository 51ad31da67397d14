"""Chunk states as rows of `pipeline_chunks`, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, assert_never

from sqlalchemy import Row, and_

from hakiri_dagster.audit.schema import PIPELINE_CHUNKS
from hakiri_dagster.errors import AuditTooNew
from hakiri_dagster.planning.chunks import (
    Bounds,
    CursorRange,
    Interval,
    NullCursor,
    Part,
    Segment,
    SourceFile,
    WholeTable,
)
from hakiri_dagster.planning.intervals import Intervals
from hakiri_dagster.planning.states import ChunkState

Values = dict[str, Any]

KILLED = "killed"
"""The `error_kind` of a chunk whose attempt did not end by itself."""

WAS_KILLED = and_(PIPELINE_CHUNKS.c.status == "failed", PIPELINE_CHUNKS.c.error_kind == KILLED)

_C: Final = PIPELINE_CHUNKS.c
OF_A_STATE: Final = (
    _C.chunk_id, _C.predicate, _C.status, _C.attempts, _C.generation, _C.covered, _C.cursor_committed, _C.seen,
    _C.attempt_seen, _C.rows, _C.bytes, _C.load_id, _C.winning_attempt, _C.carried_from, _C.supersedes,
    _C.completed_at, _C.rewind_id, _C.token, _C.gap, _C.error_kind,
)  # fmt: skip

NOTHING = "[]"
_SHOWN = 200


def to_values(pipeline_id: str, table: str, state: ChunkState) -> Values:
    return {
        "pipeline_id": pipeline_id,
        "table_name": table,
        "chunk_id": state.key,
        "generation": state.generation,
        "predicate": bounds_to_json(state.bounds),
        "status": state.status,
        "attempts": state.attempts,
        "completed_at": state.completed_at,
        "cursor_committed": number_to_text(state.cursor_committed),
        "covered": intervals_to_json(state.covered),
        "seen": state.seen,
        "attempt_seen": state.attempt_seen,
        "rows": state.rows,
        "bytes": state.bytes,
        "winning_attempt": state.winner,
        "load_id": state.load_id,
        "carried_from": _list_to_json(state.carried_from),
        "supersedes": _list_to_json(state.supersedes),
        "rewind_id": state.rewind,
        "gap": int(state.gap),
        "token": state.token,
    }


def from_row(row: Row[Any]) -> ChunkState:
    """Of a row that has other columns, too."""
    by_column = row._mapping
    return from_values([by_column[column] for column in OF_A_STATE])


def from_values(values: Sequence[Any]) -> ChunkState:
    """Of the columns `OF_A_STATE`. Of a hundred thousand rows these are read in half the time that names take."""
    (
        key, predicate, status, attempts, generation, covered, mark, seen,
        attempt_seen, rows, size, load_id, winner, carried_from, supersedes,
        completed_at, rewind, token, gap, error_kind,
    ) = values  # fmt: skip
    return ChunkState(
        key=key,
        bounds=bounds_from_json(predicate),
        status=status,
        attempts=attempts,
        generation=generation,
        covered=intervals_from_json(covered),
        cursor_committed=number_from_text(mark),
        seen=seen,
        attempt_seen=attempt_seen,
        rows=rows,
        bytes=size,
        winner=winner,
        load_id=load_id,
        carried_from=tuple(_list_from_json(carried_from)),
        supersedes=tuple(_list_from_json(supersedes)),
        completed_at=completed_at,
        rewind=rewind,
        gap=bool(gap),
        token=token,
        killed=status == "failed" and error_kind == KILLED,
    )


def bounds_to_json(bounds: Bounds) -> str:
    match bounds:
        case CursorRange(Interval(lower, upper), part):
            return json.dumps({"cursor": [lower, upper], **_part_to_json(part)})
        case NullCursor(part):
            return json.dumps({"cursor": None, **_part_to_json(part)})
        case SourceFile(path, content_hash):
            return json.dumps({"file": path, "hash": content_hash})
        case Segment(number, after):
            return json.dumps({"segment": number, "after": after})
        case WholeTable():
            return "{}"
        case _:
            assert_never(bounds)


def bounds_from_json(text: str) -> Bounds:
    match json.loads(text):
        case {"cursor": [lower, upper], "part": [column, value]}:
            return CursorRange(Interval(lower, upper), Part(column, value))
        case {"cursor": [lower, upper]}:
            return CursorRange(Interval(lower, upper))
        case {"cursor": None, "part": [column, value]}:
            return NullCursor(Part(column, value))
        case {"cursor": None}:
            return NullCursor()
        case {"segment": number, "after": after}:
            return Segment(number, after)
        case {"file": path, "hash": content_hash}:
            return SourceFile(path, content_hash)
        case dict() as nothing if not nothing:
            return WholeTable()
        case _:
            raise AuditTooNew(
                f"the audit DB holds a chunk with bounds of an unknown kind: {text[:_SHOWN]}",
                hint="a newer version has written it: upgrade hakiri-dagster on this machine",
            )


def _part_to_json(part: Part | None) -> dict[str, list[str]]:
    return {} if part is None else {"part": [part.column, part.value]}


def intervals_to_json(intervals: Intervals) -> str:
    return _list_to_json([(part.lower, part.upper) for part in intervals])


def intervals_from_json(text: str) -> Intervals:
    return tuple(Interval(lower, upper) for lower, upper in _list_from_json(text))


def _list_to_json(values: Sequence[Any]) -> str:
    """Of a hundred thousand chunks nearly all have nothing to list."""
    return json.dumps(values) if values else NOTHING


def _list_from_json(text: str) -> list[Any]:
    return [] if text == NOTHING else list(json.loads(text))


def number_to_text(number: int | None) -> str | None:
    return None if number is None else str(number)


def number_from_text(text: str | None) -> int | None:
    return None if text is None else int(text)
