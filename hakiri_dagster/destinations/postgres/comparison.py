"""A target in PostgreSQL, as one side of a comparison with its source: the rows that the table's own loads wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, LiteralString

from psycopg import sql

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN, Target
from hakiri_dagster.destinations.postgres import catalog
from hakiri_dagster.destinations.postgres.asked_rows import AskedRows
from hakiri_dagster.destinations.postgres.catalog import stored_name, target_of
from hakiri_dagster.destinations.postgres.connection import Connection, Connections, relation
from hakiri_dagster.destinations.postgres.conversion import Kind, kind_of
from hakiri_dagster.destinations.postgres.cursor_bounds import literal_of
from hakiri_dagster.destinations.postgres.cursor_order import cursor_type, unplaced
from hakiri_dagster.destinations.postgres.digesting import compared_forms, own_row
from hakiri_dagster.destinations.postgres.modes.registry import mode_of
from hakiri_dagster.destinations.postgres.quarantine import columns_of
from hakiri_dagster.destinations.postgres.quarantined import parameters, statement
from hakiri_dagster.destinations.postgres.types import parse_type
from hakiri_dagster.destinations.quarantine_contract import KeptChoice
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.planning.chunks import CursorRange, NullCursor, WholeTable
from hakiri_dagster.planning.verification import (
    Buckets,
    ChunkTally,
    ComparableChunk,
    QuarantinedRows,
)
from hakiri_dagster.quality.measures import Digest
from hakiri_dagster.quality.table_comparison import (
    ComparedColumns,
    Forms,
    KeyText,
    RowHash,
    cut_into_batches,
)

_ROWS_A_FETCH: Final = 20_000
_MOST_QUERIES: Final = 64
_ARRAY_TYPES: Final[Mapping[Kind, LiteralString]] = {
    "integer": "bigint", "numeric": "numeric", "float": "double precision", "date": "timestamp",
    "timestamp": "timestamp", "timestamptz": "timestamptz",
}  # fmt: skip

_OTHERS: LiteralString = """
SELECT EXISTS (SELECT FROM hakiri.ledger WHERE target = %s AND (pipeline_id, table_name) <> (%s, %s))
"""

# Rows of published loads that are not in the target. What a later load has read again is replaced.
_QUARANTINED: LiteralString = """
SELECT quarantined.load_id, quarantined.chunk_key, quarantined.cursor, count(*)
FROM (SELECT {chunkKey} AS chunk_key, {loadId}::bigint AS load_id, {cursor} AS cursor
      FROM {place} WHERE {chosen} AND coalesce({onFail}, 'skip') = 'skip') AS quarantined
JOIN hakiri.ledger ON ledger.load_id = quarantined.load_id AND ledger.chunk_key = quarantined.chunk_key
WHERE ledger.pipeline_id = %(pipeline)s AND ledger.table_name = %(table)s AND ledger.target = %(target)s
  AND ledger.superseded_by IS NULL
GROUP BY 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class TargetComparison:
    connections: Connections
    table: Table
    target: Target
    columns: ComparedColumns
    is_shared: bool
    """Loads of other tables go into the same target."""

    @classmethod
    def of(
        cls, connections: Connections, table: Table, names: Sequence[str], key: Sequence[str], *, with_values: bool
    ) -> TargetComparison | None:
        """None where there is no target. `names` are the source's columns that are loaded."""
        with connections.look(table.label) as connection:
            found = catalog.find(connection, table.target_schema, table.target_name)
            if found is None:
                return None
            named = (target_of(table), table.pipeline_id, table.name)
            is_shared = connection.execute(_OTHERS, named).fetchone() == (True,)
        place = found.target.schema, found.target.name
        rows = AskedRows(place, found.target, frozenset(mode_of(table).added_columns(table)))
        merged_by = mode_of(table).key(table)
        key = merged_by or key
        columns = ComparedColumns(
            cursor=None if table.whole_table else table.cursor,
            key=_forms(rows, key) if all(stored_name(name) in rows.types for name in key) else (),
            values=_forms(rows, names) if with_values else (),
            hard_delete=table.load.hard_delete,
            merges_by_key=bool(merged_by),
        )
        return cls(connections, table, found.target, columns, is_shared)

    @property
    def most_queries(self) -> int:
        return _MOST_QUERIES

    def batches(self, chunks: Sequence[ComparableChunk], size: int) -> Sequence[Sequence[ComparableChunk]]:
        with self.connections.look(self.table.label) as connection:
            return cut_into_batches(chunks, size, lambda windows: self._cost(connection, windows))

    def tally(self, chunks: Sequence[ComparableChunk]) -> Mapping[str, ChunkTally]:
        windows = [chunk for chunk in chunks if chunk.intervals]
        tallies: dict[str, ChunkTally] = {}
        with self.connections.look(self.table.label) as connection:
            connection.execute("SET LOCAL jit = off")
            if windows:
                buckets = Buckets.of(windows)
                found = connection.execute(self._grouped(connection, buckets))
                tallies.update(buckets.tallies((bucket, rows, int(digest)) for bucket, rows, digest in found))
            for chunk in chunks:
                if not chunk.intervals:
                    counted = sql.SQL("SELECT count(*), {} FROM {}{}").format(
                        self._digest, self._relation, self._where(self._within(chunk), self._own)
                    )
                    rows, digest = connection.execute(counted).fetchone() or (0, 0)
                    tallies[chunk.key] = ChunkTally(rows, int(digest))
        return tallies

    @contextmanager
    def row_hashes(self, chunk: ComparableChunk) -> Iterator[Iterator[RowHash]]:
        """Rows that others wrote are among them: a load that merges by key leaves an equal row as it is."""
        own = self._own or sql.SQL("true")
        hashes = sql.SQL("SELECT {}, {}, {} FROM {}{} ORDER BY 1, 2").format(
            self._key_hash, self._value_hash, own, self._relation, self._where(self._within(chunk))
        )
        with (
            self.connections.look(self.table.label) as connection,
            connection.cursor(name="hakiri_hashes", binary=True) as cursor,
        ):
            cursor.itersize = _ROWS_A_FETCH
            cursor.execute(hashes)
            yield (RowHash(*row) for row in cursor)

    def keys(self, chunk: ComparableChunk, hashes: Sequence[int]) -> Sequence[KeyText]:
        texts = [sql.SQL("{}::text").format(sql.Identifier(stored_name(name))) for name, _ in self.columns.key]
        found = sql.SQL("{} = ANY({}::bigint[])").format(self._key_hash, sql.Literal(list(hashes)))
        chosen = sql.SQL("SELECT {} FROM {}{}").format(
            sql.SQL(", ").join(texts), self._relation, self._where(self._within(chunk), found)
        )
        with self.connections.look(self.table.label) as connection:
            return connection.execute(chosen).fetchall()

    def count_elsewhere(self, chunk: ComparableChunk, keys: Sequence[KeyText]) -> int:
        """A version behind the chunk is newer than the source's row there. Of a history any version that holds counts:
        one that is equal to the version before it is not stored."""
        keeps_history = mode_of(self.table).current_flag is not None
        upper = chunk.intervals[-1].upper if chunk.intervals else None
        if not self.columns.merges_by_key or (chunk.intervals and upper is None and not keeps_history):
            return 0
        types = {column.name: column.type for column in self.target.columns}
        names = [stored_name(name) for name, _ in self.columns.key]
        wanted = [sql.Identifier("wanted", f"key_{index}") for index in range(len(names))]
        same = [
            sql.SQL("stored.{} = {}::{}").format(sql.Identifier(name), text, sql.SQL(types[name]))
            for name, text in zip(names, wanted, strict=True)
        ]
        if upper is not None and not keeps_history:
            same.append(sql.SQL("stored.{} >= {}").format(self._cursor, self._literal(upper)))
        counted = sql.SQL(
            "SELECT count(*) FROM ROWS FROM ({}) AS wanted({}) WHERE EXISTS (SELECT FROM {} AS stored{})"
        ).format(
            sql.SQL(", ").join(
                sql.SQL("pg_catalog.unnest({}::text[])").format(sql.Literal(list(texts)))
                for texts in zip(*keys, strict=True)
            ),
            sql.SQL(", ").join(sql.Identifier(f"key_{index}") for index in range(len(names))),
            self._relation,
            self._where(*same),
        )
        with self.connections.look(self.table.label) as connection:
            (count,) = connection.execute(counted).fetchone() or (0,)
        return int(count)

    def _grouped(self, connection: Connection, buckets: Buckets) -> sql.Composed:
        """The edges are constants of the cursor's type: an expression would be computed for every row."""
        type_ = self._array_type
        edges = sql.SQL(
            "SELECT edges::text, edges[1]::text, edges[{}]::text FROM (SELECT ARRAY[{}]::{}[]) AS _ (edges)"
        )
        written, first, last = connection.execute(
            edges.format(len(buckets.edges), sql.SQL(", ").join(map(self._literal, buckets.edges)), type_)
        ).fetchone() or ("{}", None, None)
        sides = [
            sql.SQL("{} {} {}::{}").format(self._cursor, sql.SQL(operator), sql.Literal(edge), type_)
            for operator, edge, position in ((">=", first, buckets.hull.lower), ("<", last, buckets.hull.upper))
            if position is not None
        ]
        if len(sides) < 2:
            sides.append(sql.SQL("NOT {}").format(self._unplaced))
        return sql.SQL("SELECT pg_catalog.width_bucket({}::{}, {}::{}[]), count(*), {} FROM {}{} GROUP BY 1").format(
            self._cursor,
            type_,
            sql.Literal(written),
            type_,
            self._digest,
            self._relation,
            self._where(*sides, self._own),
        )

    def _cost(self, connection: Connection, chunks: Sequence[ComparableChunk]) -> float:
        grouped = self._grouped(connection, Buckets.of(chunks))
        (plan,) = connection.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(grouped)).fetchone() or ([],)
        return float(plan[0]["Plan"]["Total Cost"])

    def _within(self, chunk: ComparableChunk) -> sql.Composable | None:
        ranges: list[sql.Composable] = []
        for bounds in chunk.bounds:
            match bounds:
                case CursorRange(interval):
                    sides = [sql.SQL("NOT {}").format(self._unplaced)]
                    if interval.lower is not None:
                        sides.append(sql.SQL("{} >= {}").format(self._cursor, self._literal(interval.lower)))
                    if interval.upper is not None:
                        sides.append(sql.SQL("{} < {}").format(self._cursor, self._literal(interval.upper)))
                    ranges.append(sql.SQL("({})").format(sql.SQL(" AND ").join(sides)))
                case NullCursor():
                    ranges.append(self._unplaced)
                case WholeTable():
                    return None
                case _:
                    raise AssertionError(f"{bounds} is not compared with a database")
        return sql.SQL("({})").format(sql.SQL(" OR ").join(ranges))

    def _where(self, *conditions: sql.Composable | None) -> sql.Composable:
        every = [one for one in (*conditions, self._current) if one is not None]
        return sql.SQL(" WHERE {}").format(sql.SQL(" AND ").join(every)) if every else sql.SQL("")

    @property
    def _relation(self) -> sql.Identifier:
        return relation(self.target.schema, self.target.name)

    @property
    def _current(self) -> sql.Composable | None:
        """Of a history the versions that still hold; without rows that are marked as deleted."""
        names = {column.name for column in self.target.columns}
        marker = self.table.load.soft_delete
        flag = mode_of(self.table).current_flag
        conditions: list[sql.Composable] = [] if flag is None else [sql.Identifier(flag)]
        if marker is not None and stored_name(marker) in names:
            conditions.append(sql.SQL("{} IS NULL").format(sql.Identifier(stored_name(marker))))
        return sql.SQL(" AND ").join(conditions) if conditions else None

    @property
    def _own(self) -> sql.Composable | None:
        """The rows that loads of this table wrote, those that the ledger has lost included."""
        load_id = sql.Identifier(LOAD_ID_COLUMN)
        if not any(column.name == LOAD_ID_COLUMN for column in self.target.columns):
            return None
        own = sql.SQL("{} IS NOT NULL").format(load_id)
        if not self.is_shared:
            return own
        others = sql.SQL(
            "({own} AND {load_id} NOT IN (SELECT ledger.load_id FROM hakiri.ledger WHERE ledger.target = {target}"
            " AND (ledger.pipeline_id, ledger.table_name) <> ({pipeline}, {table})))"
        )
        return others.format(
            own=own,
            load_id=load_id,
            target=sql.Literal(target_of(self.table)),
            pipeline=sql.Literal(self.table.pipeline_id),
            table=sql.Literal(self.table.name),
        )

    @property
    def _digest(self) -> sql.Composable:
        if not self.columns.values:
            return sql.SQL("0")
        return sql.SQL("coalesce(sum({}::numeric), 0)").format(self._value_hash)

    @property
    def _value_hash(self) -> sql.Composable:
        return own_row(self.columns.values) if self.columns.values else sql.SQL("0::bigint")

    @property
    def _key_hash(self) -> sql.Composable:
        return own_row(self.columns.key) if self.columns.key else self._value_hash

    @property
    def _cursor(self) -> sql.Identifier:
        if self.table.cursor is None:
            raise AssertionError(f"{self.table.label} has no cursor, so it has no ranges of one")
        return sql.Identifier(stored_name(self.table.cursor))

    @property
    def _cursor_type(self) -> str:
        return cursor_type(self.target, self.table.cursor or "") or ""

    @property
    def _array_type(self) -> sql.SQL:
        type_ = parse_type(self._cursor_type)
        name = None if type_ is None else _ARRAY_TYPES.get(kind_of(type_))
        if name is None:
            raise self._not_comparable()
        return sql.SQL(name)

    @property
    def _unplaced(self) -> sql.Composable:
        return unplaced(self._cursor, self._cursor_type)

    def _literal(self, position: int) -> sql.Composable:
        literal = literal_of(self._cursor_type, position)
        if literal is None:
            raise self._not_comparable()
        return literal

    def _not_comparable(self) -> DestinationError:
        return DestinationError(
            f"the cursor {self.table.cursor} is {self._cursor_type or 'missing'} in the target",
            where=self.table.label,
            hint="chunks are compared by a date, a time or a number only",
        )


def quarantined_rows(connection: Connection, table: Table) -> Iterator[QuarantinedRows]:
    """Yield the quarantined rows of loads that stand, by the text of their cursor."""
    known = columns_of(connection, *table.quarantine_table)
    if not {"chunkKey", "loadId"} <= known:
        return
    cursor = sql.SQL('"row" ->> %(cursor)s::text')
    values = parameters(table, KeptChoice()) | {"cursor": table.cursor}
    with connection.cursor(name="hakiri_quarantined") as rows:
        rows.itersize = _ROWS_A_FETCH
        rows.execute(statement(_QUARANTINED, table, known, cursor=cursor), values)
        for row in rows:
            yield QuarantinedRows(*row)


def _forms(rows: AskedRows, names: Sequence[str]) -> Forms:
    """Columns that the target has, and whose values both sides can hash."""
    present = tuple(name for name in names if stored_name(name) in rows.types)
    return compared_forms(rows, Digest(present, portable=False)) if present else ()
