"""A PostgreSQL source, as one side of a comparison with the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from psycopg import Connection, sql
from psycopg.rows import TupleRow

from hakiri_dagster.connectors.postgres.catalog import Relation
from hakiri_dagster.connectors.postgres.config import SourceConfig
from hakiri_dagster.connectors.postgres.connection import source_transaction
from hakiri_dagster.connectors.postgres.cursors import Cursor
from hakiri_dagster.connectors.postgres.tallying import row_of
from hakiri_dagster.planning.verification import Buckets, ChunkTally, ComparableChunk
from hakiri_dagster.quality.table_comparison import (
    ComparedColumns,
    KeyText,
    RowHash,
    cut_into_batches,
)

_ROWS_A_FETCH: Final = 20_000
_ARRAY_TYPES: Final = {
    "int2": "int8", "int4": "int8", "int8": "int8", "oid": "int8", "numeric": "numeric",
    "date": "date", "timestamp": "timestamp", "timestamptz": "timestamptz",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceComparison:
    config: SourceConfig
    relation: Relation
    table: sql.Identifier
    by: Cursor | None
    columns: ComparedColumns
    label: str

    @property
    def most_queries(self) -> int:
        return self.config.max_connections

    def batches(self, chunks: Sequence[ComparableChunk], size: int) -> Sequence[Sequence[ComparableChunk]]:
        with source_transaction(self.config, self.label) as connection:
            return cut_into_batches(chunks, size, lambda windows: self._cost(connection, windows))

    def tally(self, chunks: Sequence[ComparableChunk]) -> Mapping[str, ChunkTally]:
        windows = [chunk for chunk in chunks if chunk.intervals]
        tallies: dict[str, ChunkTally] = {}
        with source_transaction(self.config, self.label) as connection:
            if windows:
                buckets = Buckets.of(windows)
                found = connection.execute(self._grouped(connection, buckets))
                tallies.update(buckets.tallies((bucket, rows, int(digest)) for bucket, rows, digest in found))
            for chunk in chunks:
                if not chunk.intervals:
                    statement = sql.SQL("SELECT count(*), {} FROM {}{}").format(
                        self._digest, self.table, self._where(self._within(chunk))
                    )
                    rows, digest = connection.execute(statement).fetchone() or (0, 0)
                    tallies[chunk.key] = ChunkTally(rows, int(digest))
        return tallies

    @contextmanager
    def row_hashes(self, chunk: ComparableChunk) -> Iterator[Iterator[RowHash]]:
        statement = sql.SQL("SELECT {}, {} FROM {}{} ORDER BY 1, 2").format(
            self._key_hash, self._value_hash, self.table, self._where(self._within(chunk))
        )
        with (
            source_transaction(self.config, self.label) as connection,
            connection.cursor(name="hakiri_hashes", binary=True) as cursor,
        ):
            cursor.itersize = _ROWS_A_FETCH
            cursor.execute(statement)
            yield (RowHash(key, values) for key, values in cursor)

    def keys(self, chunk: ComparableChunk, hashes: Sequence[int]) -> Sequence[KeyText]:
        texts = [sql.SQL("{}::{}::text").format(sql.Identifier(name), sql.SQL(form)) for name, form in self.columns.key]
        found = sql.SQL("{} = ANY({}::bigint[])").format(self._key_hash, sql.Literal(list(hashes)))
        statement = sql.SQL("SELECT {} FROM {}{}").format(
            sql.SQL(", ").join(texts), self.table, self._where(self._within(chunk), found)
        )
        with source_transaction(self.config, self.label) as connection:
            return connection.execute(statement).fetchall()

    def count_elsewhere(self, chunk: ComparableChunk, keys: Sequence[KeyText]) -> int:
        """The rows of the chunk have none of these keys, so a row that has one is elsewhere, or flagged as deleted."""
        names = [name for name, _ in self.columns.key]
        wanted = [sql.Identifier("wanted", f"key_{index}") for index in range(len(names))]
        natives = [column.native for name in names if (column := self.relation.column(name)) is not None]
        same = [
            sql.SQL("stored.{} = {}::{}").format(sql.Identifier(name), text, sql.SQL(native))
            for name, text, native in zip(names, wanted, natives, strict=True)
        ]
        statement = sql.SQL(
            "SELECT count(*) FROM ROWS FROM ({}) AS wanted({}) WHERE EXISTS (SELECT FROM {} AS stored WHERE {})"
        ).format(
            sql.SQL(", ").join(
                sql.SQL("pg_catalog.unnest({}::text[])").format(sql.Literal(list(texts)))
                for texts in zip(*keys, strict=True)
            ),
            sql.SQL(", ").join(sql.Identifier(f"key_{index}") for index in range(len(names))),
            self.table,
            sql.SQL(" AND ").join(same),
        )
        with source_transaction(self.config, self.label) as connection:
            (count,) = connection.execute(statement).fetchone() or (0,)
        return int(count)

    def _grouped(self, connection: Connection[TupleRow], buckets: Buckets) -> sql.Composed:
        """The edges are constants of the cursor's type: an expression would be computed for every row."""
        by, type_ = self._cursor, sql.SQL(_ARRAY_TYPES[self._cursor.type])
        edges = sql.SQL(
            "SELECT edges::text, edges[1]::text, edges[{}]::text FROM (SELECT ARRAY[{}]::{}[]) AS _ (edges)"
        )
        written, first, last = connection.execute(
            edges.format(len(buckets.edges), sql.SQL(", ").join(map(by.literal, buckets.edges)), type_)
        ).fetchone() or ("{}", None, None)
        compared = sql.SQL("{}::int8").format(by.identifier) if by.type == "oid" else by.identifier
        sides = [
            sql.SQL("{} {} {}::{}").format(compared, sql.SQL(operator), sql.Literal(edge), type_)
            for operator, edge, position in ((">=", first, buckets.hull.lower), ("<", last, buckets.hull.upper))
            if position is not None
        ]
        return sql.SQL("SELECT pg_catalog.width_bucket({}::{}, {}::{}[]), count(*), {} FROM {}{} GROUP BY 1").format(
            by.identifier,
            type_,
            sql.Literal(written),
            type_,
            self._digest,
            self.table,
            self._where(*sides, *([by.placed] if len(sides) < 2 else [])),
        )

    def _cost(self, connection: Connection[TupleRow], chunks: Sequence[ComparableChunk]) -> float:
        statement = self._grouped(connection, Buckets.of(chunks))
        (plan,) = connection.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(statement)).fetchone() or ([],)
        return float(plan[0]["Plan"]["Total Cost"])

    def _within(self, chunk: ComparableChunk) -> sql.Composable | None:
        return None if self.by is None else self.by.condition(chunk.bounds)

    def _where(self, *conditions: sql.Composable | None) -> sql.Composable:
        every = [one for one in (*conditions, self._not_deleted) if one is not None]
        return sql.SQL(" WHERE {}").format(sql.SQL(" AND ").join(every)) if every else sql.SQL("")

    @property
    def _cursor(self) -> Cursor:
        if self.by is None:
            raise AssertionError(f"{self.label} has no cursor, so it has no ranges of one")
        return self.by

    @property
    def _not_deleted(self) -> sql.Composable | None:
        flag = None if self.columns.hard_delete is None else self.relation.column(self.columns.hard_delete)
        if flag is None:
            return None
        name = sql.Identifier(flag.name)
        return sql.SQL("{} IS NOT TRUE" if flag.type == "bool" else "{} IS NULL").format(name)

    @property
    def _digest(self) -> sql.Composable:
        if not self.columns.values:
            return sql.SQL("0")
        return sql.SQL("coalesce(sum({}::numeric), 0)").format(self._value_hash)

    @property
    def _value_hash(self) -> sql.Composable:
        return sql.SQL("{}::bigint").format(row_of(self.columns.values, empty_as_null=self.columns.empty_as_null))

    @property
    def _key_hash(self) -> sql.Composable:
        return row_of(self.columns.key, empty_as_null=False) if self.columns.key else self._value_hash
