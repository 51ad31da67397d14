from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.load_spec import LoadMode
from hakiri_dagster.planning.chunks import Chunk, NullCursor, Slice
from hakiri_dagster.planning.columns import Column, SourceSchema
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.equality import EQUAL_OR_WITHOUT_EQUALITY, THEIR_TYPES
from tests.integration.destinations.postgres.scenario import Shop, order, window

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


@pytest.mark.parametrize("mode", ["upsert", "delete_missing"])
def test_a_null_key_is_refused_row_by_row(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
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
        ([False, True], "not_null", "id is NULL, and it is part of the key")
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


ORDERS_TABLE = (
    "CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint, customer text, amount numeric, updated_at bigint)"
)


def test_duplicates_already_in_an_adopted_target_are_told(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    shop.query(ORDERS_TABLE)
    shop.query("INSERT INTO raw.orders (id) VALUES (7), (7), (8), (9), (9), (NULL), (NULL)")
    with pytest.raises(DestinationError) as caught:
        shop.ensure()
    assert caught.value.what == (
        "2 key(s) occur more than once in the target, so it cannot have a unique index on (id): "
        "(7) 2 times; (9) 2 times; remove the duplicates there, or choose another upsert_key"
    )


@pytest.mark.parametrize(
    "useless",
    [
        "CREATE UNIQUE INDEX ON raw.orders (id) WHERE amount > 0",
        "CREATE UNIQUE INDEX ON raw.orders ((id + 0))",
        "CREATE UNIQUE INDEX ON raw.orders (id, customer)",
        "CREATE INDEX ON raw.orders (id)",
        "CREATE UNIQUE INDEX i ON raw.orders (id); UPDATE pg_index SET indisvalid = false "
        "WHERE indexrelid = 'raw.i'::regclass",
    ],
)
def test_an_index_that_cannot_tell_keys_apart_is_not_counted(make_shop: MakeShop, useless: str) -> None:
    shop = make_shop("upsert")
    shop.query(f"{ORDERS_TABLE}; {useless}")
    changes = [change.description for change in shop.destination.planned_changes(shop.table, shop.schema)]
    assert "create unique index on raw.orders (id)" in changes
    shop.publish([order(1)])
    shop.publish([order(1, "new", updated_at=2)])
    assert shop.query("SELECT customer FROM raw.orders") == [("new",)]


def test_a_deferrable_key_is_refused_at_plan(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", upsert_key=("id", "customer"))
    shop.query(f"{ORDERS_TABLE}; ALTER TABLE raw.orders ADD CONSTRAINT late UNIQUE (customer, id) DEFERRABLE")
    changes = shop.destination.planned_changes(shop.table, shop.schema)
    assert [change.description for change in changes if change.refused] == [
        "the target's constraint late is deferrable, and PostgreSQL cannot merge by such a key; make it NOT DEFERRABLE"
    ]


# Indexes of text to which case is nothing: by their operators, or by a collation as ICU has them, without which the
# embedded server is built.
FOLDING = """
CREATE FUNCTION folded_eq(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT
    AS 'SELECT lower($1) OPERATOR(pg_catalog.=) lower($2)';
CREATE FUNCTION folded_lt(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT
    AS 'SELECT lower($1) OPERATOR(pg_catalog.<) lower($2)';
CREATE FUNCTION folded_cmp(text, text) RETURNS integer LANGUAGE sql IMMUTABLE STRICT
    AS 'SELECT pg_catalog.bttextcmp(lower($1), lower($2))';
CREATE OPERATOR ~=~~ (LEFTARG = text, RIGHTARG = text, FUNCTION = folded_eq);
CREATE OPERATOR ~<~~ (LEFTARG = text, RIGHTARG = text, FUNCTION = folded_lt);
CREATE OPERATOR CLASS folded_ops FOR TYPE text USING btree
    AS OPERATOR 1 ~<~~, OPERATOR 3 ~=~~, FUNCTION 1 folded_cmp(text, text);
CREATE COLLATION folded FROM "C";
"""
FOLD = "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'folded'"
ADOPTED = "CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint, customer {}, amount numeric, updated_at bigint)"


@pytest.mark.parametrize("fold", ["customer folded_ops", "customer COLLATE folded"])
def test_an_index_to_which_different_keys_are_one_is_refused_at_plan(make_shop: MakeShop, fold: str) -> None:
    shop = make_shop("upsert", upsert_key=("id", "customer"))
    shop.query(f"{FOLDING}; {ADOPTED.format('text')}; CREATE UNIQUE INDEX blurred ON raw.orders (id, {fold}); {FOLD}")
    changes = shop.destination.planned_changes(shop.table, shop.schema)
    assert [change.description for change in changes if change.refused] == [
        "the target's unique index blurred has a collation or an operator class to which keys may be one that differ "
        "in its columns, and PostgreSQL cannot merge by such a key; drop it, or make it anew with the columns' own"
    ]
    with pytest.raises(DestinationError, match="index blurred"):
        shop.publish([order(1, "ann"), order(1, "Ann")])
    shop.query("DROP INDEX raw.blurred")
    shop.publish([order(1, "ann"), order(1, "Ann")])
    assert shop.query('SELECT customer FROM raw.orders ORDER BY customer COLLATE "C"') == [("Ann",), ("ann",)]


@pytest.mark.parametrize(
    ("column", "index", "is_used"),
    [
        ("text", "customer text_pattern_ops", True),
        ("varchar(9)", "customer varchar_pattern_ops", True),
        ("char(9)", "customer", True),
        ("word", "customer", True),
        ("text", 'customer COLLATE "C"', True),
        ("text COLLATE folded", "customer", True),
        ("text COLLATE folded", 'customer COLLATE "C"', False),
    ],
)
def test_an_index_is_used_if_keys_are_one_to_it_as_they_are_to_its_columns(
    make_shop: MakeShop, column: str, index: str, is_used: bool
) -> None:
    shop = make_shop("upsert", upsert_key=("id", "customer"))
    types = f"{FOLDING}; CREATE DOMAIN word AS varchar(9)"
    shop.query(f"{types}; {ADOPTED.format(column)}; CREATE UNIQUE INDEX ON raw.orders (id, {index}); {FOLD}")
    changes = [change.description for change in shop.destination.planned_changes(shop.table, shop.schema)]
    assert ("create unique index on raw.orders (id, customer)" not in changes) == is_used


def test_a_key_without_overlaps_is_not_counted(make_shop: MakeShop) -> None:
    columns = [Column(name, "string", native_type="int4range") for name in ("id", "during")]
    schema = SourceSchema((*columns, Column("customer", "string")))
    shop = make_shop("upsert", upsert_key=("id", "during"), schema=schema, cursor=None)
    shop.query(
        "CREATE SCHEMA raw; CREATE TABLE raw.orders (id int4range, during int4range, customer text, "
        "UNIQUE (id, during WITHOUT OVERLAPS))"
    )
    for customer in ("ann", "ben"):
        shop.publish([("[1,2)", "[1,9)", customer)])
    assert shop.query("SELECT customer FROM raw.orders") == [("ben",)]


def test_an_index_in_another_order_and_with_more_in_it_is_used(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", upsert_key=("id", "customer"))
    shop.query(f"{ORDERS_TABLE}; CREATE UNIQUE INDEX ON raw.orders (customer, id) INCLUDE (amount)")
    shop.publish([order(1), order(1)])
    assert shop.query("SELECT count(*) FROM pg_indexes WHERE schemaname = 'raw'") == [(2,)]


def test_a_key_that_postgresql_cannot_index_is_told(make_shop: MakeShop) -> None:
    schema = SourceSchema((Column("id", "string", native_type="json"), Column("customer", "string")))
    shop = make_shop("upsert", schema=schema, cursor=None)
    shop.query("CREATE SCHEMA raw; CREATE TABLE raw.orders (id json, customer text)")
    with pytest.raises(DestinationError, match=r"a column of \(id\) is of a type that PostgreSQL cannot index"):
        shop.ensure()


PARTITIONED = ORDERS_TABLE + " PARTITION BY LIST ({}); CREATE TABLE raw.rest PARTITION OF raw.orders DEFAULT"


@pytest.mark.parametrize(
    ("by", "message"),
    [("customer", "unless the key has customer, by which it is partitioned"), ("(id % 2)", "that an expression tells")],
)
def test_a_partitioned_target_whose_key_cannot_be_unique_is_refused_at_plan(
    make_shop: MakeShop, by: str, message: str
) -> None:
    shop = make_shop("upsert")
    shop.query(PARTITIONED.format(by))
    changes = shop.destination.planned_changes(shop.table, shop.schema)
    assert [message in change.description for change in changes if change.refused] == [True]


def test_a_partitioned_target_is_merged_into_by_a_key_with_its_partition_key(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", upsert_key=("id", "customer"))
    shop.query(PARTITIONED.format("customer"))
    shop.publish([order(1, amount="1"), order(2)])
    shop.publish([order(1, amount="2", updated_at=2)])
    assert shop.query("SELECT id, amount FROM raw.orders ORDER BY id") == [(1, Decimal(2)), (2, Decimal("1.50"))]


def test_duplicates_are_rejected_where_the_manifest_says_so(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", load={"on_duplicate_key": "reject"})
    shop.publish([order(1), order(2)])
    before = shop.fingerprint()
    rows = [order(number % 5, updated_at=number) for number in range(12)] + [order(50 + number) for number in range(9)]
    with pytest.raises(DestinationError) as caught:
        shop.prepare(rows)
    assert str(caught.value) == (
        "shop/orders: 5 key(s) occur more than once among the rows of the slice, 12 rows in all, and "
        'load.on_duplicate_key = "reject"; (id): (0) 3 times; (1) 3 times; (2) 2 times; …. Nothing was changed.\n'
        '  hint: remove the duplicates at the source, or set on_duplicate_key = "last"'
    )
    assert shop.fingerprint() == before


def test_the_same_keys_in_two_slices_are_no_duplicates(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", load={"on_duplicate_key": "reject"})
    shop.publish([order(1, "ann")], window(0, 10))
    shop.publish([order(1, "new", updated_at=11)], window(10, 20))
    assert shop.query("SELECT customer FROM raw.orders") == [("new",)]


def test_many_duplicates_leave_the_last_of_each_and_nothing_else(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    shop.publish([order(number % 500, f"c{number}", updated_at=number % 7) for number in range(5000)])
    kept = shop.query("SELECT id, customer, updated_at FROM raw.orders")
    assert len(kept) == 500
    assert all(cursor == 6 for _, _, cursor in kept)
    assert shop.query("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'orders'") == [(0,)]


def test_unchanged_rows_do_not_make_the_target_grow(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    rows = [order(number) for number in range(5000)]
    shop.publish(rows)
    size = shop.query("SELECT pg_relation_size('raw.orders'), sum(xmin::text::bigint) FROM raw.orders")
    for _ in range(3):
        shop.publish(rows)
    assert shop.query("SELECT pg_relation_size('raw.orders'), sum(xmin::text::bigint) FROM raw.orders") == size


def test_columns_of_the_target_s_own_keep_their_defaults_and_what_others_wrote(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    shop.query(
        "CREATE SCHEMA raw; CREATE TABLE raw.orders (number bigint GENERATED ALWAYS AS IDENTITY, "
        "id bigint PRIMARY KEY, customer text, amount numeric, updated_at bigint, note text DEFAULT 'none' NOT NULL, "
        "double numeric GENERATED ALWAYS AS (amount * 2) STORED)"
    )
    shop.publish([order(1), order(2)])
    shop.query("UPDATE raw.orders SET note = 'called' WHERE id = 1")
    shop.publish([order(1, amount="2.00", updated_at=2), order(3)])
    assert shop.query("SELECT id, note, double FROM raw.orders ORDER BY id") == [
        (1, "called", Decimal("4.00")),
        (2, "none", Decimal("3.00")),
        (3, "none", Decimal("3.00")),
    ]
    assert shop.query("SELECT number FROM raw.orders WHERE id <= 2 ORDER BY id") == [(1,), (2,)]


@pytest.mark.parametrize(("kind", "before", "after"), EQUAL_OR_WITHOUT_EQUALITY)
def test_a_value_that_is_stored_otherwise_is_written_and_one_that_is_not_is_left(
    make_shop: MakeShop, kind: str, before: str, after: str
) -> None:
    shop = make_shop("upsert", schema=with_content(kind), cursor=None)
    shop.query(THEIR_TYPES)
    shop.publish([(1, before), (2, None)])
    was = shop.fingerprint()
    shop.publish([(1, before), (2, None)])
    assert shop.fingerprint() == was, "nothing has changed"
    shop.publish([(1, after), (2, before)])
    assert shop.query("SELECT id, ROW(content)::text FROM raw.orders ORDER BY id") == [
        (1, shown(shop, kind, after)),
        (2, shown(shop, kind, before)),
    ]


def with_content(kind: str) -> SourceSchema:
    return SourceSchema((Column("id", "bigint"), Column("content", "string", native_type=kind)))


def shown(shop: Shop, kind: str, value: str) -> str:
    return str(shop.query(f"SELECT ROW(%s::{kind})::text", value)[0][0])
