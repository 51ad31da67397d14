"""Files that are missing, broken or not what they seem: told, and in nobody else's way."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

LINES = "id,name\n" + "".join(f"{i},{i * 7919 % 1000003}\n" for i in range(5000))
ZIPPED = gzip.compress(LINES.encode())
CONVERGED = {"done": 0, "failed": 0, "skipped": 0, "pending": 0}


def parquet_shop(shop: ShopProject, **table: object) -> ShopProject:
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "parquet"}},
            "tables": [{"name": "orders", "path": "data/orders/"} | table],
        }
    )
    return shop


def put(shop: ShopProject, name: str, **columns: list[object]) -> Path:
    path = shop.file(f"data/orders/{name}.parquet", b"")
    pq.write_table(pa.table(columns), path)
    return path


class TestNothingThere:
    def test_a_missing_file_stops_its_own_table_only_until_it_is_there(self, shop: ShopProject) -> None:
        source = {"connector": "files", "config": {"path": "data", "format": "csv"}}
        shop.manifest({"id": "shop", "source": source, "tables": [{"name": "orders"}, {"name": "customers"}]})
        shop.manifest({"id": "other", "source": source, "tables": [{"name": "items"}]})
        shop.file("data/orders.csv", "id\n1\n")
        shop.file("data/items.csv", "id\n1\n")
        told = shop.apply()
        assert told["customers"]["error"].startswith(
            f"shop/customers: {shop.root}/data/customers does not exist\n  hint"
        )
        assert [told[name]["chunks"]["done"] for name in ("orders", "items")] == [1, 1]
        shop.file("data/customers.csv", "id\n1\n")
        assert shop.apply()["customers"]["error"] is None
        assert shop.column("customers", "id") == [1]

    def test_an_empty_folder_is_told_with_what_was_expected(self, csv_shop: Declare) -> None:
        shop = csv_shop(path="data/orders/")
        (shop.root / "data/orders").mkdir(parents=True)
        error = shop.apply()["orders"]["error"]
        assert "holds no files\n  hint: expected" in error
        shop.file("data/orders/a.csv", "id\n1\n")
        assert shop.apply()["orders"]["rows"] == 1

    def test_a_file_of_a_header_alone_makes_an_empty_table(self, csv_shop: Declare) -> None:
        shop = csv_shop(columns={"id": "integer"})
        shop.file("data/orders.csv", "id,name\n")
        told = shop.apply()["orders"]
        assert (told["chunks"]["done"], told["rows"], told["error"]) == (1, 0, None)
        assert shop.column("orders", "id") == []
        assert shop.apply()["orders"]["chunks"] == CONVERGED
        shop.file("data/orders.csv", "id,name\n1,a\n")
        shop.apply()
        assert shop.column("orders", "id") == [1]

    def test_a_file_without_even_a_header_is_told(self, csv_shop: Declare) -> None:
        shop = csv_shop()
        shop.file("data/orders.csv", "")
        assert "orders.csv is empty, not even a header\n  hint: write" in shop.apply()["orders"]["error"]


BROKEN: dict[str, tuple[str, bytes, bytes, str]] = {
    "cut off": ("b.csv.gz", ZIPPED[: len(ZIPPED) // 2], ZIPPED, "is not a complete gzip file"),
    "latin-1": ("b.csv", b"id,name\n1,caf\xe9\n", "id,name\n1,café\n".encode(), "is not UTF-8, near byte 13"),
    "open quote": ("b.csv", b'id,name\n1,"a\n2,b\n', b'id,name\n1,"a"\n2,b\n', "a quote is not closed"),
    "twice": ("b.csv", b"id,id\n1,2\n", b"id,name\n1,2\n", "names `id` more than once"),
}


class TestBroken:
    @pytest.mark.parametrize("what", BROKEN)
    def test_a_broken_file_fails_its_own_chunk_and_is_loaded_once_mended(self, csv_shop: Declare, what: str) -> None:
        name, broken, mended, fault = BROKEN[what]
        shop = csv_shop(path="data/orders/")
        shop.file("data/orders/a.csv", "id,name\n-1,a\n")
        shop.file(f"data/orders/{name}", broken)
        shop.file("data/orders/c.csv", "id,name\n-2,c\n")
        for done in (2, 0):  # a second apply tries the broken one again
            told = shop.apply()["orders"]
            assert told["chunks"] == {"done": done, "failed": 1, "skipped": 0, "pending": 0}
            assert fault in told["error"]
            assert f"data/orders/{name}" in told["error"]
        assert shop.column("orders", "id") == [-2, -1]
        shop.file(f"data/orders/{name}", mended)
        told = shop.apply()["orders"]
        assert (told["chunks"]["done"], told["chunks"]["failed"], told["error"]) == (1, 0, None)
        assert len(shop.column("orders", "id")) == 2 + mended_rows(mended)
        assert shop.apply()["orders"]["chunks"] == CONVERGED

    def test_half_a_parquet_file_fails_its_own_chunk_and_is_loaded_once_mended(self, shop: ShopProject) -> None:
        parquet_shop(shop)
        for number, name in enumerate("abc"):
            put(shop, name, id=[number])
        half = shop.root / "data/orders/b.parquet"
        whole = half.read_bytes()
        half.write_bytes(whole[: len(whole) // 2])
        told = shop.apply()["orders"]
        assert told["chunks"] == {"done": 2, "failed": 1, "skipped": 0, "pending": 0}
        assert "b.parquet is no complete parquet file" in told["error"]
        half.write_bytes(whole)
        assert shop.apply()["orders"]["chunks"]["done"] == 1
        assert shop.column("orders", "id") == [0, 1, 2]

    def test_rows_of_a_file_stay_while_its_new_contents_are_broken(self, csv_shop: Declare) -> None:
        shop = csv_shop(path="data/orders/")
        shop.file("data/orders/a.csv", "id,name\n1,a\n")
        shop.file("data/orders/b.csv", "id,name\n2,b\n")
        shop.apply()
        shop.file("data/orders/b.csv", b"id,name\n2,caf\xe9\n")
        assert shop.apply()["orders"]["chunks"]["failed"] == 1
        assert shop.column("orders", "id") == [1, 2]
        shop.file("data/orders/b.csv", "id,name\n3,café\n")
        shop.apply()
        assert shop.column("orders", "id") == [1, 3]

    def test_a_broken_file_among_windows_stops_them_all(self, csv_shop: Declare) -> None:
        shop = csv_shop(path="data/orders/", incremental="day", columns={"day": "date"})
        shop.file("data/orders/a.csv", "id,day\n1,2024-01-01\n")
        shop.file("data/orders/b.csv", b"id,day,t\n1,2024-01-01,caf\xe9\n")
        told = shop.apply()["orders"]
        assert (told["chunks"], told["rows"]) == (CONVERGED, 0)
        assert "b.csv is not UTF-8" in told["error"]

    def test_a_whole_table_is_not_replaced_by_the_files_that_can_be_read(self, csv_shop: Declare) -> None:
        shop = csv_shop(path="data/orders/", load={"mode": "truncate"})
        shop.file("data/orders/a.csv", "id,name\n1,a\n")
        shop.file("data/orders/b.csv", "id,name\n2,b\n")
        shop.apply()
        shop.file("data/orders/b.csv", b"id,name\n3,caf\xe9\n")
        told = shop.apply()["orders"]
        assert (told["chunks"]["failed"], told["rows"]) == (1, 0)
        assert shop.column("orders", "id") == [1, 2]

    def test_text_that_calls_itself_parquet_is_told(self, shop: ShopProject) -> None:
        parquet_shop(shop)
        shop.file("data/orders/a.parquet", "hello")
        assert "a.parquet is no complete parquet file" in shop.apply()["orders"]["error"]


def mended_rows(contents: bytes) -> int:
    text = gzip.decompress(contents) if contents[:2] == b"\x1f\x8b" else contents
    return text.count(b"\n") - 1


class TestOfAnotherSchema:
    def test_a_parquet_file_of_another_type_stops_the_table_with_the_ways_out(self, shop: ShopProject) -> None:
        parquet_shop(shop)
        put(shop, "a", id=[1], t=["x"])
        shop.apply()
        put(shop, "b", id=["zz"], t=["y"])
        error = shop.apply()["orders"]["error"]
        assert "b.parquet: column `id` is string, but bigint in" in error
        assert "hint: declare its type" in error
        assert shop.column("orders", "id") == [1]
        put(shop, "b", id=[2], t=["y"])
        assert shop.apply()["orders"]["error"] is None
        assert shop.column("orders", "id") == [1, 2]

    def test_a_file_of_another_table_stops_the_table(self, shop: ShopProject) -> None:
        parquet_shop(shop)
        put(shop, "a", id=[1])
        put(shop, "b", price=[1.5])
        error = shop.apply()["orders"]["error"]
        assert "b.parquet has no column of this table: it has `price`, the other files have `id`" in error

    def test_a_file_with_a_column_more_and_one_less_is_loaded_and_told(self, shop: ShopProject) -> None:
        parquet_shop(shop)
        put(shop, "a", id=[1], t=["x"])
        shop.apply()
        put(shop, "b", id=[2], extra=[3.5])
        told = shop.apply()["orders"]
        assert told["error"] is None
        assert any("b.parquet has no `t`" in warning for warning in told["warnings"])
        assert shop.rows("SELECT id, t, extra FROM raw.orders ORDER BY id") == [(1, "x", None), (2, None, 3.5)]


class TestTextOfEveryKind:
    def test_a_byte_order_mark_is_no_part_of_a_name(self, csv_shop: Declare) -> None:
        shop = csv_shop()
        shop.file("data/orders.csv", b"\xef\xbb\xbfid,name\n1,\xc3\xa9\n")
        shop.apply()
        assert shop.rows("SELECT id, name FROM raw.orders") == [(1, "é")]

    def test_latin_1_is_read_as_declared(self, shop: ShopProject) -> None:
        config = {"path": "data", "format": "csv", "encoding": "latin-1"}
        source = {"connector": "files", "config": config}
        shop.manifest({"id": "shop", "source": source, "tables": [{"name": "orders"}]})
        shop.file("data/orders.csv", b"id,name\n1,caf\xe9\n")
        shop.apply()
        assert shop.column("orders", "name") == ["café"]

    def test_newlines_quotes_and_delimiters_in_values_arrive(self, csv_shop: Declare) -> None:
        shop = csv_shop()
        shop.file("data/orders.csv", 'id,name\n1,"two\nlines"\n2,"say ""hi"""\n3,"a,b\r\nc\\."\n')
        shop.apply()
        assert shop.column("orders", "name") == ["a,b\r\nc\\.", 'say "hi"', "two\nlines"]

    def test_a_thousand_columns_are_loaded(self, csv_shop: Declare) -> None:
        shop = csv_shop()
        names = [f"column {number}" for number in range(1000)]
        shop.file("data/orders.csv", ",".join(names) + "\n" + ",".join(map(str, range(1000))) + "\n")
        assert shop.apply()["orders"]["error"] is None
        assert [shop.column("orders", name) for name in (names[0], names[999])] == [[0], [999]]

    def test_a_thousand_columns_of_parquet_are_loaded(self, shop: ShopProject) -> None:
        parquet_shop(shop)
        put(shop, "a", **{f"c.{number}": [number] for number in range(1000)})
        assert shop.apply()["orders"]["error"] is None
        assert shop.column("orders", "c.999") == [999]

    def test_more_columns_than_postgresql_has_room_for_are_refused(self, shop: ShopProject) -> None:
        parquet_shop(shop)
        put(shop, "a", **{f"c{number}": [number] for number in range(1700)})
        told = shop.apply()["orders"]
        assert told["error"] == "shop/orders: 1700 columns; PostgreSQL takes 1600 at most"
        assert told["chunks"]["pending"] == 1
