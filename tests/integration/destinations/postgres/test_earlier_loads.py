from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import psycopg
import pytest
from psycopg.types.json import Jsonb

from hakiri_dagster.destinations.contract import Load
from hakiri_dagster.destinations.postgres.earlier_loads import replaced_by
from hakiri_dagster.destinations.postgres.replacement import Earlier, bounds_to_json, replacement
from hakiri_dagster.planning.chunks import (
    Bounds,
    Chunk,
    CursorRange,
    Interval,
    NullCursor,
    Part,
    Segment,
    Slice,
    SourceFile,
    WholeTable,
)
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop

EDGES = (None, -5, 0, 5, 10, 2**63)
RANGES = [
    CursorRange(Interval(lower, upper))
    for lower, upper in product(EDGES, EDGES)
    if lower is None or upper is None or lower < upper
]
FILES = [SourceFile(path, content * 32) for path, content in product("ab", "12")]
PARTS = [Part("repo", "a"), Part("repo", "b")]
OF_PARTS = [bounds for part in PARTS for bounds in (CursorRange(Interval(0, 10), part), NullCursor(part))]
SEGMENTS = [Segment(1), Segment(1, "x"), Segment(2, "y")]
EVERY: list[Bounds] = [*RANGES, *FILES, *OF_PARTS, *SEGMENTS, NullCursor(), WholeTable()]


def record(shop: Shop, entries: Sequence[Earlier]) -> None:
    with psycopg.connect(shop.url) as connection:
        connection.cursor().executemany(
            "INSERT INTO hakiri.ledger (load_id, chunk_key, bounds, cursor_max,"
            " pipeline_id, table_name, target, rows, bytes, run_id, attempt, mode)"
            " VALUES (%s, %s, %s, %s, 'shop', 'orders', 'raw.orders', 1, 1, 'run-1', 1, 'append')",
            [(e.load_id, e.chunk_key, Jsonb(bounds_to_json(e.bounds)), e.cursor_max) for e in entries],
        )


def a_load(shop: Shop, bounds: Bounds, supersedes: tuple[str, ...] = ()) -> Load:
    chunk = Chunk("new", bounds)
    return replace(shop.load(Slice(chunk, bounds)), supersedes=supersedes)


def test_nothing_that_a_load_replaces_is_overlooked(make_shop: MakeShop) -> None:
    shop = make_shop()
    load = a_load(shop, WholeTable())
    cursors = (None, -5, 4, 5, 9)
    entries = [
        Earlier(1000 + number, f"k{number}", bounds, cursor_max)
        for number, (bounds, cursor_max) in enumerate(product(EVERY, cursors))
    ]
    record(shop, entries)
    files, segments = (
        tuple(entry.chunk_key for entry in entries if isinstance(entry.bounds, kind)) for kind in (SourceFile, Segment)
    )
    with psycopg.connect(shop.url) as connection:
        for bounds in EVERY:
            named = files if isinstance(bounds, SourceFile) else segments if isinstance(bounds, Segment) else ()
            supersedes = named[::2]
            asked = replace(load, slice=Slice(Chunk("new", bounds), bounds), supersedes=supersedes)
            assert replaced_by(connection, asked) == replacement(bounds, entries, supersedes), bounds


@pytest.mark.parametrize("kind", ["files", "windows"])
def test_loads_that_have_nothing_to_do_with_a_new_one_are_not_read(make_shop: MakeShop, kind: str) -> None:
    def bounds(number: int) -> Bounds:
        if kind == "files":
            return SourceFile(f"p{number}", f"{number:032x}")
        return CursorRange(Interval(number * 10, number * 10 + 10))

    shop = make_shop()
    load = a_load(shop, bounds(7))
    record(shop, [Earlier(1000 + number, f"k{number}", bounds(number), number * 10 + 5) for number in range(1000)])
    with psycopg.connect(shop.url) as connection:
        connection.execute("ANALYZE hakiri.ledger")
        connection.commit()
        assert replaced_by(connection, load).load_ids == (1007,)
        read = connection.execute(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relid = 'hakiri.ledger'::regclass"
        ).fetchone()
    assert read is not None
    assert read[0] < 10
