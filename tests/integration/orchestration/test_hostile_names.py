"""Names that are legal in the source and trouble anywhere else."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hakiri_dagster.orchestration.names import asset_key
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

COLUMNS = [
    "first name", "a.b", "back`tick", 'quo"te', "Upper", "upper", "select", "o'hara", "50%", "größe", "x]y", "a/b",
    "x" * 70,
]  # fmt: skip
TABLES = ["Order Lines", "a.b", 'qu"ote', "select", "o'hara", "x,y", "a/b", "50%", "back`tick", "..", "a_b", "ü"]
FILES = [
    "a,b.csv", "c d.csv", "e'f.csv", 'g"h.csv', "i%41.csv", "j[1].csv", "k\nl.csv", "{m}.csv", "ü.csv", "n*.csv",
    "#o?.csv", "back\\slash.csv", "-dash.csv", " lead.csv", "x" * 200 + ".csv",
]  # fmt: skip


def quoted_csv(*cells: str) -> str:
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells) + "\n"


@pytest.mark.parametrize("mode", ["append", "truncate", "upsert", "blue_green", "delete_missing", "scd2"])
def test_columns_keep_their_names_whatever_these_hold(csv_shop: Declare, mode: str) -> None:
    key = {"upsert_key": [COLUMNS[1]]} if mode in ("upsert", "delete_missing", "scd2") else {}
    shop = csv_shop(load={"mode": mode, "provenance": "full"} | key)
    shop.file("data/orders.csv", quoted_csv(*COLUMNS) + quoted_csv(*[f"v{i}" for i in range(len(COLUMNS))]))
    told = shop.apply()["orders"]
    assert (told["rows"], told["error"]) == (1, None)
    assert {name: shop.column("orders", name[:63]) for name in COLUMNS} == {n: [f"v{i}"] for i, n in enumerate(COLUMNS)}
    assert any("differ in case only" in warning for warning in told["warnings"])
    assert shop.apply()["orders"]["chunks"]["done"] == 0


def test_names_that_postgresql_would_cut_to_one_stop_the_table_until_one_is_renamed(csv_shop: Declare) -> None:
    shop = csv_shop()
    shop.file("data/orders.csv", quoted_csv("x" * 69 + "a", "x" * 69 + "b") + "1,2\n")
    told = shop.apply()["orders"]
    assert "shop/orders: columns" in told["error"]
    assert "are one to PostgreSQL, which keeps 63 bytes of a name; rename one at the source" in told["error"]
    assert told["chunks"]["pending"] == 1
    shop.file("data/orders.csv", quoted_csv("x" * 69 + "a", "b") + "1,2\n")
    csv_shop(target="renamed")
    assert shop.apply()["orders"]["error"] is None


def test_a_header_that_names_a_column_twice_is_refused_until_it_is_mended(csv_shop: Declare) -> None:
    shop = csv_shop()
    shop.file("data/orders.csv", "id,id\n1,2\n")
    assert "the header names `id` more than once" in shop.apply()["orders"]["error"]
    shop.file("data/orders.csv", "id,nr\n1,2\n")
    assert shop.apply()["orders"]["error"] is None
    assert shop.column("orders", "nr") == [2]


def test_a_name_that_every_table_of_postgresql_has_is_told(csv_shop: Declare) -> None:
    shop = csv_shop()
    shop.file("data/orders.csv", "id,ctid\n1,2\n")
    assert "every table of PostgreSQL has a ctid of its own; rename" in shop.apply()["orders"]["error"]


class TestColumnsNamedLikeOurs:
    """A table that we loaded is a source like any other; its provenance is not carried on as if it were data."""

    OURS = ("_hakiri_load_id", "_source_file_hash", "_hakiri_malformed", "_hakiri_file")

    def expect_left_out(self, shop: ShopProject) -> None:
        told = shop.apply()["orders"]
        assert (told["error"], told["quarantined"]) == (None, 0)
        for name in self.OURS:
            assert any(f"`{name}` is not loaded" in warning for warning in told["warnings"])
        assert shop.column("orders", "id") == [1]

    @pytest.mark.parametrize("mode", ["append", "truncate"])
    def test_of_csv_files(self, csv_shop: Declare, mode: str) -> None:
        shop = csv_shop(load={"mode": mode})
        shop.file("data/orders.csv", ",".join(("id", *self.OURS)) + "\n1,2,3,4,5\n")
        self.expect_left_out(shop)

    def test_of_json_lines(self, shop: ShopProject) -> None:
        one_table(shop, "orders", format="jsonl")
        shop.file("data/orders.jsonl", '{"id": 1, ' + ", ".join(f'"{name}": "x"' for name in self.OURS) + "}\n")
        self.expect_left_out(shop)

    def test_of_parquet_files(self, shop: ShopProject) -> None:
        one_table(shop, "orders", format="parquet")
        table = pa.table({"id": [1]} | {name: ["x"] for name in self.OURS})
        pq.write_table(table, shop.file("data/orders.parquet", b""))
        self.expect_left_out(shop)

    def test_of_a_table(self, shop: ShopProject) -> None:
        config = {"url": shop.url, "schema": "src"}
        shop.manifest(
            {"id": "shop", "source": {"connector": "postgres", "config": config}, "tables": [{"name": "orders"}]}
        )
        shop.execute("CREATE SCHEMA src")
        shop.execute(f"CREATE TABLE src.orders AS SELECT 1 AS id, {', '.join(f'7 AS {name}' for name in self.OURS)}")
        self.expect_left_out(shop)


def one_table(shop: ShopProject, *names: str, format: str = "csv", **settings: object) -> None:  # noqa: A002
    config = {"path": "data", "format": format}
    tables = [{"name": name} | settings for name in names]
    shop.manifest({"id": "shop", "source": {"connector": "files", "config": config}, "tables": tables})


def test_tables_keep_their_names_in_the_target_the_quarantine_and_dagster(shop: ShopProject) -> None:
    one_table(shop, *TABLES, path="data/one.csv", columns={"id": "integer"})
    shop.file("data/one.csv", "id\n1\nx\n")
    told = shop.apply()
    assert {
        name: (told[name]["rows"], told[name]["quarantined"], told[name]["error"]) for name in TABLES
    } == dict.fromkeys(TABLES, (1, 1, None))
    for name in TABLES:
        assert shop.column_of("raw", name, "id") == [1]
        assert shop.column_of("hakiri", f"quarantine_shop_{name}", "ruleId") == ["malformed"]
    with shop.runtime() as runtime:
        keys = [asset_key(table) for table in runtime.project.tables]
    assert len(set(keys)) == len(TABLES)
    assert all(shop.instance.get_materialized_partitions(key) for key in keys)
    assert {table["chunks"]["done"] for table in shop.apply().values()} == {0}


def test_tables_of_two_pipelines_whose_names_differ_in_case_are_two(shop: ShopProject) -> None:
    shop.file("data/one.csv", "id\n1\n")
    for pipeline, table in (("one", "Orders"), ("two", "orders")):
        config = {"path": "data", "format": "csv"}
        tables = [{"name": table, "path": "data/one.csv"}]
        shop.manifest({"id": pipeline, "source": {"connector": "files", "config": config}, "tables": tables})
    shop.apply()
    assert shop.column("Orders", "id") == shop.column("orders", "id") == [1]


@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet"])
def test_files_of_any_name_are_loaded_once_each(shop: ShopProject, format_: str) -> None:
    one_table(shop, "orders", format=format_, path="data/orders/")
    for number, name in enumerate(FILES):
        path = shop.file(f"data/orders/{name.removesuffix('.csv')}.{format_}", f"id\n{number}\n")
        if format_ == "jsonl":
            path.write_text(f'{{"id": {number}}}\n')
        if format_ == "parquet":
            pq.write_table(pa.table({"id": [number]}), path)
    told = shop.apply()["orders"]
    assert (told["rows"], told["error"]) == (len(FILES), None)
    assert shop.column("orders", "id") == list(range(len(FILES)))
    assert shop.apply()["orders"]["chunks"]["done"] == 0
    keys = shop.instance.get_materialized_partitions(dg.AssetKey(["shop", "orders"]))
    assert len(keys) == len(FILES)
    assert not any(set(key) & set(",/'\"\n") for key in keys)
