from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from hakiri_dagster.errors import DestinationUnavailable
from hakiri_dagster.planning.chunks import Chunk, CursorRange, Interval, NullCursor, Slice
from hakiri_dagster.planning.columns import Column, SourceSchema
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import WHOLE, file_slice, order, window

NULLS = Slice(Chunk("null", NullCursor()), NullCursor())
HASH_A, HASH_B = "aa" * 16, "bb" * 16


def test_rows_that_somebody_else_put_there_stay(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.ensure()
    shop.query("INSERT INTO raw.orders (id, updated_at) VALUES (99, 5)")
    shop.publish([order(1, updated_at=5)], window(0, 10))
    shop.publish([order(2, updated_at=5)], window(0, 10))
    assert shop.ids() == [2, 99]


def test_a_slice_replaces_only_rows_within_its_bounds(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.publish([order(1, updated_at=3), order(2, updated_at=10), order(3, updated_at=19)], window(0, 20))
    shop.publish([order(4, updated_at=12)], window(10, 20))
    assert shop.ids() == [1, 4]


def test_the_open_chunk_goes_on_at_its_mark_without_losing_or_doubling_ties(make_shop: MakeShop) -> None:
    shop = make_shop()
    chunk = Chunk("2024", CursorRange(Interval(0, 100)))
    shop.publish([order(1, updated_at=5), order(2, updated_at=9)], Slice(chunk, CursorRange(Interval(0, 100))))
    rest = Slice(chunk, CursorRange(Interval(9, 100)))
    shop.publish([order(2, updated_at=9), order(3, updated_at=9), order(4, updated_at=30)], rest)
    assert shop.ids() == [1, 2, 3, 4]
    entries = shop.destination.ledger(shop.table)
    assert [(entry.chunk_key, entry.rows, entry.cursor_committed) for entry in entries] == [("2024", 3, 30)]


def test_a_changed_window_neither_loses_nor_doubles_rows(make_shop: MakeShop) -> None:
    shop = make_shop()
    for day in range(4):
        shop.publish([order(day, updated_at=day * 10)], window(day * 10, day * 10 + 10))
    shop.publish([order(day, updated_at=day * 10) for day in range(4)], window(0, 40))
    assert shop.ids() == [0, 1, 2, 3]
    assert [entry.chunk_key for entry in shop.destination.ledger(shop.table)] == ["0..40"]


def test_rows_without_a_cursor_are_a_slice_of_their_own(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.publish([order(1, updated_at=5)], window(0, 10))
    shop.publish([order(2, updated_at=None)], NULLS)
    shop.publish([order(3, updated_at=None)], NULLS)
    shop.publish([order(4, updated_at=5)], window(0, 10))
    assert shop.ids() == [3, 4]


def test_a_rewritten_file_replaces_its_own_rows(make_shop: MakeShop) -> None:
    shop = make_shop(cursor=None, with_file_hash=True)
    shop.publish([order(1)], file_slice("a.csv", HASH_A))
    shop.publish([order(2)], file_slice("b.csv", "cc" * 16))
    shop.publish([order(3)], file_slice("a.csv", HASH_B), supersedes=(HASH_A,))
    assert shop.ids() == [2, 3]
    assert {entry.chunk_key for entry in shop.destination.ledger(shop.table)} == {HASH_B, "cc" * 16}


def test_a_file_that_took_anothers_path_leaves_its_rows_alone(make_shop: MakeShop) -> None:
    shop = make_shop(cursor=None, with_file_hash=True)
    shop.publish([order(1)], file_slice("latest.csv", HASH_A))
    shop.publish([order(2)], file_slice("latest.csv", HASH_B))
    assert shop.ids() == [1, 2]


def test_a_file_that_moved_does_not_double_its_rows(make_shop: MakeShop) -> None:
    shop = make_shop(cursor=None, with_file_hash=True)
    shop.publish([order(1)], file_slice("a.csv", HASH_A))
    shop.publish([order(1)], file_slice("moved/a.csv", HASH_A))
    assert shop.ids() == [1]


def test_the_whole_table_replaces_all_own_rows(make_shop: MakeShop) -> None:
    shop = make_shop(cursor=None)
    shop.publish([order(1)], WHOLE)
    shop.publish([order(2)], WHOLE)
    assert shop.ids() == [2]


@pytest.mark.parametrize(
    ("spark_type", "values", "positions"),
    [
        (
            "timestamp",
            [datetime(2024, 1, 31, 23, 59, 59, 999999, UTC), datetime(2024, 2, 1, tzinfo=UTC)],
            (1704067200_000000, 1706745600_000000),
        ),
        (
            "timestamp_ntz",
            [datetime(2024, 1, 31, 23, 59, 59, 999999), datetime(2024, 2, 1)],
            (1704067200_000000, 1706745600_000000),
        ),
        ("date", [date(2024, 1, 31), date(2024, 2, 1)], (1704067200_000000, 1706745600_000000)),
        ("double", [1.999, 2.0], (1, 2)),
    ],
)
def test_bounds_are_exact_for_every_kind_of_cursor(
    make_shop: MakeShop, spark_type: str, values: list[object], positions: tuple[int, int]
) -> None:
    schema = SourceSchema((Column("id", "bigint"), Column("updated_at", spark_type)))
    shop = make_shop(schema=schema)
    both = window(None, None, "all")
    load = shop.load(both)
    candidate = replace(shop.candidate(load, [(1, values[0]), (2, values[1])]), cursor_max=None)
    shop.destination.prepare(load, candidate).publish(None, 0)
    shop.publish([], window(*positions))
    assert shop.ids() == [2]


def test_two_chunks_can_be_open_at_once(make_shop: MakeShop) -> None:
    shop = make_shop()
    first = shop.prepare([order(1, updated_at=1)], window(0, 10))
    second = shop.prepare([order(2, updated_at=11)], window(10, 20))
    second.publish(None, 0)
    first.publish(None, 0)
    assert shop.ids() == [1, 2]
    assert shop.destination.parallel_prepare(shop.table, shop.ensure())


def test_an_overlapping_slice_published_meanwhile_makes_the_other_try_again(make_shop: MakeShop) -> None:
    shop = make_shop()
    wide = shop.prepare([order(1, updated_at=5)], window(0, 20))
    shop.publish([order(1, updated_at=5)], window(0, 10))
    with pytest.raises(DestinationUnavailable, match="overlaps"):
        wide.publish(None, 0)
    assert shop.ids() == [1]
