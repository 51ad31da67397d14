"""One small shop in a fresh database, and the shortest way to load rows into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa

from hakiri_dagster.destinations.contract import (
    INGESTED_AT_COLUMN,
    KEPT_ID_COLUMN,
    LOAD_ID_COLUMN,
    SOURCE_FILE_HASH_COLUMN,
    Fence,
    LedgerEntry,
    Load,
    PreparedLoad,
)
from hakiri_dagster.destinations.postgres.destination import PostgresDestination, open_destination
from hakiri_dagster.manifest.load_spec import LoadMode, LoadSpec
from hakiri_dagster.manifest.spec import BackfillSpec, ValidateSpec
from hakiri_dagster.manifest.tables import Endpoint, Origin, Table
from hakiri_dagster.planning.arrow_types import arrow_type
from hakiri_dagster.planning.chunks import Bounds, Chunk, CursorRange, Interval, Slice, SourceFile, WholeTable
from hakiri_dagster.planning.columns import Column, SourceSchema

ORDERS = SourceSchema(
    (
        Column("id", "bigint"),
        Column("customer", "string"),
        Column("amount", "decimal(10,2)"),
        Column("updated_at", "bigint"),
    ),
    primary_key=(),
)
WHOLE = Slice(Chunk("full", WholeTable()), WholeTable())


def window(lower: int | None, upper: int | None, key: str | None = None) -> Slice:
    bounds = CursorRange(Interval(lower, upper))
    return Slice(Chunk(key or f"{lower}..{upper}", bounds), bounds)


def file_slice(path: str, content_hash: str) -> Slice:
    bounds = SourceFile(path, content_hash)
    return Slice(Chunk(content_hash, bounds), bounds)


def make_table(mode: LoadMode, **changes: Any) -> Table:
    """Orders by default: `updated_at` is the cursor, `id` the upsert key. scd2 loads the whole table."""
    whole = {"close_missing": True} if mode == "scd2" else {}
    load = {"mode": mode, **whole, **changes.pop("load", {})}
    endpoint = Endpoint("postgres", {})
    table = Table(
        pipeline_id="shop",
        name="orders",
        source=endpoint,
        destination=endpoint,
        target_schema="raw",
        target_name="orders",
        mode=mode,
        primary_key=(),
        upsert_key=("id",) if mode in ("upsert", "delete_missing", "scd2") else (),
        cursor="updated_at",
        path=None,
        columns={},
        load=LoadSpec(**load),
        backfill=BackfillSpec(),
        validation=ValidateSpec(),
        description=None,
        owners=(),
        tags={},
        schedule=None,
        timezone="UTC",
        origin=Origin("manifests/hakiri.toml", 1),
    )
    return replace(table, **changes)


@dataclass
class MemoryCandidate:
    """Rows that were encoded beforehand."""

    encoded: Sequence[bytes]
    rows: int
    cursor_max: int | None = None
    set_aside: int = 0
    before_block: Callable[[int], None] | None = None

    @property
    def bytes(self) -> int:
        return sum(map(len, self.encoded))

    def blocks(self) -> Iterator[bytes]:
        for index, block in enumerate(self.encoded):
            if self.before_block is not None:
                self.before_block(index)
            yield block


@dataclass
class Shop:
    """One table of one pipeline, with its destination."""

    url: str
    table: Table
    schema: SourceSchema = ORDERS
    with_file_hash: bool = False
    destination: PostgresDestination = field(init=False)

    def __post_init__(self) -> None:
        self.destination = open_destination({"url": self.url}, label="warehouse")

    def close(self) -> None:
        self.destination.close()

    def ensure(self) -> Any:
        return self.destination.ensure_target(self.table, self.schema, with_file_hash=self.with_file_hash)

    def claim(self, slice_: Slice, holder: str = "worker-1") -> Fence:
        key = slice_.chunk.key
        return self.destination.claim(self.table, [key], holder)[key]

    def load(
        self,
        slice_: Slice = WHOLE,
        fence: Fence | None = None,
        attempt: int = 1,
        supersedes: tuple[str, ...] = (),
        run_id: str = "run-1",
    ) -> Load:
        target = self.ensure()
        plan = self.plan(target)
        return Load(
            table=self.table,
            slice=slice_,
            fence=fence or self.claim(slice_),
            run_id=run_id,
            attempt=attempt,
            target=target,
            columns=plan.columns,
            supersedes=supersedes,
        )

    def plan(self, target: Any, *, of_replay: bool = False) -> Any:
        kinds = {column.name: arrow_type(column.spark_type) for column in self.schema.columns}
        kept = {KEPT_ID_COLUMN: pa.int64()} if of_replay else {}
        return self.destination.encoder_plan(self.table, target, kept | kinds)

    def candidate(
        self, load: Load, rows: Sequence[Sequence[Any]], blocks: int = 1, kept_ids: Sequence[int] = ()
    ) -> MemoryCandidate:
        """`kept_ids`: those of the rows in the quarantine, in a replay."""
        plan = self.plan(load.target, of_replay=load.replay is not None)
        batch = self.batch(plan.columns, load, rows, kept_ids)
        storable, refusals = plan.prepare(batch)
        assert not refusals, refusals
        step = max(1, -(-len(rows) // blocks))
        encoded = [self._encoded(plan, storable.slice(at, step)) for at in range(0, len(rows), step)]
        cursors = [dict(zip(self.names, row, strict=True)).get(self.table.cursor or "") for row in rows]
        known = [value for value in cursors if isinstance(value, int)]
        return MemoryCandidate(encoded, len(rows), max(known, default=None))

    @staticmethod
    def _encoded(plan: Any, batch: pa.RecordBatch) -> bytes:
        encoder = plan.encoder()
        return encoder.write(batch) + encoder.finish()

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.schema.columns]

    def batch(
        self, columns: Sequence[str], load: Load, rows: Sequence[Sequence[Any]], kept_ids: Sequence[int] = ()
    ) -> pa.RecordBatch:
        arrays: Mapping[str, pa.Array] = {
            column.name: pa.array([row[index] for row in rows], arrow_type(column.spark_type))
            for index, column in enumerate(self.schema.columns)
        }
        provenance = {
            LOAD_ID_COLUMN: pa.array([load.fence.load_id] * len(rows), pa.int64()),
            SOURCE_FILE_HASH_COLUMN: pa.array([self._hash(load)] * len(rows), pa.binary()),
            INGESTED_AT_COLUMN: pa.array([0] * len(rows), pa.timestamp("us", "UTC")),
            KEPT_ID_COLUMN: pa.array(kept_ids, pa.int64()),
        }
        every = {**arrays, **provenance}
        return pa.RecordBatch.from_arrays([every[name] for name in columns], names=list(columns))

    @staticmethod
    def _hash(load: Load) -> bytes | None:
        bounds: Bounds = load.slice.bounds
        return bytes.fromhex(bounds.content_hash) if isinstance(bounds, SourceFile) else None

    def prepare(self, rows: Sequence[Sequence[Any]], slice_: Slice = WHOLE, **kwargs: Any) -> PreparedLoad:
        load = self.load(slice_, **kwargs)
        return self.destination.prepare(load, self.candidate(load, rows))

    def publish(self, rows: Sequence[Sequence[Any]], slice_: Slice = WHOLE, **kwargs: Any) -> LedgerEntry:
        load = self.load(slice_, **kwargs)
        candidate = self.candidate(load, rows)
        prepared = self.destination.prepare(load, candidate)
        return prepared.publish(candidate.cursor_max, candidate.bytes)

    def query(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

    def ids(self) -> list[int]:
        return [row[0] for row in self.query(f"SELECT id FROM {self.now} ORDER BY id")]

    @property
    def now(self) -> str:
        """The rows that are true now, to select from."""
        return "(SELECT * FROM raw.orders WHERE is_current)" if self.table.mode == "scd2" else "raw.orders"

    def fingerprint(self) -> list[tuple[Any, ...]]:
        """Changes with any byte, and with any row that was written again."""
        return self.query(
            "SELECT count(*), sum(hashtextextended(o::text, 0)), sum(xmin::text::bigint), pg_relation_filenode("
            "'raw.orders') FROM raw.orders o"
        )


def order(id_: int, customer: str | None = "ann", amount: str = "1.50", updated_at: int | None = 1) -> tuple[Any, ...]:
    return id_, customer, Decimal(amount), updated_at


def wait_until_nobody_is_at_work(shop: Shop) -> None:
    """A backend learns of its client's death when it answers."""
    ours = "SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'hakiri:%' AND datname = current_database()"
    while shop.query(ours):
        pass


def five_at_once(work: Callable[[], object]) -> None:
    """Raises what any of them raises."""
    with ThreadPoolExecutor(5) as pool:
        for done in [pool.submit(work) for _ in range(5)]:
            done.result(20)
