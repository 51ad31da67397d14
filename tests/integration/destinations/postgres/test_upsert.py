from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from hakiri_dagster.errors import DestinationError
from hakiri_dagster.planning.chunks import Chunk, NullCursor, Slice
from hakiri_dagster.planning.columns import Column, SourceSchema
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import order, window

NULLS = Slice(Chunk("null", NullCursor()), NullCursor())


def test_new_keys_are_inserted_and_known_ones_updated(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    shop.publish([order(1, "ann"), order(2, "bob")], window(0, 10))
    shop.publish([order(2, "ben", updated_at=2), order(3, "cid", updated_at=2)], window(0, 10))
    assert shop.query("SELECT id, customer FROM raw.orders ORDER BY id") == [(1, "ann"), (2, "ben"), (3, "cid")]


def test_chunks_may_run_in_any_order(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    shop.publish([order(1, "new", updated_at=20)], window(20, 30))
    shop.publish([order(1, "old", updated_at=10)], window(10, 20))
    assert shop.query("SELECT customer FROM raw.orders") == [("new",)]


def test_a_row_without_a_cursor_is_older_than_any_other(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    shop.publish([order(1, "null", updated_at=None)], window(0, 10))
    shop.publish([order(1, "known", updated_at=1)], window(0, 10))
    shop.publish([order(1, "null", updated_at=None)], window(0, 10))
    assert shop.query("SELECT customer FROM raw.orders") == [("known",)]


@pytest.mark.parametrize("unplaced", [float("nan"), float("inf")])
def test_a_cursor_without_a_place_in_the_order_counts_as_none(make_shop: MakeShop, unplaced: float) -> None:
    schema = SourceSchema((Column("id", "bigint"), Column("customer", "string"), Column("updated_at", "double")))
    shop = make_shop("upsert", schema=schema)
    shop.publish([(1, "without", unplaced)], NULLS)
    shop.publish([(1, "known", 1.0)], window(0, 10))
    shop.publish([(1, "without", unplaced)], NULLS)
    assert shop.query("SELECT customer FROM raw.orders") == [("known",)]
    shop.publish([(2, "without", unplaced), (2, "known", 1.0), (2, "without", unplaced)], window(0, 10))
    assert shop.query("SELECT customer FROM raw.orders WHERE id = 2") == [("known",)]


def test_a_row_that_did_not_change_is_not_written_again(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    first = shop.publish([order(1), order(2)])
    before = shop.fingerprint()
    again = shop.publish([order(1), order(2)])
    assert (first.rows, again.rows) == (2, 2)
    assert shop.fingerprint() == before


def test_of_a_key_that_comes_twice_the_highest_cursor_wins(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    rows = [order(1, "b", updated_at=2), order(1, "c", updated_at=3), order(1, "a", updated_at=1), order(2)]
    assert shop.publish(rows).rows == 4
    assert shop.query("SELECT id, customer FROM raw.orders ORDER BY id") == [(1, "c"), (2, "ann")]


def test_of_a_key_that_comes_twice_with_one_cursor_the_later_row_wins(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", cursor=None)
    shop.publish([order(1, "a"), order(1, "b")])
    assert shop.query("SELECT customer FROM raw.orders") == [("b",)]


def test_a_null_key_is_refused_row_by_row(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    plan = shop.plan(shop.ensure())
    batch = pa.RecordBatch.from_pydict(
        {
            "id": pa.array([1, None], pa.int64()),
            "customer": pa.array(["a", "b"]),
            "amount": pa.array([Decimal(1), Decimal(2)], pa.decimal128(10, 2)),
            "updated_at": pa.array([1, 1], pa.int64()),
            "_hakiri_load_id": pa.array([1, 1], pa.int64()),
        }
    )
    _, refusals = plan.prepare(batch)
    assert [(r.mask.to_pylist(), r.rule, r.message) for r in refusals] == [
        ([False, True], "not_null", "id is NULL, and it is part of the upsert_key")
    ]


def test_a_key_of_all_columns_is_refused(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", upsert_key=("id",), cursor=None, schema=SourceSchema((Column("id", "bigint"),)))
    with pytest.raises(DestinationError, match="names every column"):
        shop.ensure()


def test_a_target_without_a_unique_index_gets_one(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    shop.query(
        "CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint, customer text, amount numeric, updated_at bigint)"
    )
    assert ("id",) in shop.ensure().unique_keys
    shop.publish([order(1)])
    shop.publish([order(1, "new", updated_at=2)])
    assert shop.query("SELECT customer FROM raw.orders") == [("new",)]


def test_duplicates_already_in_an_adopted_target_are_told(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    shop.query(
        "CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint, customer text, amount numeric, updated_at bigint)"
    )
    shop.query("INSERT INTO raw.orders (id) VALUES (7), (7)")
    with pytest.raises(DestinationError, match=r"Key \(id\)=\(7\) is duplicated"):
        shop.ensure()


def test_columns_without_an_equality_are_compared_as_text(make_shop: MakeShop) -> None:
    schema = SourceSchema((Column("id", "bigint"), Column("doc", "string", native_type="json")))
    shop = make_shop("upsert", schema=schema, cursor=None)
    shop.publish([(1, '{"a": 1}')])
    shop.publish([(1, '{"a": 2}')])
    assert shop.query("SELECT doc FROM raw.orders") == [({"a": 2},)]
