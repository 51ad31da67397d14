"""A PostgreSQL source and a target count and hash the same rows alike, whatever the type of the cursor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from hakiri_dagster.connectors.contract import Comparable
from hakiri_dagster.connectors.postgres import POSTGRES
from hakiri_dagster.destinations.contract import ComparedTarget
from hakiri_dagster.destinations.postgres.destination import PostgresDestination, open_destination
from hakiri_dagster.planning.chunks import CursorRange, Interval, NullCursor, WholeTable
from hakiri_dagster.planning.verification import ChunkTally, ComparableChunk
from hakiri_dagster.planning.windows import DAY
from hakiri_dagster.quality.table_comparison import ComparedTable, compare_hashes
from tests.integration.destinations.postgres.scenario import make_table

CONTROL = "CREATE SCHEMA src; CREATE SCHEMA raw; CREATE SCHEMA hakiri; CREATE TABLE hakiri.ledger"
NAMES = ("id", "at", "v")


@dataclass
class Sides:
    """The same rows at the source and in the target."""

    url: str
    destination: PostgresDestination

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def opened(
        self, mode: Any = "append", key: tuple[str, ...] = (), **load: Any
    ) -> tuple[ComparedTable, ComparedTarget]:
        table = make_table(mode, cursor="at", load=load | ({"close_missing": False} if mode == "scd2" else {}))
        target = self.destination.comparison(table, NAMES, key, with_values=True)
        assert target is not None
        config = {"url": self.url, "schema": "src"}
        source = POSTGRES.table(config=config, name="orders", path=None, columns={}, label="shop/orders")
        assert isinstance(source, Comparable)
        return source.comparison(target.columns), target


@pytest.fixture
def sides(database_url: str) -> Iterator[Sides]:
    destination = open_destination({"url": database_url}, label="shop")
    made = Sides(database_url, destination)
    made.execute(f"{CONTROL} (load_id bigint, pipeline_id text, table_name text, target text)")
    yield made
    destination.close()


def fill(sides: Sides, type_: str, value: str, *others: str) -> None:
    """A hundred rows in order, and others with the cursors that are named."""
    rows = f"SELECT n::int AS id, ({value})::{type_} AS at, 'v' || n AS v FROM generate_series(0, 99) AS n"
    more = "".join(f" UNION ALL SELECT {1000 + n}, ({one})::{type_}, NULL" for n, one in enumerate(others))
    sides.execute(
        f"CREATE TABLE src.orders AS {rows}{more}",
        "CREATE TABLE raw.orders AS SELECT *, 1::bigint AS _hakiri_load_id FROM src.orders",
    )


def ranged(key: str, *intervals: tuple[int | None, int | None]) -> ComparableChunk:
    return ComparableChunk(key, tuple(CursorRange(Interval(*one)) for one in intervals))


@pytest.mark.parametrize(
    ("type_", "value", "others", "unit"),
    [
        ("smallint", "n", ("NULL",), 1),
        ("integer", "n", ("NULL",), 1),
        ("bigint", "n", ("NULL", "9223372036854775806"), 1),
        ("numeric", "n + 0.5", ("NULL", "'NaN'", "'Infinity'"), 1),
        ("numeric(12,2)", "n + 0.99", ("NULL",), 1),
        ("date", "date '1970-01-01' + n", ("NULL",), DAY),
        ("timestamp", "timestamp '1970-01-01' + n * interval '1 day'", ("NULL",), DAY),
        ("timestamptz", "timestamptz '1970-01-01Z' + n * interval '1 day 1 us'", ("NULL", "'1000-01-01 BC'"), DAY),
    ],
)
def test_both_sides_see_the_same_rows_in_each_chunk(
    sides: Sides, type_: str, value: str, others: tuple[str, ...], unit: int
) -> None:
    fill(sides, type_, value, *others)
    chunks = [
        ranged("first", (None, 10 * unit)),
        ranged("gap", (10 * unit, 12 * unit), (15 * unit, 20 * unit)),
        ranged("next", (20 * unit, 50 * unit)),
        ranged("rest", (90 * unit, None)),
        ComparableChunk("null", (NullCursor(),)),
        ComparableChunk("full", (WholeTable(),)),
    ]
    source, target = sides.opened()
    found = source.tally(chunks)
    assert target.tally(chunks) == found
    before = sum("BC" in other for other in others)
    after = sum(other.startswith("9") for other in others)
    unplaced = len(others) - before - after
    assert {key: tally.rows for key, tally in found.items()} == {
        "first": 10 + before, "gap": 7, "next": 30, "rest": 10 + after, "null": unplaced, "full": 100 + len(others),
    }  # fmt: skip
    assert len({tally.digest for tally in found.values()}) == len(chunks)
    for chunk in chunks:
        with target.row_hashes(chunk) as theirs, source.row_hashes(chunk) as ours:
            difference = compare_hashes(ours, theirs, merges_by_key=False, most_hashes=9)
        assert (difference.source_rows, difference.missing, difference.surplus) == (found[chunk.key].rows, 0, 0)


def test_an_index_on_the_cursor_decides_how_many_queries_there_are(sides: Sides) -> None:
    sides.execute(
        "CREATE TABLE src.orders AS SELECT n AS id, n AS at, repeat('v', 100) AS v FROM generate_series(1, 50000) AS n",
        "CREATE TABLE raw.orders AS SELECT *, 1::bigint AS _hakiri_load_id FROM src.orders",
        "CREATE INDEX ON src.orders (at)",
    )
    sides.execute("VACUUM ANALYZE src.orders", "VACUUM ANALYZE raw.orders")
    chunks = [ranged(str(n), (n * 1000, n * 1000 + 1000)) for n in range(50)]
    source, target = sides.opened()
    assert [len(batch) for batch in source.batches(chunks, 5)] == [5] * 10
    assert [len(batch) for batch in target.batches(chunks, 5)] == [50], "each batch would read the whole target"
    assert (
        source.tally(chunks[:5])["3"] == target.tally(chunks)["3"] == ChunkTally(1000, source.tally(chunks)["3"].digest)
    )


def test_a_key_is_looked_for_elsewhere_as_the_mode_demands(sides: Sides) -> None:
    fill(sides, "integer", "n")
    chunk = ranged("c", (10, 20))
    sides.execute(
        "UPDATE raw.orders SET at = 30 WHERE id = 11",  # newer
        "UPDATE raw.orders SET at = 5 WHERE id = 12",  # older
        "UPDATE src.orders SET at = 40 WHERE id = 13",
        "DELETE FROM src.orders WHERE id = 14",
    )
    missing, surplus = [("11",), ("12",)], [("13",), ("14",)]
    for mode, newer in (("append", 0), ("upsert", 1)):
        source, target = sides.opened(mode, ("id",))
        assert target.columns.merges_by_key is (mode == "upsert")
        assert (target.count_elsewhere(chunk, missing), source.count_elsewhere(chunk, surplus)) == (newer, 1)
        with target.row_hashes(chunk) as theirs, source.row_hashes(chunk) as ours:
            found = compare_hashes(ours, theirs, merges_by_key=mode == "upsert", most_hashes=9)
        assert sorted(source.keys(chunk, found.missing_hashes)) == missing
        assert sorted(target.keys(chunk, found.surplus_hashes)) == surplus


def test_rows_that_are_flagged_as_deleted_are_expected_on_neither_side(sides: Sides) -> None:
    fill(sides, "integer", "n")
    sides.execute(
        "ALTER TABLE src.orders ADD gone boolean; UPDATE src.orders SET gone = true WHERE id IN (11, 12)",
        "ALTER TABLE raw.orders ADD gone boolean, ADD gone_at timestamptz",
        "DELETE FROM raw.orders WHERE id = 11; UPDATE raw.orders SET gone_at = now() WHERE id = 12",
    )
    source, target = sides.opened("upsert", hard_delete="gone", soft_delete="gone_at")
    chunk = ranged("c", (10, 20))
    assert source.tally([chunk]) == target.tally([chunk])
    assert source.tally([chunk])["c"].rows == 8
