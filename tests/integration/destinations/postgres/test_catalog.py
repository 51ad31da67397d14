from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest

from hakiri_dagster.destinations.postgres import catalog
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.planning.columns import Column, SourceSchema
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import ORDERS, Shop, order, window


def columns_of(shop: Shop) -> dict[str, str]:
    target = shop.destination.describe(shop.table)
    assert target is not None
    return {column.name: column.type for column in target.columns}


def schema_of(*columns: tuple[str, str] | tuple[str, str, str]) -> SourceSchema:
    return SourceSchema(
        tuple(Column(name, kind, native_type=native[0] if native else None) for name, kind, *native in columns)
    )


def test_a_new_target_gets_the_sources_types(make_shop: MakeShop) -> None:
    schema = schema_of(
        ("id", "bigint", "integer"),
        ("price", "decimal(15,2)", "numeric(15,2)"),
        ("token", "string", "uuid"),
        ("tags", "array<string>", "text[]"),
        ("mood", "string", "shop_mood"),
        ("at", "timestamp"),
        ("doc", "struct<a:int>"),
    )
    shop = make_shop(schema=schema, cursor=None, columns={"id": "bigint"})
    shop.ensure()
    assert columns_of(shop) == {
        "id": "bigint", "price": "numeric(15,2)", "token": "uuid", "tags": "text[]", "mood": "text",
        "at": "timestamp with time zone", "doc": "jsonb", "_hakiri_load_id": "bigint",
    }  # fmt: skip


def test_a_type_that_exists_in_the_destination_is_kept(make_shop: MakeShop) -> None:
    shop = make_shop(schema=schema_of(("mood", "string", "shop_mood")), cursor=None)
    shop.query("CREATE TYPE shop_mood AS ENUM ('ok')")
    shop.ensure()
    assert columns_of(shop)["mood"] == "shop_mood"


@pytest.mark.parametrize("declared", ["nosuchtype", "text; DROP TABLE x", "int DEFAULT 1", "serial"])
def test_a_declared_type_that_is_none_is_an_error(make_shop: MakeShop, declared: str) -> None:
    shop = make_shop(columns={"id": declared})
    with pytest.raises(DestinationError, match="does not know"):
        shop.ensure()


def test_the_manifests_primary_key_wins(make_shop: MakeShop) -> None:
    schema = SourceSchema(ORDERS.columns, primary_key=("id",))
    assert make_shop("truncate", schema=schema, target_name="a").ensure().primary_key == ("id",)
    both = make_shop(schema=schema, primary_key=("id", "customer"), target_name="b").ensure()
    assert both.primary_key == ("id", "customer")


def test_rows_that_are_kept_beside_later_ones_need_not_be_alone_with_the_key_of_the_source(make_shop: MakeShop) -> None:
    shop = make_shop("append", schema=SourceSchema(ORDERS.columns, primary_key=("id",)))
    assert shop.ensure().primary_key == ()
    shop.publish([order(1, updated_at=1)], window(0, 10))
    shop.publish([order(1, updated_at=11)], window(10, 20))
    assert shop.ids() == [1, 1]


def test_full_provenance_adds_its_columns(make_shop: MakeShop) -> None:
    shop = make_shop(with_file_hash=True, load={"provenance": "full"})
    shop.ensure()
    added = {name: kind for name, kind in columns_of(shop).items() if name.startswith("_")}
    assert added == {
        "_hakiri_load_id": "bigint",
        "_source_file_hash": "bytea",
        "_hakiri_ingested_at": "timestamp with time zone",
        "_hakiri_row_hash": "bigint",
    }


def test_plan_tells_what_ensure_does_and_touches_nothing(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    planned = [change.description for change in shop.destination.planned_changes(shop.table, shop.schema)]
    assert planned == [
        "create schema raw",
        "create table raw.orders (id bigint, customer text, amount numeric(10,2), updated_at bigint, "
        "_hakiri_load_id bigint)",
        "create index on raw.orders (_hakiri_load_id)",
        "create unique index on raw.orders (id)",
    ]
    assert shop.destination.describe(shop.table) is None
    assert shop.query("SELECT to_regnamespace('hakiri'), to_regnamespace('raw')") == [(None, None)]
    shop.ensure()
    assert shop.destination.planned_changes(shop.table, shop.schema) == ()


def test_a_slices_rows_are_found_by_a_brin_index(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.ensure()
    definitions = shop.query("SELECT indexdef FROM pg_indexes WHERE tablename = 'orders'")
    assert len(definitions) == 1
    assert "USING brin (_hakiri_load_id)" in definitions[0][0]


def test_an_adopted_table_keeps_its_columns_and_gets_what_it_lacks(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.query("CREATE SCHEMA raw; CREATE TABLE raw.orders (extra text DEFAULT 'x', id integer, amount numeric(20,4))")
    shop.ensure()
    assert columns_of(shop) == {
        "extra": "text", "id": "integer", "amount": "numeric(20,4)", "customer": "text", "updated_at": "bigint",
        "_hakiri_load_id": "bigint",
    }  # fmt: skip
    shop.publish([order(1)])
    assert shop.query("SELECT extra, id FROM raw.orders") == [("x", 1)]


def test_equality_is_trusted_only_where_it_tells_all_values_apart(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "CREATE COLLATION folded FROM \"C\"; CREATE DOMAIN price AS numeric(15,2); CREATE TYPE mood AS ENUM ('ok');"
            "CREATE DOMAIN word AS text COLLATE folded;"
            "CREATE TABLE every (a bigint, b date, c char(10), d varchar(5), e text, f numeric(15,2), g price, h uuid,"
            ' i timestamptz, j bytea, k boolean, l mood, m text COLLATE "C",'
            " n numeric, o text COLLATE folded, p word, q text[], r jsonb, s double precision, t interval, u bpchar);"
            # as ICU has them, without which the embedded server is built
            "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'folded'"
        )
        found = connection.execute("SELECT 'every'::regclass::oid::bigint").fetchone()
        assert found is not None
        types = catalog.base_types(connection, found[0])
    assert "".join(sorted(name for name, kept in types.items() if kept.exact)) == "abcdefghijklm"


def test_two_processes_may_make_the_target_at_once(make_shop: MakeShop) -> None:
    shops = [make_shop("upsert", target_name=f"orders_{number % 2}") for number in range(6)]
    failures: list[BaseException] = []

    def ensure(shop: Shop) -> None:
        try:
            shop.ensure()
        except DestinationError as error:
            failures.append(error)

    threads = [threading.Thread(target=ensure, args=(shop,)) for shop in shops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert failures == []


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("CREATE TABLE raw.orders (id bytea)", {}, "id is bigint in the source and bytea in the target"),
    ("CREATE TABLE raw.orders (must text NOT NULL)", {}, "column must is NOT NULL without a default"),
    ('CREATE TABLE raw.orders ("ID" bigint)', {}, "differs from the target's ID in case only"),
    ("CREATE TABLE raw.orders (id bigint GENERATED ALWAYS AS IDENTITY)", {}, "id is generated by the target"),
    ("CREATE VIEW raw.orders AS SELECT 1 AS id", {}, "exists and is not a table"),
    ("CREATE TABLE raw.orders (updated_at text)", {}, "the cursor updated_at is text"),
    ("SELECT 1", {"primary_key": ("nope",)}, "primary_key names nope"),
    ("SELECT 1", {"columns": {"nope": "text"}}, "`columns` names nope"),
]


@pytest.mark.parametrize(("setup", "changes", "message"), REFUSED)
def test_a_target_that_cannot_be_loaded_is_refused_in_words(
    make_shop: MakeShop, setup: str, changes: dict[str, Any], message: str
) -> None:
    shop = make_shop(**changes)
    shop.query(f"CREATE SCHEMA raw; {setup}")
    with pytest.raises(DestinationError) as raised:
        shop.ensure()
    assert message in str(raised.value)
    assert "shop/orders" in str(raised.value) or "raw.orders" in str(raised.value)


def test_names_that_postgresql_would_cut_to_one_are_told(make_shop: MakeShop) -> None:
    long = "x" * 65
    shop = make_shop(schema=schema_of((long + "1", "int"), (long + "2", "int")), cursor=None)
    with pytest.raises(DestinationError, match=f"{long}1' and '{long}2' are one"):
        shop.ensure()


def test_a_long_name_is_one_column_however_often_it_is_loaded(make_shop: MakeShop) -> None:
    long = "é" * 40
    shop = make_shop(schema=schema_of((long, "bigint"), ("Upper", "int"), ("upper", "int")), cursor=None)
    shop.publish([(1, 2, 3)])
    shop.publish([(4, 5, 6)])
    assert shop.query('SELECT "Upper", upper FROM raw.orders') == [(5, 6)]
    assert list(columns_of(shop)) == ["é" * 31, "Upper", "upper", "_hakiri_load_id"]


def test_a_thousand_columns_can_be_loaded(make_shop: MakeShop) -> None:
    shop = make_shop(schema=schema_of(*((f"column {number}", "bigint") for number in range(1000))), cursor=None)
    shop.publish([tuple(range(1000))])
    assert shop.query('SELECT "column 999" FROM raw.orders') == [(999,)]


def test_more_columns_than_postgresql_takes_are_refused(make_shop: MakeShop) -> None:
    shop = make_shop(schema=schema_of(*((f"c{number}", "int") for number in range(1700))), cursor=None)
    with pytest.raises(DestinationError, match="1600 at most"):
        shop.ensure()


def test_a_partitioned_target_can_be_loaded(make_shop: MakeShop) -> None:
    shop = make_shop("truncate")
    shop.query(
        "CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint, customer text, amount numeric, updated_at bigint)"
        " PARTITION BY RANGE (id); CREATE TABLE raw.p PARTITION OF raw.orders DEFAULT"
    )
    shop.publish([order(1)])
    shop.publish([order(2)])
    assert shop.ids() == [2]


def test_a_target_can_be_described_without_rights_to_create(make_shop: MakeShop) -> None:
    shop = make_shop()
    assert shop.destination.describe(shop.table) is None
    shop.publish([order(1)])
    target = shop.destination.describe(shop.table)
    assert target is not None
    assert [column.nullable for column in target.columns] == [True] * 5
