"""row_count_matches_source: the source is counted once more, and its values are summed up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.test_validators import EVERY_MODE, evaluation, numbers

Declare = Callable[..., ShopProject]

COUNTED = {"row_count_matches_source": {}}
SUMMED = {"row_count_matches_source": {"checksum": True}}
CHECK = "row_count_matches_source"

ALTERED = """
CREATE FUNCTION raw.altered() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.code := NEW.code + 1; RETURN NEW; END $$;
CREATE TRIGGER altered BEFORE INSERT ON raw.orders FOR EACH ROW EXECUTE FUNCTION raw.altered()
"""


def observed(shop: ShopProject) -> str:
    return str(evaluation(shop, CHECK).metadata["observed"].value)


@pytest.mark.parametrize("mode", EVERY_MODE)
def test_rows_of_files_are_those_of_the_source_in_every_mode(csv_shop: Declare, mode: str) -> None:
    load = {"mode": mode} | ({"watermark_column": "id"} if mode == "incremental_watermark" else {})
    shop = csv_shop(primary_key=["id"], load=load, dataset_level=SUMMED)
    merged = mode in ("upsert", "delete_missing", "scd2")  # of a key that occurs twice one row stays
    shop.file("data/orders.csv", f"id,code,name\n1,1,\n2,2,ü\n{2 if merged else 3},3,b\n")
    told = shop.apply()["orders"]
    assert (told["error"], told["warnings"]) == (None, [])
    assert observed(shop) == "3 row(s) here, 3 at the source; the same values"


def test_values_that_the_destination_alters_do_not_pass(csv_shop: Declare) -> None:
    shop = csv_shop(load={"mode": "append"}, dataset_level=SUMMED)
    shop.file("data/orders/1.csv", "id,code\n1,1\n")
    assert shop.apply()["orders"]["error"] is None
    shop.execute(ALTERED)
    shop.file("data/orders/2.csv", "id,code\n2,1\n")
    assert "1 row(s) here, 1 at the source; other values: checksum" in shop.apply()["orders"]["error"]
    assert shop.column("orders", "id") == [1]


def test_chosen_columns_are_summed_up_alone(csv_shop: Declare) -> None:
    shop = csv_shop(load={"mode": "append"}, dataset_level={CHECK: {"checksum": True, "columns": ["id"]}})
    shop.file("data/orders/1.csv", "id,code\n1,1\n")
    shop.apply()
    shop.execute(ALTERED)
    shop.file("data/orders/2.csv", "id,code\n2,1\n")
    assert shop.apply()["orders"]["error"] is None


def test_rows_that_were_set_aside_are_counted_and_no_values_compared(csv_shop: Declare) -> None:
    rule = {"type": "not_null", "field": "name", "on_fail": "skip"}
    shop = csv_shop(columns={"id": "bigint"}, rowLevel=[rule], dataset_level=SUMMED)
    shop.file("data/orders.csv", "id,name\n1,a\n2,\nx,b\n")
    assert shop.apply()["orders"]["error"] is None
    assert (
        observed(shop) == "1 row(s) here and 2 set aside, 3 at the source; values not compared, for rows were set aside"
    )
    assert numbers(shop, CHECK) == {"rows": 1, "rows_set_aside": 2, "rows_at_source": 3}


def test_each_window_is_compared_with_its_own_rows(csv_shop: Declare) -> None:
    shop = csv_shop(incremental="day", load={"mode": "append"}, backfill={"window": "1mo"}, dataset_level=SUMMED)
    shop.file("data/orders/1.csv", "id,day\n1,2024-01-01\n2,2024-02-01\n3,\nx,\n")
    shop.file("data/orders/2.csv", "id,day\n4,2024-01-31\n5,2024-02-03\n6,2024-02-29\n")
    told = shop.apply()["orders"]
    assert (told["error"], told["rows"]) == (None, 6 + (1 - told["quarantined"]))


TYPED = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "small": pa.array([1, -2, None], pa.int16()),
        "text": pa.array(["a|b", "", "ü\n"]),
        "number": pa.array([Decimal("1.50"), Decimal("-100.00"), None], pa.decimal128(12, 2)),
        "day": pa.array([date(1969, 12, 31), date(2024, 2, 29), None]),
        "moment": pa.array([datetime(2024, 1, 1, 12, 0, 0, 120, UTC), datetime(1812, 1, 1, tzinfo=UTC), None]),
        "flag": pa.array([True, False, None]),
        "bytes": pa.array([b"\x00\xff", b"", None]),
        "ratio": pa.array([0.1, float("nan"), None]),
        "tags": pa.array([["a"], [], None]),
    }
)


def test_all_that_two_engines_write_alike_is_compared(shop: ShopProject) -> None:
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "parquet"}},
            "tables": [{"name": "orders", "dataset_level": SUMMED}],
        }
    )
    pq.write_table(TYPED, shop.file("data/orders.parquet", b""))
    assert shop.apply()["orders"]["error"] is None
    assert observed(shop) == "3 row(s) here, 3 at the source; the same values; not compared: ratio, tags"


SOURCE = """
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TABLE public.orders (
    id bigint, small smallint, text varchar(20), number numeric(12,2), wide numeric, day date, moment timestamptz,
    local timestamp, flag boolean, bytes bytea, ratio float8, tags text[], doc jsonb, key uuid, mood mood,
    day_time time);
INSERT INTO public.orders VALUES
    (1, 1, 'a', 1.5, 1.50, '2024-01-31', '2024-01-31 12:00+02', '2024-01-31 12:00', true, '\\x00ff', 'nan', '{a,NULL}',
     '{"b": 1, "a": [2]}', '6f9619ff-8b86-d011-b42d-00c04fc964ff', 'bad', '12:30'),
    (2, NULL, '', -3, NULL, NULL, NULL, NULL, NULL, NULL, -0.0, NULL, NULL, NULL, NULL, NULL);
"""


READER = """
CREATE FUNCTION public.reads_the_target() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    LOCK TABLE raw.orders IN ACCESS SHARE MODE NOWAIT;
    RAISE 'it lets go of the target';
EXCEPTION WHEN raise_exception THEN RETURN true;
END $$
"""


def from_postgres(shop: ShopProject, table: dict[str, Any], **pipeline: Any) -> dict[str, Any]:
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "postgres", "config": {"url": shop.url}},
            "tables": [{"name": "orders"} | table],
        }
        | pipeline
    )
    return dict(shop.apply()["orders"])


def test_a_postgresql_source_is_summed_up_by_itself_whatever_its_types(shop: ShopProject) -> None:
    shop.execute(SOURCE)
    assert from_postgres(shop, {"dataset_level": SUMMED})["error"] is None
    assert observed(shop) == "2 row(s) here, 2 at the source; the same values"


def test_the_source_is_counted_while_the_target_can_be_read(shop: ShopProject) -> None:
    """Also by a mode that keeps readers out: the source reads the target, whenever it is read itself."""
    shop.execute("CREATE VIEW public.orders AS SELECT 1 AS id")
    table = {"load": {"mode": "truncate"}, "dataset_level": SUMMED}
    assert from_postgres(shop, table)["error"] is None
    shop.execute(READER)
    shop.execute("CREATE OR REPLACE VIEW public.orders AS SELECT 2 AS id WHERE public.reads_the_target()")
    assert from_postgres(shop, table)["error"] is None
    assert shop.column("orders", "id") == [2]


def test_windows_of_a_postgresql_source_are_summed_up_one_by_one(shop: ShopProject) -> None:
    shop.execute(
        "CREATE TABLE public.orders AS SELECT i AS id, date '2024-01-01' + i AS day FROM generate_series(1, 99) AS i"
    )
    table = {"dataset_level": SUMMED, "backfill": {"window": "1mo"}, "incremental": "day", "load": {"mode": "append"}}
    told = from_postgres(shop, table)
    assert (told["error"], told["rows"], told["chunks"]["done"]) == (None, 99, 4)


def test_a_source_that_holds_another_number_of_rows_does_not_pass(shop: ShopProject) -> None:
    """Here a view that holds one more for whoever counts."""
    shop.execute(
        "CREATE VIEW public.orders AS SELECT i AS id FROM generate_series(1, 3) AS i "
        "WHERE i < 3 OR current_query() LIKE '%count(*)%'"
    )
    told = from_postgres(shop, {"dataset_level": COUNTED})
    assert "2 row(s) here, 3 at the source (expected: as many rows as the source holds)" in told["error"]


def test_a_column_that_was_named_and_cannot_be_compared_does_not_pass(shop: ShopProject) -> None:
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "parquet"}},
            "tables": [{"name": "orders", "dataset_level": {CHECK: {"checksum": True, "columns": ["id", "ratio"]}}}],
        }
    )
    pq.write_table(TYPED, shop.file("data/orders.parquet", b""))
    assert "the same values; not compared: ratio" in shop.apply()["orders"]["error"]


def test_no_column_that_can_be_compared_is_no_checksum(shop: ShopProject) -> None:
    check = {"checksum": True, "columns": ["ratio"], "on_fail": "warn"}
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "parquet"}},
            "tables": [{"name": "orders", "dataset_level": {CHECK: check}}],
        }
    )
    pq.write_table(TYPED, shop.file("data/orders.parquet", b""))
    assert shop.apply()["orders"]["error"] is None
    assert observed(shop) == "no checksum can be made of ratio"


def test_many_columns_are_summed_up(csv_shop: Declare) -> None:
    names = [f"c{number}" for number in range(130)]
    shop = csv_shop(dataset_level=SUMMED)
    shop.file("data/orders.csv", ",".join(names) + "\n" + ",".join(map(str, range(130))) + "\n")
    assert shop.apply()["orders"]["error"] is None
    assert observed(shop).endswith("the same values")


def test_empty_texts_that_become_null_are_the_same_at_the_source(shop: ShopProject) -> None:
    shop.execute(SOURCE)
    told = from_postgres(shop, {"dataset_level": SUMMED, "load": {"empty_as_null": True}})
    assert told["error"] is None
    assert observed(shop) == "2 row(s) here, 2 at the source; the same values"
