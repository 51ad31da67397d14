"""Destinations that are away, shut, full or not as expected; and rivals."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest

from hakiri_dagster.destinations.contract import Target
from hakiri_dagster.destinations.postgres.destination import PostgresDestination
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.apply import Applier
from hakiri_dagster.pipeline.survey import Survey
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]


@pytest.fixture
def orders(csv_shop: Declare) -> ShopProject:
    shop = csv_shop()
    shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
    return shop


def landing_at(shop: ShopProject, url: str) -> None:
    destination = {"connector": "postgres", "config": {"url": url, "schema": "raw"}}
    source = {"connector": "files", "config": {"path": "data", "format": "csv"}}
    shop.manifest({"id": "shop", "source": source, "tables": [{"name": "orders"}], "destination": destination})


def database_of(shop: ShopProject) -> str:
    return shop.url.rpartition("/")[2]


class TestAway:
    @pytest.mark.parametrize(
        ("url", "what", "hint"),
        [
            ("postgresql://u:s3cret@127.0.0.1:1/x", "Connection refused", "is the destination running"),
            ("postgresql://u:s3cret@no-such-host.invalid/x", "failed to resolve host", "is the destination running"),
        ],
    )
    def test_it_is_told_and_other_pipelines_go_on(self, orders: ShopProject, url: str, what: str, hint: str) -> None:
        landing_at(orders, url)
        source = {"connector": "files", "config": {"path": "data", "format": "csv"}}
        orders.manifest({"id": "other", "source": source, "tables": [{"name": "items", "path": "data/orders.csv"}]})
        told = orders.apply()
        error = told["orders"]["error"]
        assert error.startswith("shop/orders (postgresql://u@")
        assert what in error
        assert f"hint: {hint}" in error
        assert "s3cret" not in error
        assert told["items"]["rows"] == 2
        landing_at(orders, orders.url)
        assert orders.apply()["orders"]["rows"] == 2

    def test_a_wrong_password_is_told_without_it(self, orders: ShopProject) -> None:
        landing_at(orders, re.sub(r":[^:@/]+@", ":s3cret@", orders.url))
        error = orders.apply()["orders"]["error"]
        assert "password authentication failed" in error
        assert "hint: check the user and password in the destination's url" in error
        assert "s3cret" not in error

    def test_one_that_may_only_be_read_is_told_and_left_alone(self, orders: ShopProject) -> None:
        with psycopg.connect(orders.url, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            name = psycopg.sql.Identifier(database_of(orders))
            alter = psycopg.sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
            connection.execute(alter.format(name, psycopg.sql.SQL("on")))
            told = orders.apply()["orders"]
            assert "in a read-only transaction" in told["error"]
            assert "point the url at the primary" in told["error"]
            assert told["chunks"] == {"done": 0, "failed": 0, "skipped": 0, "pending": 1}
            connection.execute(alter.format(name, psycopg.sql.SQL("off")))
        assert orders.apply()["orders"]["rows"] == 2

    def test_one_that_is_slow_is_waited_for(self, orders: ShopProject) -> None:
        orders.apply()
        orders.file("data/orders.csv", "id,v\n3,c\n")
        with closing(psycopg.connect(orders.url)) as rival:
            rival.execute("LOCK TABLE raw.orders IN ACCESS EXCLUSIVE MODE")
            threading.Timer(1.0, rival.rollback).start()
            assert orders.apply()["orders"]["error"] is None
        assert orders.column("orders", "id") == [3]

    def test_a_table_that_stays_locked_is_told_and_loaded_later(self, orders: ShopProject) -> None:
        orders.apply()
        landing_at(orders, f"{orders.url}?options=-c%20lock_timeout%3D200ms")
        orders.file("data/orders.csv", "id,v\n3,c\n")
        with closing(psycopg.connect(orders.url)) as rival:
            rival.execute("LOCK TABLE raw.orders IN ACCESS EXCLUSIVE MODE")
            error = orders.apply()["orders"]["error"]
        assert "canceling statement due to lock timeout\n  hint: another session holds the table locked" in error
        assert orders.apply()["orders"]["rows"] == 1
        assert orders.column("orders", "id") == [3]

    @pytest.mark.parametrize("mode", ["append", "truncate", "upsert"])
    def test_a_disk_that_fills_up_in_the_middle_leaves_the_target_as_it_was(self, csv_shop: Declare, mode: str) -> None:
        """The server says so at the second row; a disk of its own would need root's rights."""
        shop = csv_shop(load={"mode": mode}, primary_key=["id"])
        shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
        shop.apply()
        shop.execute(
            """
            CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.id = 4 THEN
                    RAISE EXCEPTION 'could not extend file "base/1": No space left on device' USING ERRCODE = '53100';
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER full_disk BEFORE INSERT ON raw.orders FOR EACH ROW EXECUTE FUNCTION full_disk();
            """
        )
        shop.file("data/orders.csv", "id,v\n1,x\n3,c\n4,d\n")
        told = shop.apply()["orders"]
        assert told["chunks"]["failed"] == 1
        assert "No space left on device" in told["error"]
        assert "the destination's disk is full: free space there, then apply again" in told["error"]
        assert shop.rows("SELECT id, v FROM raw.orders ORDER BY id") == [(1, "a"), (2, "b")]
        shop.execute("DROP TRIGGER full_disk ON raw.orders")
        assert shop.apply()["orders"]["error"] is None
        assert {1: "x", 3: "c", 4: "d"}.items() <= dict(shop.rows("SELECT id, v FROM raw.orders")).items()


class TestTargets:
    def test_a_not_null_column_that_nothing_fills_is_told_before_a_row_moves(self, orders: ShopProject) -> None:
        orders.execute("CREATE SCHEMA raw")
        orders.execute("CREATE TABLE raw.orders (id bigint, v text, must text NOT NULL)")
        told = orders.apply()["orders"]
        assert told["error"].startswith("shop/orders: the target's column must is NOT NULL without a default")
        assert told["chunks"]["pending"] == 1
        orders.execute("ALTER TABLE raw.orders ALTER must SET DEFAULT 'd'")
        assert orders.apply()["orders"]["error"] is None
        assert orders.column("orders", "must") == ["d", "d"]

    def test_columns_that_the_target_fills_itself_are_left_to_it(self, orders: ShopProject) -> None:
        orders.execute("CREATE SCHEMA raw")
        orders.execute(
            "CREATE TABLE raw.orders (id bigint, v text, nr bigint GENERATED ALWAYS AS IDENTITY,"
            " twice bigint GENERATED ALWAYS AS (id * 2) STORED)"
        )
        assert orders.apply()["orders"]["error"] is None
        assert orders.rows("SELECT id, nr, twice FROM raw.orders ORDER BY id") == [(1, 1, 2), (2, 2, 4)]

    @pytest.mark.parametrize("made", ["ALWAYS AS IDENTITY", "ALWAYS AS (7) STORED"])
    def test_a_generated_column_that_the_source_has_is_told(self, orders: ShopProject, made: str) -> None:
        orders.execute("CREATE SCHEMA raw")
        orders.execute(f"CREATE TABLE raw.orders (id bigint GENERATED {made}, v text)")
        error = orders.apply()["orders"]["error"]
        assert error == "shop/orders: id is generated by the target and cannot be loaded; leave it out at the source"

    def test_a_column_of_a_type_that_cannot_hold_the_sources_is_told(self, orders: ShopProject) -> None:
        orders.execute("CREATE SCHEMA raw")
        orders.execute("CREATE TABLE raw.orders (id uuid, v text)")
        error = orders.apply()["orders"]["error"]
        assert "id is int in the source and uuid in the target" in error.replace("bigint", "int")
        orders.execute("ALTER TABLE raw.orders ALTER id TYPE bigint USING 0")
        assert orders.apply()["orders"]["rows"] == 2

    @pytest.mark.parametrize(
        "other", ["VIEW raw.orders AS SELECT 1 AS id", "SEQUENCE raw.orders", "TYPE raw.orders AS (id int)"]
    )
    def test_something_else_of_the_targets_name_is_left_alone(self, orders: ShopProject, other: str) -> None:
        orders.execute("CREATE SCHEMA raw")
        orders.execute(f"CREATE {other}")
        assert "raw.orders exists and is not a table\n  hint: give" in orders.apply()["orders"]["error"]
        orders.execute(f"DROP {other.split()[0]} raw.orders")
        assert orders.apply()["orders"]["rows"] == 2

    def test_a_dropped_schema_is_made_and_loaded_anew(self, orders: ShopProject) -> None:
        orders.apply()
        orders.execute("DROP SCHEMA raw CASCADE")
        assert orders.apply()["orders"]["rows"] == 2
        assert orders.column("orders", "id") == [1, 2]

    def test_a_dropped_column_is_added_again_and_filled_by_what_is_loaded(self, orders: ShopProject) -> None:
        orders.apply()
        orders.execute("ALTER TABLE raw.orders DROP COLUMN v")
        orders.file("data/orders.csv", "id,v\n1,a\n3,c\n")
        assert orders.apply()["orders"]["error"] is None
        assert orders.rows("SELECT id, v FROM raw.orders ORDER BY id") == [(1, "a"), (3, "c")]

    def test_rows_are_not_doubled_when_the_target_lost_what_tells_them_apart(self, orders: ShopProject) -> None:
        orders.apply()
        orders.execute("ALTER TABLE raw.orders DROP COLUMN _hakiri_load_id")
        orders.file("data/orders.csv", "id,v\n1,a\n3,c\n")
        assert "the target lost its column _hakiri_load_id" in orders.apply()["orders"]["error"]
        assert orders.column("orders", "id") == [1, 2]
        orders.execute("DROP TABLE raw.orders")
        assert orders.apply()["orders"]["error"] is None
        assert orders.column("orders", "id") == [1, 3]


class TestSomebodyElse:
    def test_three_applies_at_once_load_every_row_once(self, csv_shop: Declare) -> None:
        shop = csv_shop(path="data/orders/")
        for number in range(6):
            lines = "".join(f"{number * 1000 + line}\n" for line in range(500))
            shop.file(f"data/orders/{number}.csv", f"id\n{lines}")
        told = [applied["orders"] for applied in shop.apply_at_once(3)]
        assert [entry["error"] for entry in told] == [None] * 3
        assert sum(entry["rows"] for entry in told) == 3000
        for entry in told:
            assert all("another run" in warning for warning in entry["warnings"])
        assert shop.rows("SELECT count(*), count(DISTINCT id) FROM raw.orders") == [(3000, 3000)]
        assert shop.apply()["orders"]["chunks"]["done"] == 0

    def test_what_another_apply_publishes_while_one_looks_is_not_loaded_again(
        self, shop: ShopProject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source = {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}}
        table = {"name": "orders", "incremental": "id", "backfill": {"window": 10}}
        shop.manifest({"id": "shop", "source": source, "tables": [table]})
        shop.execute("CREATE SCHEMA src")
        shop.execute("CREATE TABLE src.orders AS SELECT generate_series(1, 12) AS id")
        shop.apply()
        shop.execute("INSERT INTO src.orders VALUES (13)")
        describe = PostgresDestination.describe
        looks = iter(["the plan's", "the run's"])

        def describing(destination: PostgresDestination, table: Table) -> Target | None:
            if next(looks) == "the plan's":
                return describe(destination, table)
            monkeypatch.setattr(PostgresDestination, "describe", describe)
            assert shop.apply()["orders"]["rows"] == 2, "after the audit DB was read, and before the ledger is"
            return describe(destination, table)

        monkeypatch.setattr(PostgresDestination, "describe", describing)
        assert shop.apply()["orders"]["chunks"]["done"] == 0
        assert shop.column("orders", "id") == list(range(1, 14))

    def test_a_source_table_dropped_after_the_plan_stops_its_own_table(
        self, shop: ShopProject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source = {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}}
        shop.manifest({"id": "shop", "source": source, "tables": [{"name": "orders"}, {"name": "items"}]})
        shop.execute("CREATE SCHEMA src")
        shop.execute("CREATE TABLE src.orders AS SELECT 1 AS id")
        shop.execute("CREATE TABLE src.items AS SELECT 2 AS id")
        load_due = Applier.load_due

        def dropping(applier: Applier, table: Table, survey: Survey) -> tuple[str, ...]:
            shop.execute("DROP TABLE IF EXISTS src.orders")
            return load_due(applier, table, survey)

        with monkeypatch.context() as patch:
            patch.setattr(Applier, "load_due", dropping)
            told: dict[str, Any] = shop.apply()
        assert "the source has no table or view src.orders" in told["orders"]["error"]
        assert (told["items"]["rows"], told["items"]["error"]) == (1, None)
        shop.execute("CREATE TABLE src.orders AS SELECT 1 AS id")
        assert shop.apply()["orders"]["rows"] == 1
