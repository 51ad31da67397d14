from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from hakiri_dagster.destinations.contract import Mark
from hakiri_dagster.destinations.postgres.destination import open_destination
from hakiri_dagster.errors import DestinationError, DestinationUnavailable, LeaseLost
from hakiri_dagster.planning.chunks import Chunk, CursorRange, Interval, NullCursor, Slice
from hakiri_dagster.planning.columns import Column, SourceSchema
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, make_table, order, window

NULLS = Slice(Chunk("null", NullCursor()), NullCursor())
MARK = "SELECT value, position FROM hakiri.pipeline_watermarks"


@pytest.fixture
def shop(make_shop: MakeShop) -> Shop:
    return make_shop("incremental_watermark")


def rest_of(lower: int, upper: int = 100, key: str = "0..100") -> Slice:
    """What is new in an open chunk."""
    chunk = Chunk(key, CursorRange(Interval(0, upper)))
    return Slice(chunk, CursorRange(Interval(lower, upper)))


def test_the_mark_is_kept_in_the_destination_with_whose_it_is_and_its_type(shop: Shop) -> None:
    shop.publish([order(1, updated_at=3), order(2, updated_at=9)], window(0, 100))
    kept = shop.query(
        "SELECT tenant, pipeline_id, target_schema, target_table, watermark_column, value, type, position, inherited,"
        " updated_at IS NOT NULL FROM hakiri.pipeline_watermarks"
    )
    assert kept == [("default", "shop", "raw", "orders", "updated_at", "9", "bigint", 9, False, True)]
    assert shop.destination.mark(shop.table) == Mark(9)


def test_ties_at_the_mark_are_neither_lost_nor_doubled(shop: Shop) -> None:
    shop.publish([order(1, updated_at=5), order(2, updated_at=9)], window(0, 100))
    shop.publish([order(2, updated_at=9), order(3, updated_at=9), order(4, updated_at=30)], rest_of(9))
    assert shop.ids() == [1, 2, 3, 4]
    assert shop.query(MARK) == [("30", 30)]


def test_a_load_that_is_undone_leaves_the_mark_where_it_was(shop: Shop) -> None:
    shop.publish([order(1, updated_at=5)], window(0, 100))
    shop.prepare([order(2, updated_at=50)], rest_of(5)).undo()
    assert shop.query(MARK) == [("5", 5)]


def test_a_worker_that_was_overtaken_moves_no_mark(shop: Shop) -> None:
    shop.publish([order(1, updated_at=5)], window(0, 100))
    prepared = shop.prepare([order(2, updated_at=50)], rest_of(5))
    shop.claim(rest_of(5), "worker-2")
    with pytest.raises(LeaseLost):
        prepared.publish(50, 0)
    assert shop.query(MARK) == [("5", 5)]
    assert shop.ids() == [1]


def test_a_commit_that_fails_leaves_rows_ledger_and_mark_as_they_were(shop: Shop) -> None:
    shop.publish([order(1, updated_at=5)], window(0, 100))
    shop.query(
        "CREATE FUNCTION raw.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this time'; END $$;"
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON hakiri.ledger DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
        " EXECUTE FUNCTION raw.refuse()"
    )
    prepared = shop.prepare([order(2, updated_at=50)], rest_of(6))
    with pytest.raises(DestinationError, match="not this time"):
        prepared.publish(50, 0)
    assert shop.query(MARK) == [("5", 5)]
    assert (shop.ids(), len(shop.destination.ledger(shop.table))) == ([1], 1)


def test_a_load_without_rows_keeps_the_mark_and_before_any_row_it_is_the_types_floor(shop: Shop) -> None:
    shop.publish([], window(0, 10))
    assert shop.query(MARK) == [("0", None)]
    assert shop.destination.mark(shop.table) == Mark(None)
    shop.publish([order(1, updated_at=-5)], window(-10, 0))
    assert shop.query(MARK) == [("-5", -5)]
    shop.publish([], window(10, 20))
    assert shop.query(MARK) == [("-5", -5)]


def test_rows_dated_after_what_the_next_slice_begins_at_do_not_move_the_mark(shop: Shop) -> None:
    load = shop.load(window(0, 100))
    prepared = shop.destination.prepare(load, shop.candidate(load, [order(1, updated_at=5), order(2, updated_at=90)]))
    prepared.publish(7, 0)  # now is 7
    assert shop.query(MARK) == [("7", 7)]
    shop.publish([order(3, updated_at=500)], window(200, None, "outside"))
    assert shop.query(MARK) == [("7", 7)]


class TestAChunkThatIsLoadedAgain:
    def test_below_the_mark_it_replaces_its_own_rows_and_leaves_the_mark(self, shop: Shop) -> None:
        shop.publish([order(1, updated_at=5)], window(0, 10))
        shop.publish([order(2, updated_at=15)], window(10, 20))
        shop.publish([order(3, updated_at=6)], window(0, 10))
        assert (shop.ids(), shop.query(MARK)) == ([2, 3], [("15", 15)])

    def test_that_holds_the_mark_it_lowers_it_to_what_the_source_holds_now(self, shop: Shop) -> None:
        shop.publish([order(1, updated_at=5), order(2, updated_at=95)], window(0, 100))
        shop.publish([order(1, updated_at=5), order(3, updated_at=7)], window(0, 100))
        assert (shop.ids(), shop.query(MARK)) == ([1, 3], [("7", 7)])

    def test_that_holds_the_mark_and_is_empty_now_it_lowers_it_to_its_beginning(self, shop: Shop) -> None:
        """What is filled in there later is owed."""
        shop.publish([order(1, updated_at=5)], window(0, 10))
        shop.publish([order(2, updated_at=15)], window(10, 20))
        shop.publish([], window(10, 20))
        assert (shop.ids(), shop.query(MARK)) == ([1], [("10", 10)])
        assert shop.destination.mark(shop.table) == Mark(10)
        shop.publish([order(3, updated_at=12)], window(10, 20))
        assert (shop.ids(), shop.query(MARK)) == ([1, 3], [("12", 12)])

    def test_that_has_no_beginning_and_is_empty_now_there_is_no_mark_again(self, shop: Shop) -> None:
        shop.publish([order(1, updated_at=5)], window(None, 100))
        shop.publish([], window(None, 100))
        assert (shop.ids(), shop.query(MARK)) == ([], [("0", None)])

    def test_and_is_empty_below_the_mark_it_leaves_the_mark(self, shop: Shop) -> None:
        shop.publish([order(1, updated_at=5)], window(0, 10))
        shop.publish([order(2, updated_at=15)], window(10, 20))
        shop.publish([], window(0, 10))
        assert (shop.ids(), shop.query(MARK)) == ([2], [("15", 15)])

    def test_from_the_lag_on_and_is_empty_now_the_lag_reaches_no_further_back(self, make_shop: MakeShop) -> None:
        shop = make_shop("incremental_watermark", load={"lag": 10})
        shop.publish([order(1, updated_at=5), order(2, updated_at=50)], window(0, 100))
        for _ in range(2):
            shop.publish([], rest_of(40))
        assert (shop.ids(), shop.query(MARK)) == ([1], [("50", 50)])
        shop.publish([], rest_of(30))
        assert shop.query(MARK) == [("40", 40)]


def test_of_two_open_loads_the_one_that_finds_the_mark_moved_publishes_nothing(shop: Shop) -> None:
    shop.publish([order(1, updated_at=1)], window(0, 10))
    early = shop.prepare([order(2, updated_at=12)], window(10, 20))
    shop.publish([order(3, updated_at=25)], window(20, 30))
    with pytest.raises(DestinationUnavailable, match="the watermark is at 25 meanwhile"):
        early.publish(12, 0)
    assert (shop.ids(), shop.query(MARK)) == ([1, 3], [("25", 25)])
    assert not shop.destination.parallel_prepare(shop.table, shop.ensure())


def test_each_tenant_has_a_mark_of_its_own(shop: Shop, database_url: str) -> None:
    shop.publish([order(1, updated_at=5)], window(0, 100))
    other = make_shop_of(database_url, tenant="o'hara")
    try:
        assert other.destination.mark(other.table) is None
        other.publish([order(1, updated_at=5), order(2, updated_at=8)], window(0, 100))
    finally:
        other.close()
    kept = shop.query("SELECT tenant, position FROM hakiri.pipeline_watermarks ORDER BY tenant")
    assert kept == [("default", 5), ("o'hara", 8)]


def make_shop_of(url: str, tenant: str) -> Shop:
    shop = Shop(url, make_table("incremental_watermark"))
    shop.destination.close()
    shop.destination = open_destination({"url": url}, label="warehouse", tenant=tenant)
    return shop


def test_a_load_that_clears_the_target_forgets_the_mark(shop: Shop, make_shop: MakeShop) -> None:
    shop.publish([order(1, updated_at=5)], window(0, 100))
    make_shop("truncate").publish([order(2, updated_at=2)])
    assert shop.query(MARK) == []
    assert shop.destination.mark(shop.table) is None


def test_a_target_that_was_dropped_and_made_anew_has_no_mark(shop: Shop) -> None:
    shop.publish([order(1, updated_at=5)], window(0, 100))
    shop.query("DROP TABLE raw.orders")
    assert shop.destination.mark(shop.table) is None
    shop.publish([order(1, updated_at=3)], window(0, 100))
    assert shop.query(MARK) == [("3", 3)]


def test_a_watermark_of_another_column_is_refused(shop: Shop) -> None:
    shop.publish([order(1, updated_at=5)], window(0, 100))
    shop.table = replace(shop.table, cursor="id")
    (refused,) = [c for c in shop.destination.planned_changes(shop.table, shop.schema) if c.refused]
    assert "its watermark is kept of updated_at, and watermark_column is id now" in refused.description


class TestATargetThatIsNotOurs:
    @pytest.fixture
    def adopted(self, shop: Shop) -> Shop:
        shop.query("CREATE SCHEMA raw")
        shop.query("CREATE TABLE raw.orders (id bigint, customer text, amount numeric(10,2), updated_at bigint)")
        shop.query("INSERT INTO raw.orders VALUES (1, 'old', 1, 3), (2, 'old', 1, 5), (3, 'old', 1, NULL)")
        return shop

    def test_a_slice_without_rows_does_not_lower_the_mark_below_them(self, adopted: Shop) -> None:
        adopted.publish([order(4, updated_at=9)], rest_of(5))
        adopted.publish([], rest_of(0))
        assert adopted.destination.mark(adopted.table) == Mark(5, begins_at=5)

    def test_begins_at_its_highest_value(self, adopted: Shop) -> None:
        assert adopted.destination.mark(adopted.table) == Mark(5, begins_at=5)

    def test_only_what_is_above_it_is_loaded_and_the_rest_is_told(self, adopted: Shop) -> None:
        rows = [order(20, updated_at=5), order(4, updated_at=6), order(5, updated_at=9)]
        load = adopted.load(rest_of(5))
        prepared = adopted.destination.prepare(load, adopted.candidate(load, rows))
        (told,) = prepared.notes
        assert told.startswith("chunk 0..100: 1 row(s) not loaded, for they were in the target before our first load")
        assert "or are not above 5, the highest updated_at that it had" in told
        prepared.publish(9, 0)
        assert adopted.ids() == [1, 2, 3, 4, 5]
        assert adopted.destination.mark(adopted.table) == Mark(9, begins_at=5)
        adopted.publish([order(5, updated_at=9), order(6, updated_at=9)], rest_of(9))
        assert adopted.ids() == [1, 2, 3, 4, 5, 6]

    def test_its_rows_without_a_watermark_are_not_loaded_beside_themselves(self, adopted: Shop) -> None:
        adopted.publish([order(3, "old", "1", None), order(3, "old", "1", None), order(7, "new", "1", None)], NULLS)
        assert adopted.ids() == [1, 2, 3, 3, 7]
        adopted.publish([order(3, "old", "1", None), order(8, "new", "1", None)], NULLS)
        assert adopted.ids() == [1, 2, 3, 8]

    def test_by_their_key_where_one_is_declared(self, adopted: Shop) -> None:
        adopted.table = replace(adopted.table, primary_key=("id",))
        adopted.publish([order(3, "renamed", "9", None)], NULLS)
        assert adopted.ids() == [1, 2, 3]

    def test_no_row_of_it_has_a_watermark(self, adopted: Shop) -> None:
        adopted.query("UPDATE raw.orders SET updated_at = NULL")
        assert adopted.destination.mark(adopted.table) == Mark(None)
        adopted.publish([order(9, updated_at=2)], window(0, 100))
        adopted.publish([order(1, "old", "1", None)], NULLS)
        assert adopted.ids() == [1, 2, 3, 9]

    def test_it_must_have_the_column(self, adopted: Shop) -> None:
        adopted.query("ALTER TABLE raw.orders DROP COLUMN updated_at")
        (refused,) = [c for c in adopted.destination.planned_changes(adopted.table, adopted.schema) if c.refused]
        assert "the target has no column updated_at" in refused.description

    def test_it_is_empty(self, adopted: Shop) -> None:
        adopted.query("TRUNCATE raw.orders")
        assert adopted.destination.mark(adopted.table) is None
        adopted.publish([order(9, updated_at=2)], window(0, 100))
        assert adopted.ids() == [9]

    def test_a_fraction_above_its_highest_value_is_loaded(self, make_shop: MakeShop) -> None:
        schema = SourceSchema((Column("id", "bigint"), Column("updated_at", "decimal(10,2)")))
        shop = make_shop("incremental_watermark", schema=schema)
        shop.query("CREATE SCHEMA raw")
        shop.query("CREATE TABLE raw.orders (id bigint, updated_at numeric(10,2))")
        shop.query("INSERT INTO raw.orders VALUES (1, 5.30)")
        assert shop.destination.mark(shop.table) == Mark(5, begins_at=5)
        load = shop.load(rest_of(5))
        rows = [(1, Decimal("5.30")), (2, Decimal("5.31"))]
        shop.destination.prepare(load, replace(shop.candidate(load, rows), cursor_max=5)).publish(5, 0)
        assert (shop.ids(), shop.query(MARK)) == ([1, 2], [("5.30", 5)])

    @pytest.mark.parametrize("kind", ["timestamptz", "timestamp", "date"])
    def test_rows_dated_after_now_neither_hide_new_ones_nor_are_doubled(self, make_shop: MakeShop, kind: str) -> None:
        spark = {"timestamptz": "timestamp", "timestamp": "timestamp_ntz", "date": "date"}[kind]
        shop = make_shop(
            "incremental_watermark", schema=SourceSchema((Column("id", "bigint"), Column("updated_at", spark)))
        )
        shop.query("CREATE SCHEMA raw")
        shop.query(f"CREATE TABLE raw.orders (id bigint, updated_at {kind})")
        shop.query("INSERT INTO raw.orders VALUES (1, '2020-01-02'), (2, 'infinity'), (3, '2999-01-01')")
        at_2020 = 1577923200_000000
        assert shop.destination.mark(shop.table) == Mark(at_2020, begins_at=at_2020)
        moments = [datetime(2020, 1, 2, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)]
        values: list[Any] = [m if kind == "timestamptz" else m.replace(tzinfo=None) for m in moments]
        if kind == "date":
            values = [m.date() for m in moments]
        load = shop.load(window(at_2020, None, "rest"))
        candidate = shop.candidate(load, [(1, values[0]), (4, values[1]), (3, values[2])])
        shop.destination.prepare(load, candidate).publish(None, 0)
        assert shop.ids() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("spark_type", "value", "position", "text"),
    [
        (
            "timestamp",
            datetime(2024, 1, 31, 23, 59, 59, 999999, UTC),
            1706745599_999999,
            "2024-01-31 23:59:59.999999+00",
        ),
        ("timestamp_ntz", datetime(2024, 1, 31, 12), 1706702400_000000, "2024-01-31 12:00:00"),
        ("date", date(2024, 1, 31), 1706659200_000000, "2024-01-31"),
        ("int", 7, 7, "7"),
        ("decimal(10,0)", Decimal(7), 7, "7"),
        ("double", 7.0, 7, "7"),
    ],
)
def test_the_mark_is_text_in_its_columns_own_terms(
    make_shop: MakeShop, spark_type: str, value: object, position: int, text: str
) -> None:
    schema = SourceSchema((Column("id", "bigint"), Column("updated_at", spark_type)))
    shop = make_shop("incremental_watermark", schema=schema)
    slice_ = window(position - 1, position + timedelta(days=2) // timedelta(microseconds=1), "all")
    load = shop.load(slice_)
    candidate = replace(shop.candidate(load, [(1, value)]), cursor_max=position)
    shop.destination.prepare(load, candidate).publish(position + 1, 0)
    assert shop.query(MARK) == [(text, position)]


@pytest.mark.parametrize(("spark_type", "floor"), [("timestamp", "0001-01-01"), ("date", "0001-01-01"), ("int", "0")])
def test_the_floor_is_that_of_the_type(make_shop: MakeShop, spark_type: str, floor: str) -> None:
    schema = SourceSchema((Column("id", "bigint"), Column("updated_at", spark_type)))
    shop = make_shop("incremental_watermark", schema=schema)
    shop.publish([], window(0, 10))
    assert shop.query(MARK) == [(floor, None)]
