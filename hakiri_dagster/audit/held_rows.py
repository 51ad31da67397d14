"""Rows of `pipeline_chunks` under a lock, and the guard: only the attempt that holds a chunk may change it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, bindparam, select, update

from hakiri_dagster.audit.chunk_rows import Values
from hakiri_dagster.audit.claims import Claim
from hakiri_dagster.audit.schema import PIPELINE_CHUNKS
from hakiri_dagster.errors import LeaseLost

_C: Final = PIPELINE_CHUNKS.c
_KEYS_A_QUERY: Final = 1000


def of_table(pipeline_id: str, table: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return _C.pipeline_id == pipeline_id, _C.table_name == table


def locked_rows(
    connection: Connection,
    pipeline_id: str,
    table: str,
    keys: Sequence[str],
    *also: ColumnElement[Any],
    skip_locked: bool = False,
) -> dict[str, Row[Any]]:
    """In key order, so that two that lock several rows do not wait for each other; SQLite's writers are alone. Each
    row answers `also`, too."""
    found: dict[str, Row[Any]] = {}
    ordered = sorted(keys)
    for start in range(0, len(ordered), _KEYS_A_QUERY):
        query = (
            select(PIPELINE_CHUNKS, *also)
            .where(*of_table(pipeline_id, table), _C.chunk_id.in_(ordered[start : start + _KEYS_A_QUERY]))
            .order_by(_C.chunk_id)
            .with_for_update(skip_locked=skip_locked)
        )
        found.update((row.chunk_id, row) for row in connection.execute(query))
    return found


def rows_of_claims(connection: Connection, claims: Iterable[Claim]) -> list[tuple[Claim, Row[Any] | None]]:
    pairs: list[tuple[Claim, Row[Any] | None]] = []
    for (pipeline_id, table), group in groupby(sorted(claims, key=_table_of), key=_table_of):
        of_one = list(group)
        rows = locked_rows(connection, pipeline_id, table, [claim.key for claim in of_one])
        pairs.extend((claim, rows.get(claim.key)) for claim in of_one)
    return pairs


def holds(claim: Claim, row: Row[Any] | None) -> bool:
    return (
        row is not None
        and row.status == "running"
        and row.holder_node == claim.holder
        and row.attempts == claim.attempt
    )


def require_held(claim: Claim, row: Row[Any] | None) -> Row[Any]:
    if row is not None and holds(claim, row):
        return row
    raise LeaseLost(
        f"attempt {claim.attempt} no longer holds this chunk"
        if row is not None
        else "the chunk is not in the audit DB",
        where=claim.label,
        hint="another worker took it over; its result counts, and this attempt changes nothing",
    )


def update_rows(connection: Connection, changes: Sequence[tuple[Claim, Values]]) -> None:
    """All of them have the same columns. The rows are locked, so the guard has been checked for good."""
    if not changes:
        return
    statement = update(PIPELINE_CHUNKS).where(
        _C.pipeline_id == bindparam("of_pipeline"),
        _C.table_name == bindparam("of_table"),
        _C.chunk_id == bindparam("of_chunk"),
    )
    connection.execute(
        statement.values({name: bindparam(f"new_{name}") for name in changes[0][1]}),
        [
            {
                "of_pipeline": claim.pipeline_id,
                "of_table": claim.table,
                "of_chunk": claim.key,
                **{f"new_{name}": value for name, value in values.items()},
            }
            for claim, values in changes
        ],
    )


def _table_of(claim: Claim) -> tuple[str, str]:
    return claim.pipeline_id, claim.table
