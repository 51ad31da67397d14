"""How one reading is cut into parts that Spark's tasks read at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from psycopg import Connection, sql
from psycopg.rows import TupleRow

from hakiri_dagster.connectors.postgres.catalog import Relation
from hakiri_dagster.connectors.postgres.cursors import Cursor, edges
from hakiri_dagster.planning.chunks import Interval

PART_BYTES = 32 * 1024 * 1024
_BLOCK_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Selection:
    """What is read: the columns as they travel, the table, and the rows of the slices (None: all)."""

    columns: sql.Composable
    table: sql.Identifier
    condition: sql.Composable | None

    def where(self, *conditions: sql.Composable | None) -> sql.Composed:
        every = [condition for condition in (self.condition, *conditions) if condition is not None]
        statement = sql.SQL("SELECT {} FROM {}").format(self.columns, self.table)
        return statement + sql.SQL(" WHERE {}").format(sql.SQL(" AND ").join(every)) if every else statement


def parts(
    connection: Connection[TupleRow], selection: Selection, relation: Relation, cursor: Cursor | None, most: int
) -> list[sql.Composed]:
    """The statements that together read every selected row once.

    The planner knows whether an index leads to few rows: then the cursor is cut, else the table's blocks are.
    Asking it also locks the table against DROP and ALTER for as long as the transaction lives.
    """
    plan = _plan(connection, selection.where())
    scans_all = any(node["Node Type"] == "Seq Scan" for node in _nodes(plan))
    if relation.block_readable and scans_all:
        count = _count(sum(relation.blocks) * _BLOCK_BYTES, most)
        return [selection.where(condition) for condition in block_ranges(relation.blocks, count)]
    if cursor is not None and selection.condition is not None and not scans_all:
        count = _count(plan["Plan Rows"] * plan["Plan Width"], most)
        edge = edges(connection, selection.table, cursor, selection.condition) if count > 1 else None
        if edge:
            return [selection.where(condition) for condition in cursor_ranges(cursor, *edge, count)]
    return [selection.where()]


def _count(size: int, most: int) -> int:
    return max(1, min(most, round(size / PART_BYTES)))


def block_ranges(blocks: Sequence[int], count: int) -> list[sql.Composable | None]:
    """Half-open ranges of block numbers, the last one open.

    Each range is read from every heap that the table is made of, so the cuts are those of all heaps laid side by side.
    """
    if count == 1:
        return [None]
    cuts = [_block_at(blocks, sum(blocks) * part // count) for part in range(1, count)]
    ends = [0, *sorted(set(cuts) - {0}), None]
    return [_blocks(lower or 0, upper) for lower, upper in pairwise(ends)]


def _block_at(blocks: Sequence[int], wanted: int) -> int:
    """The lowest block number before which the heaps together have as many blocks as wanted."""
    low, high = 0, max(blocks)
    while low < high:
        middle = (low + high) // 2
        if sum(min(heap, middle) for heap in blocks) < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def _blocks(lower: int, upper: int | None) -> sql.Composable:
    above = sql.SQL("ctid >= {}").format(sql.Literal(f"({lower},0)"))
    if upper is None:
        return above
    return above + sql.SQL(" AND ctid < {}").format(sql.Literal(f"({upper},0)"))


def cursor_ranges(cursor: Cursor, lowest: int, highest: int, count: int) -> list[sql.Composable]:
    """Ranges of equal width, open at both ends; rows without a position come with the first."""
    span = highest + 1 - lowest
    cuts = sorted({lowest + span * part // count for part in range(1, count)} - {lowest})
    ends = [None, *cuts, None]
    ranges = [cursor.within(Interval(lower, upper)) for lower, upper in pairwise(ends)]
    ranges[0] = sql.SQL("({} OR {})").format(ranges[0], cursor.unplaced)
    return ranges


def _plan(connection: Connection[TupleRow], statement: sql.Composed) -> Mapping[str, Any]:
    row = connection.execute(sql.SQL("EXPLAIN (FORMAT JSON) ") + statement).fetchone()
    assert row is not None, "EXPLAIN always answers one row"
    plan: Mapping[str, Any] = row[0][0]["Plan"]
    return plan


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
