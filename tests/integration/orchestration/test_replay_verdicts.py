"""What keeps rows in the quarantine when they are replayed: expressions, PostgreSQL itself, validators of the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hakiri_dagster.cli.quarantine_commands import Filters, show
from hakiri_dagster.cli.replay_command import replay
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.test_quarantine_replay import (
    ANY,
    EMAIL,
    KEPT,
    MODES,
    SRC,
    add,
    database,
    ids,
    replayed,
)

Declare = Callable[..., ShopProject]

REFUSED = "refused_by_destination"
NO_X = "ALTER TABLE raw.orders ADD CONSTRAINT no_x CHECK (email <> 'x') NOT VALID"
NO_X_DOMAIN = "ALTER DOMAIN no_x ADD CONSTRAINT no_x CHECK (VALUE <> 'x') NOT VALID"
MESSAGES = {
    NO_X: 'new row for relation "orders" violates check constraint "no_x"',
    NO_X_DOMAIN: 'value for domain no_x violates check constraint "no_x"',
}


@pytest.fixture
def orders(shop: ShopProject) -> ShopProject:
    shop.execute(SRC)
    return shop


def loads(shop: ShopProject) -> list[tuple[Any, ...]]:
    return shop.rows("SELECT load_id, rows, is_replay FROM hakiri.ledger ORDER BY 1")


def test_expressions_of_today_are_asked_of_the_rows_as_they_come_back(orders: ShopProject) -> None:
    def longer_than(most: int) -> dict[str, Any]:
        text = f"length(email) > {most} AND at < TIMESTAMP '2027-01-01 00:00:00'"
        return {"type": "expression", "id": "long", "expression": text, "on_fail": "skip"}

    shop = database(orders, longer_than(2), **MODES["append"])
    add(shop, (1, 0, "a@b"), (2, 1, "x"), (3, 2, "yy"))
    assert shop.apply()["orders"]["error"] is None
    loud = {"type": "expression", "id": "loud", "expression": "email = upper(email)", "on_fail": "warn"}
    database(shop, longer_than(1), loud, **MODES["append"])
    told = replayed(shop)
    assert (told["replayed"], told["held"], told["error"]) == (1, [{"rule": "long", "rows": 1}], None)
    assert ids(shop) == [1, 3]
    assert shop.rows(KEPT) == [("long", "skip", "2"), ("loud", "warn", "3")]


@pytest.mark.parametrize("settings", [{}, {"empty_as_null": True}], ids=["direct", "through Spark"])
def test_rows_that_are_alike_stay_until_one_of_them_is_gone(orders: ShopProject, settings: dict[str, Any]) -> None:
    """A row that was read again by a later slice is not alike with itself."""
    unique = {"type": "unique_within_load", "field": "email", "id": "alone", "on_fail": "skip"}
    table = {"incremental": "at", "backfill": {"window": "1mo"}, "load": {"mode": "append"} | settings}
    shop = database(orders, unique, EMAIL, **table)
    add(shop, (1, 0, "a@b"), (2, 1, "x"), (3, 1, "x"), (4, 2, "y"), (5, 35, "y"), (6, 36, "a@b"), (7, 37, "z"))
    shop.apply()
    add(shop, (8, 38, "c@d"))
    shop.apply()
    assert ids(shop) == [1, 6, 8]
    database(shop, unique, ANY, **table)
    told = replayed(shop)
    assert (told["replayed"], told["held"], told["error"]) == (3, [{"rule": "alone", "rows": 2}], None)
    assert ids(shop) == [1, 4, 5, 6, 7, 8]
    shop.execute("DELETE FROM hakiri.quarantine_shop_orders WHERE \"row\"->>'id' = '3'")
    assert (replayed(shop)["replayed"], ids(shop)) == (1, [1, 2, 4, 5, 6, 7, 8])


@pytest.mark.parametrize("refusal", [NO_X, NO_X_DOMAIN], ids=["check", "domain"])
@pytest.mark.parametrize("mode", MODES)
def test_rows_that_postgresql_refuses_stay_with_its_message_and_the_others_go_in(
    orders: ShopProject, mode: str, refusal: str
) -> None:
    shop = database(orders, EMAIL, **MODES[mode])
    add(shop, (1, 0, "a@b"), (2, 1, "x"), (3, 2, "y"), (4, 3, "z"), (5, 3, "x"))
    shop.apply()
    shop.execute("CREATE DOMAIN no_x AS text; ALTER TABLE raw.orders ALTER email TYPE no_x")
    shop.execute(refusal)
    warns = {"type": "one_of", "field": "email", "values": ["a@b", "y"], "on_fail": "warn"}
    database(shop, ANY, warns, **MODES[mode])
    told = replayed(shop)
    assert (told["replayed"], told["held"], told["error"]) == (2, [{"rule": REFUSED, "rows": 2}], None)
    assert ids(shop) == [1, 3, 4]
    assert shop.rows(KEPT) == [("one_of_email", "warn", "4"), (REFUSED, "skip", "2"), (REFUSED, "skip", "5")]
    messages = f"SELECT DISTINCT message FROM hakiri.quarantine_shop_orders WHERE \"ruleId\" = '{REFUSED}'"
    assert shop.rows(messages) == [(MESSAGES[refusal],)]
    shop.execute(
        "ALTER TABLE raw.orders DROP CONSTRAINT no_x" if refusal == NO_X else "ALTER DOMAIN no_x DROP CONSTRAINT no_x"
    )
    assert (replayed(shop)["replayed"], ids(shop)) == (2, [1, 2, 3, 4, 5])


def test_a_replay_in_which_no_row_passes_changes_nothing(orders: ShopProject) -> None:
    """Neither what stops a load for its bad rows nor what stops one that lacks every row is asked."""
    table = {"incremental": "at", "load": {"mode": "append", "bad_rows": "abort"}}
    shop = database(orders, EMAIL, **table)
    add(shop, (1, 0, "a@b"), (2, 1, "x"), (3, 2, "x"))
    shop.apply()
    shop.execute(NO_X)
    before = loads(shop), shop.rows("SELECT o.*, xmin FROM raw.orders o")
    for rule, held in ((EMAIL, "regex_email"), (ANY, REFUSED)):
        database(shop, rule, **table)
        told = replayed(shop)
        assert (told["replayed"], told["held"], told["error"]) == (0, [{"rule": held, "rows": 2}], None)
        assert told["chunks"] == {"done": 1, "failed": 0}
        assert shop.rows(KEPT) == [(held, "skip", "2"), (held, "skip", "3")]
    assert (loads(shop), shop.rows("SELECT o.*, xmin FROM raw.orders o")) == before


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_rows_that_a_load_was_refused_are_replayed_as_they_were(shop: ShopProject, mode: str) -> None:
    shop.execute(
        """
        CREATE SCHEMA src;
        CREATE TABLE src.orders (
            id integer PRIMARY KEY, big bigint, f double precision, r real, n numeric(30,10), u numeric, b bytea,
            d date, t timestamp, z timestamptz, j jsonb, a text[], i interval, g uuid, s text, "Größe, in m²" boolean);
        INSERT INTO src.orders (id) VALUES (1)
        """
    )
    table = {"primary_key": ["id"], "load": {"mode": mode}, "incremental": "id", "backfill": {"window": 1000}}
    database(shop, **table)
    shop.apply()
    shop.execute("ALTER TABLE raw.orders ADD CONSTRAINT few CHECK (id < 2) NOT VALID")
    shop.execute(
        """
        INSERT INTO src.orders VALUES
            (2, 9223372036854775807, 'nan', '-infinity', 1e-10, 1e40, '\\x00ff', '9999-12-31',
             '1999-12-31 23:59:59.123456', '2026-01-01 12:00:00+02', '{"a": 1.50}', '{a,NULL}', '1 day',
             gen_random_uuid(), E'a\\tb', true),
            (3, -1, 1e300, 0.1, -12345678901234567890.5, 'nan', '', '0001-01-01', '0001-01-01',
             '2026-01-01', 'null', '{}', '-3 months', gen_random_uuid(), '', false),
            (4, 0, '-0', '-0', 0, 0, NULL, '20000-12-31', '20000-12-31', NULL, '"[]"', NULL, NULL, NULL, NULL, NULL)
        """
    )
    told = shop.apply()["orders"]
    assert (told["quarantined"], told["error"]) == (3, None)
    assert {rule for rule, _, _ in shop.rows(KEPT)} == {REFUSED}
    shop.execute("ALTER TABLE raw.orders DROP CONSTRAINT few")
    again = replayed(shop)
    assert (again["left"], again["replayed"], again["error"]) == ([], 3, None)
    columns = (
        'id, big, f::text, r::text, n, u::text, b, d::text, t::text, z::text, j::text, a, i::text, g, s, "Größe, in m²"'
    )
    query = f"SELECT {columns} FROM {{}} ORDER BY 1"
    assert shop.rows(query.format("raw.orders")) == shop.rows(query.format("src.orders"))


def test_rows_that_stay_keep_the_place_that_they_came_from(
    csv_shop: Declare, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = csv_shop(path="data/orders/", row_level=[EMAIL])
    shop.file("data/orders/a.csv", "id,email\n1,a@b\n2,x\n3,\n4,z\n")
    shop.apply()
    shop.execute(NO_X)
    rules = [{"type": "not_null", "field": "email", "on_fail": "skip"}, EMAIL | {"pattern": "y", "on_fail": "warn"}]
    shop.execute(
        "UPDATE hakiri.quarantine_shop_orders SET \"row\" = jsonb_set(\"row\", '{email}', 'null') "
        "WHERE \"row\"->>'id' = '4'"
    )
    shop.file("data/orders/b.csv", "id,email\n5,a@b\n6,w\n")
    shop.apply()
    csv_shop(path="data/orders/", row_level=rules)
    assert (replayed(shop)["replayed"], replayed(shop)["error"]) == (1, None)
    capsys.readouterr()
    assert show(shop.root, "shop", None, Filters(), 10, True) == 0
    (told,) = json.loads(capsys.readouterr().out)["tables"]
    places = {(row["rule"], row["row"]["id"], row["source_file"][-5:], row["source_line"]) for row in told["sample"]}
    assert places == {
        (REFUSED, 2, "a.csv", 3),
        ("not_null_email", 4, "a.csv", 5),
        ("regex_email", 6, "b.csv", 3),
    }


def test_validators_of_the_table_are_asked_of_it_as_the_replay_would_leave_it(
    csv_shop: Declare, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = csv_shop(path="data/orders/", row_level=[EMAIL])
    shop.file("data/orders/a.csv", "id,email\n1,a@b\n2,x\n")
    shop.file("data/orders/b.csv", "id,email\n3,a@b\n4,y\n5,x\n")
    shop.apply()
    gates = {
        "row_count": [{"min": 2}, {"scope": "table", "max": 3}],  # the first is about loads of the source
        "accepted_values": {"column": "email", "values": ["a@b"], "scope": "table", "on_fail": "warn"},
    }
    csv_shop(path="data/orders/", row_level=[ANY], dataset_level=gates)
    before = loads(shop)
    capsys.readouterr()
    assert replay(shop.root, "shop", None, Filters(), as_json=True) == 1
    (told,) = json.loads(capsys.readouterr().out)["tables"]
    assert (told["replayed"], told["chunks"]) == (1, {"done": 1, "failed": 1})
    assert "chunk b.csv-" in told["error"]
    assert "nothing was published: table_row_count: 5 row(s)" in told["error"]
    warned = [text for text in told["warnings"] if "table_accepted_values_email" in text]
    assert [text.partition(".csv-")[0] for text in warned] == ["chunk a", "chunk b"]
    assert ids(shop) == [1, 2, 3]
    assert shop.rows(KEPT) == [("regex_email", "skip", "4"), ("regex_email", "skip", "5")]
    assert len(loads(shop)) == len(before) + 1
    csv_shop(path="data/orders/", row_level=[ANY], dataset_level={"row_count": {"scope": "table", "max": 5}})
    assert (replayed(shop)["replayed"], ids(shop)) == (2, [1, 2, 3, 4, 5])
