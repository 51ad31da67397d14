"""Values that a column cannot hold, and cursors that no calendar expects."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

import dagster as dg
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

KEPT = 'SELECT "ruleId", message FROM hakiri.quarantine_shop_orders ORDER BY message, "row"::text'


def parquet_shop(shop: ShopProject, rows: pa.Table, **table: object) -> ShopProject:
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "parquet"}},
            "tables": [{"name": "orders"} | table],
        }
    )
    pq.write_table(rows, shop.file("data/orders.parquet", b""))
    return shop


class TestValues:
    def test_text_with_a_nul_byte_is_set_aside_readably(self, csv_shop: Declare) -> None:
        shop = csv_shop()
        shop.file("data/orders.csv", b"id,name\n1,a\x00b\n2,ok\n")
        told = shop.apply()["orders"]
        assert (told["rows"], told["quarantined"], told["error"]) == (1, 1, None)
        assert shop.rows("SELECT \"row\"->>'name' FROM hakiri.quarantine_shop_orders") == [("a\\u0000b",)]
        assert shop.column("orders", "name") == ["ok"]

    def test_timestamps_that_are_cut_are_counted_once_for_all_chunks_and_on_each_event(self, csv_shop: Declare) -> None:
        shop = csv_shop(path="data/orders/")
        shop.file("data/orders/a.csv", "id,at\n1,2024-05-06 07:08:09.1234567\n2,2024-05-06 07:08:09.1234560\n")
        shop.file("data/orders/b.csv", "id,at\n3,2024-05-06 07:08:09.1234567\n4,2024-05-06 07:08:09.123456001\n")
        warnings = shop.apply()["orders"]["warnings"]
        told = [warning for warning in warnings if "beyond microseconds" in warning]
        assert [warning.partition(";")[0] for warning in told] == [
            "3 timestamp(s) had digits beyond microseconds, which were cut: `at` (3)"
        ]
        records = shop.instance.fetch_materializations(dg.AssetKey(["shop", "orders"]), limit=10).records
        counts = [record.asset_materialization.metadata.get("timestamps_truncated") for record in records]
        assert sorted(count.value["at"] for count in counts if count is not None) == [1, 2]
        assert shop.column("orders", "at") == [datetime(2024, 5, 6, 7, 8, 9, 123456)] * 4

    def test_rows_with_timestamps_that_would_be_cut_are_quarantined_where_that_is_declared(
        self, csv_shop: Declare
    ) -> None:
        shop = csv_shop(load={"sub_microseconds": "quarantine"})
        shop.file("data/orders.csv", "id,at\n1,2024-05-06 07:08:09.1234567\n2,2024-05-06 07:08:09.1234560\n")
        told = shop.apply()["orders"]
        assert (told["rows"], told["quarantined"], told["error"]) == (1, 1, None)
        assert shop.rows(KEPT) == [("malformed", "`at` has digits beyond microseconds")]
        kept = shop.rows("SELECT \"row\"->>'line' FROM hakiri.quarantine_shop_orders")
        assert kept == [("1,2024-05-06 07:08:09.1234567",)]

    def test_nul_bytes_within_lists_and_structs_are_found(self, shop: ShopProject) -> None:
        rows = pa.table({"id": [1, 2, 3], "l": [["x\0"], ["y"], ["z"]], "s": [{"k": "v"}, {"k": "v\0"}, {"k": "v"}]})
        told = parquet_shop(shop, rows).apply()["orders"]
        assert (told["rows"], told["quarantined"], told["error"]) == (1, 2, None)
        assert shop.column("orders", "id") == [3]

    def test_bad_rows_stop_the_chunk_where_that_is_declared_and_are_kept(self, csv_shop: Declare) -> None:
        shop = csv_shop(path="data/orders/", load={"bad_rows": "abort"})
        shop.file("data/orders/a.csv", b"id,name\n1,a\x00b\n2,ok\n")
        shop.file("data/orders/b.csv", b"id,name\n3,ok\n")
        told = shop.apply()["orders"]
        assert (told["chunks"]["done"], told["chunks"]["failed"]) == (1, 1)
        assert "1 row(s) cannot be loaded" in told["error"]
        assert "name: PostgreSQL cannot store U+0000 in text" in told["error"]
        assert shop.column("orders", "id") == [3]
        shop.file("data/orders/a.csv", b"id,name\n1,ab\n2,ok\n")
        assert shop.apply()["orders"]["error"] is None
        assert shop.column("orders", "id") == [1, 2, 3]

    @pytest.mark.parametrize("mode", ["truncate", "blue_green", "delete_missing", "scd2"])
    @pytest.mark.parametrize("bad_rows", ["quarantine", "abort"])
    def test_a_source_whose_rows_are_all_bad_is_not_taken_for_an_empty_one(
        self, csv_shop: Declare, mode: str, bad_rows: str
    ) -> None:
        load = {"mode": mode, "bad_rows": bad_rows, "on_miss_action": "alert"}
        shop = csv_shop(primary_key=["id"], columns={"n": "integer"}, load=load)
        shop.file("data/orders.csv", "id,n\n1,1\n2,2\n")
        assert shop.apply()["orders"]["error"] is None
        shop.file("data/orders.csv", "id,n\n1,A1\n2,A2\n")
        told = shop.apply()["orders"]
        assert "none of 2 row(s) can be loaded, so nothing was changed; the first: `n` is no integer" in told["error"]
        assert "fail_on_empty_source" not in told["error"]
        kept = shop.rows("SELECT \"row\"->>'line' FROM hakiri.quarantine_shop_orders ORDER BY 1")
        assert kept == [("1,A1",), ("2,A2",)]
        assert shop.column("orders", "n") == [1, 2]
        with shop.runtime() as runtime:
            assert runtime.audit.alerts.newest() == ()

    def test_numbers_that_do_not_fit_their_declared_column_are_set_aside(self, csv_shop: Declare) -> None:
        shop = csv_shop(columns={"n": "numeric(5,2)", "i": "integer", "s": "smallint", "v": "varchar(3)"})
        bad = "12345.6,1,1,a\n1.255,1,1,a\n1,99999999999,1,a\n1,1,40000,a\n1,1,1,abcd\n"
        shop.file("data/orders.csv", f"n,i,s,v\n1.25,1,1,abc\n{bad}")
        told = shop.apply()["orders"]
        assert (told["rows"], told["quarantined"], told["error"]) == (1, 5, None)
        assert shop.rows("SELECT n, i, s, v FROM raw.orders") == [(Decimal("1.25"), 1, 1, "abc")]

    def test_an_adopted_table_with_narrower_columns_takes_what_fits(self, shop: ShopProject) -> None:
        shop.execute("CREATE SCHEMA raw")
        shop.execute("CREATE TABLE raw.orders (n numeric(5,2), s smallint, v varchar(3), d date)")
        moments = [datetime(2024, 1, 1), datetime(2024, 1, 1), None, None, datetime(2024, 1, 1, 5)]
        rows = pa.table(
            {
                "n": [1.5, 1e9, float("nan"), 4.0, 5.0],
                "s": [1, 2, 3, 70000, 5],
                "v": ["a", "b", "c", "d", "e"],
                "d": moments,
            }
        )
        told = parquet_shop(shop, rows).apply()["orders"]
        assert (told["rows"], told["quarantined"], told["error"]) == (2, 3, None)
        assert [message for _, message in shop.rows(KEPT)] == [
            "d: the value does not fit date",
            "n: the number does not fit numeric(5,2)",
            "s: the value does not fit smallint",
        ]
        assert shop.column("orders", "s") == [1, 3]

    def test_a_column_of_text_where_numbers_are_wanted_is_set_aside_whole(self, csv_shop: Declare) -> None:
        shop = csv_shop()
        shop.execute("CREATE SCHEMA raw")
        shop.execute("CREATE TABLE raw.orders (id bigint, v integer)")
        shop.file("data/orders.csv", "id,v\n1,a\n2,b\n")
        told = shop.apply()["orders"]
        assert "none of 2 row(s) can be loaded" in told["error"]
        assert shop.rows(KEPT)[0] == ("type", "v: the value does not fit integer")

    def test_nan_and_infinity_are_numbers(self, csv_shop: Declare) -> None:
        shop = csv_shop()
        shop.file("data/orders.csv", "id,x\n1,NaN\n2,-Infinity\n3,1.5\n")
        assert shop.apply()["orders"]["error"] is None
        assert shop.rows("SELECT x::text FROM raw.orders ORDER BY id") == [("NaN",), ("-Infinity",), ("1.5",)]

    def test_the_year_10000_is_stored_and_days_that_are_none_are_set_aside(self, csv_shop: Declare) -> None:
        shop = csv_shop(columns={"d": "date", "t": "timestamp"})
        shop.file(
            "data/orders.csv",
            "id,d,t\n1,0000-01-01,0000-01-01 00:00:00\n2,10000-01-01,10000-01-01 00:00:00\n3,2024-02-30,2024-01-01\n",
        )
        assert shop.apply()["orders"]["quarantined"] == 2
        assert shop.rows("SELECT d::text, t::text FROM raw.orders") == [("10000-01-01", "10000-01-01 00:00:00")]


class TestCursors:
    @pytest.mark.parametrize("window", ["1q", "1y", "400d"])
    def test_rows_dated_by_slip_are_loaded_with_all_others(self, csv_shop: Declare, window: str) -> None:
        shop = csv_shop(incremental="day", columns={"day": "date"}, backfill={"window": window})
        days = ["0001-01-01", "", "2026-01-01", "9999-01-01", "10000-01-01"]
        shop.file("data/orders.csv", "id,day\n" + "".join(f"{i},{day}\n" for i, day in enumerate(days)))
        told = shop.apply()["orders"]
        assert (told["rows"], told["error"]) == (len(days), None)
        assert shop.column("orders", "id") == list(range(len(days)))
        assert shop.apply()["orders"]["chunks"]["done"] == 0

    def test_rows_of_the_future_alone_are_loaded(self, csv_shop: Declare) -> None:
        shop = csv_shop(incremental="day")
        shop.file("data/orders.csv", "id,day\n1,2190-01-01\n")
        assert shop.apply()["orders"]["rows"] == 1
        assert shop.apply()["orders"]["chunks"]["done"] == 0

    def test_a_start_in_the_middle_of_a_window_loads_what_is_left_of_it(self, csv_shop: Declare) -> None:
        shop = csv_shop(incremental="day", backfill={"start_from": "2026-01-15"})
        shop.file("data/orders.csv", "id,day\n1,2026-01-01\n2,2026-01-20\n3,2026-02-20\n")
        assert shop.apply()["orders"]["rows"] == 2
        assert shop.column("orders", "id") == [2, 3]
        assert shop.apply()["orders"]["chunks"]["done"] == 0

    @pytest.mark.parametrize("window", ["1mo", "30d"])
    def test_rows_that_a_rewritten_file_lost_leave_windows_that_are_planned_no_more(
        self, csv_shop: Declare, window: str
    ) -> None:
        shop = csv_shop(path="data/orders/", incremental="day", backfill={"window": window})
        shop.file("data/orders/a.csv", "id,day\n1,2025-01-05\n2,2025-02-05\n")
        shop.file("data/orders/b.csv", "id,day\n3,2025-12-05\n")
        shop.apply()
        shop.file("data/orders/a.csv", "id,day\n4,2025-11-05\n")
        assert shop.apply()["orders"]["error"] is None
        assert shop.column("orders", "id") == [3, 4]
        assert shop.apply()["orders"]["chunks"]["done"] == 0

    def test_a_cursor_or_a_window_that_does_not_fit_stops_its_own_table_with_a_hint(self, shop: ShopProject) -> None:
        config = {"url": shop.url, "schema": "src"}
        tables = [
            {"name": "missing", "incremental": "nope"},
            {"name": "text", "incremental": "name"},
            {"name": "ids", "incremental": "id", "backfill": {"window": "1mo"}},
            {"name": "days", "incremental": "day", "backfill": {"window": 1000}},
            {"name": "fine", "incremental": "day", "backfill": {"window": "15m"}},
            {"name": "right", "incremental": "day"},
        ]
        shop.manifest({"id": "shop", "source": {"connector": "postgres", "config": config}, "tables": tables})
        shop.execute("CREATE SCHEMA src")
        for table in tables:
            shop.execute(
                f"CREATE TABLE src.{table['name']} AS SELECT 1 AS id, 'a'::text AS name, date '2026-01-01' AS day"
            )
        told = {name: (entry["error"] or "").split("\n  hint: ")[0] for name, entry in shop.apply().items()}
        assert told == {
            "missing": "shop/missing: the cursor column 'nope' does not exist",
            "text": "shop/text: the column 'name' of type text cannot be a cursor",
            "ids": "shop/ids: the cursor is a number, so the window '1mo' does not fit it",
            "days": "shop/days: the cursor is a date, so the window 1000 does not fit it",
            "fine": "shop/fine: a date has no time of day, so the window '15m' is finer than the cursor",
            "right": "",
        }
        assert shop.column("right", "id") == [1]

    @pytest.mark.parametrize("format_", ["parquet", "csv"])
    def test_rows_whose_cursor_is_nan_or_infinite_are_loaded_once(self, shop: ShopProject, format_: str) -> None:
        settings = {"incremental": "score", "columns": {"score": "double precision"}, "backfill": {"window": 10}}

        def write(scores: list[float | None]) -> None:
            rows = pa.table({"id": range(len(scores)), "score": pa.array(scores, pa.float64())})
            path = shop.file(f"data/orders.{format_}", b"")
            (pq.write_table if format_ == "parquet" else pc.write_csv)(rows, path)

        shop.manifest(
            {
                "id": "shop",
                "source": {"connector": "files", "config": {"path": "data", "format": format_}},
                "tables": [{"name": "orders"} | settings],
            }
        )
        write([5.5, math.nan, math.inf, -math.inf, None, 15.0])
        told = shop.apply()["orders"]
        assert (told["rows"], told["error"]) == (6, None)
        write([5.5, math.nan, math.inf, -math.inf, None, 15.0, math.nan])
        assert shop.apply()["orders"]["error"] is None
        assert shop.column("orders", "id") == list(range(7))
        assert shop.apply()["orders"]["chunks"]["done"] == 0
        shop.again("orders")
        assert shop.column("orders", "id") == list(range(7))

    def test_numbers_of_a_database_that_are_nan_or_infinite_are_loaded_once(self, shop: ShopProject) -> None:
        shop.execute("CREATE SCHEMA src")
        shop.execute("CREATE TABLE src.orders AS SELECT n AS id, n * 3.5 AS score FROM generate_series(1, 3) AS n")
        shop.execute("INSERT INTO src.orders VALUES (4, 'NaN'), (5, 'Infinity'), (6, '-Infinity'), (7, NULL)")
        shop.manifest(
            {
                "id": "shop",
                "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}},
                "tables": [{"name": "orders", "incremental": "score", "backfill": {"window": 5}}],
            }
        )
        told = shop.apply()["orders"]
        assert (told["rows"], told["error"]) == (7, None)
        assert shop.apply()["orders"]["chunks"]["done"] == 0
        shop.again("orders")
        assert shop.column("orders", "id") == list(range(1, 8))

    def test_a_cursor_beyond_64_bits_stops_its_table_with_a_hint(self, shop: ShopProject) -> None:
        rows = pa.table({"id": [1, 2], "n": pa.array([5, 2**64 - 1], pa.uint64())})
        told = parquet_shop(shop, rows, incremental="n", backfill={"window": 1000}).apply()["orders"]
        assert "orders.parquet: the cursor `n` reaches 18446744073709551615, which is no position" in told["error"]
        assert "hint: set it to NULL in such rows, or choose another cursor" in told["error"]

    def test_a_text_cursor_of_a_file_is_refused_with_the_cure(self, csv_shop: Declare) -> None:
        shop = csv_shop(incremental="name")
        shop.file("data/orders.csv", "id,name\n1,abc\n")
        error = shop.apply()["orders"]["error"]
        assert error.startswith("shop/orders: the cursor column `name` is of type string")
        assert "hint: declare its type" in error
