"""Rows in quarantine tell the line they came from, as `sed -n 17p` and editors count them."""

from __future__ import annotations

import bz2
import codecs
import gzip
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hakiri_dagster.connectors.files import json_lines
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]

NO_X = {"type": "regex", "field": "name", "pattern": "^[^x]", "on_fail": "skip"}
INTEGER = {"n": "integer"}
KEPT = """
SELECT "ruleId", "sourceFile", "sourceLine", "row"->>'id' FROM hakiri.quarantine_shop_orders ORDER BY "sourceFile", 3, 4
"""


def lines(shop: ShopProject) -> list[tuple[str, int | None]]:
    return [(Path(file).name, line) for _, file, line, _ in shop.rows(KEPT)]


def told(shop: ShopProject) -> list[tuple[str, int | None, str | None]]:
    return [(rule, line, id_) for rule, _, line, id_ in shop.rows(KEPT)]


@pytest.fixture
def small_splits(shop: ShopProject, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files are cut every five hundred bytes."""
    monkeypatch.setattr(json_lines, "PART_BYTES", 500)
    small = {"spark.sql.files.maxPartitionBytes": "500", "spark.sql.files.openCostInBytes": "1"}
    before = {name: spark.conf.get(name) for name in small}
    shop.settings = replace(shop.settings, spark_conf=small)
    yield
    for name, value in before.items():
        spark.conf.set(name, str(value))


CSV = 'id,name,n\n1,a,1\n\n2,"x, of\ntwo lines",2\n3,a,three\n4,"a\n\nb",4\n   \n5,a\n6,x,"6"'
IN_CSV = [
    ("regex_name", 4, "2"),
    ("malformed", 6, None),
    ("malformed", 10, None),
    ("malformed", 11, None),
    ("regex_name", 12, "6"),
]


@pytest.mark.parametrize(
    ("name", "encoding", "put"),
    [
        ("orders.csv", "utf-8", bytes),
        ("orders.csv", "utf-8", lambda text: codecs.BOM_UTF8 + text),
        ("orders.csv", "utf-8", lambda text: text.replace(b"\n", b"\r\n")),
        ("orders.csv.gz", "utf-8", gzip.compress),
        ("orders.csv.bz2", "utf-8", bz2.compress),
        ("orders.csv", "iso-8859-1", lambda text: text.replace(b"lines", b"lign\xe9s")),
        ("orders.csv", "utf-16", lambda text: text.decode().encode("utf-16")),
    ],
    ids=["plain", "with a BOM", "CRLF", "gzip", "bzip2", "latin-1", "utf-16"],
)
def test_csv_tells_the_line_on_which_a_record_begins(
    csv_shop: Declare, name: str, encoding: str, put: Callable[[bytes], bytes]
) -> None:
    shop = csv_shop({"encoding": encoding}, path="data/", columns=INTEGER, row_level=[NO_X])
    shop.file(f"data/{name}", put(CSV.encode()))
    assert shop.apply()["orders"]["error"] is None
    assert told(shop) == IN_CSV
    assert shop.column("orders", "id") == [1, 4]


def test_without_a_header_the_first_record_is_on_the_first_line(csv_shop: Declare) -> None:
    shop = csv_shop({"header": False}, columns={"id": "integer", "name": "text"})
    shop.file("data/orders.csv", "one,a\n\n2,b\nthree,c\n")
    shop.apply()
    assert lines(shop) == [("orders.csv", 1), ("orders.csv", 4)]


def test_every_line_is_a_record_if_the_manifest_says_so(csv_shop: Declare) -> None:
    shop = csv_shop({"multiline": False}, columns={"id": "integer"})
    shop.file("data/orders.csv", '\nid,name\n \n1,"a\ntwo,b\n3,c\n\nfour,d\n')
    shop.apply()
    assert lines(shop) == [("orders.csv", 5), ("orders.csv", 8)]


def test_each_of_several_files_counts_for_itself(csv_shop: Declare) -> None:
    shop = csv_shop(path="data/orders/", row_level=[NO_X], load={"mode": "truncate"})
    for number, file in enumerate("abcd"):
        shop.file(f"data/orders/{file}.csv", "id,name\n" + "1,a\n" * (5 * number) + "2,x\n" + "3,a\n" * 7 + "4,x\n")
    shop.apply()
    expected = [(f"{file}.csv", 5 * number + 2 + more) for number, file in enumerate("abcd") for more in (0, 8)]
    assert lines(shop) == expected


@pytest.mark.parametrize("suffix", ["", ".bz2"])
@pytest.mark.usefixtures("small_splits")
def test_lines_are_right_where_several_tasks_read_a_file(csv_shop: Declare, suffix: str) -> None:
    shop = csv_shop({"multiline": False}, path="data/orders/", row_level=[NO_X])
    texts = {}
    for file in "ab":
        text = "id,name\n" + "".join(f"{i},{'x' if i % 7 == 0 else file}\n" + "\n" * (i % 3) for i in range(200))
        data = text.encode()
        shop.file(f"data/orders/{file}.csv{suffix}", bz2.compress(data) if suffix else data)
        texts[file] = text.split("\n")
    shop.apply()
    found = told_of_each(shop)
    assert len(found) == 2 * 29
    assert all(line is not None and texts[file.partition(".")[0]][line - 1] == f"{id_},x" for file, line, id_ in found)


def test_json_lines(shop: ShopProject) -> None:
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "jsonl"}},
            "tables": [{"name": "orders", "path": "data/orders/", "columns": INTEGER, "row_level": [NO_X]}],
        }
    )
    text = '\n{"id": 1, "name": "a"}\r\n  \n{"id": 2, "name": "x"}\n{"id": 3\n{"id": 4, "name": "a", "n": "no"}\n'
    shop.file("data/orders/a.jsonl", codecs.BOM_UTF8 + text.encode())
    shop.file("data/orders/b.jsonl.gz", gzip.compress(text.encode()))
    shop.apply()
    assert lines(shop) == [(file, line) for file in ("a.jsonl", "b.jsonl.gz") for line in (4, 5, 6)]


@pytest.mark.usefixtures("small_splits")
def test_json_lines_that_several_tasks_read(shop: ShopProject) -> None:
    rows = [f'{{"id": {i}, "name": "{"x" if i % 5 == 0 else "a"}"}}' + "\n" * (i % 2) for i in range(100)]
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "jsonl"}},
            "tables": [{"name": "orders", "row_level": [NO_X]}],
        }
    )
    text = "\n".join(rows)
    shop.file("data/orders.jsonl", text)
    shop.apply()
    numbers = [number for number, line in enumerate(text.split("\n"), 1) if '"x"' in line]
    assert lines(shop) == [("orders.jsonl", number) for number in numbers]


@pytest.mark.parametrize("split", [False, True])
def test_chunks_of_a_cursor_tell_lines_of_files_that_they_read_in_part(
    csv_shop: Declare, request: pytest.FixtureRequest, split: bool
) -> None:
    if split:
        request.getfixturevalue("small_splits")
    shop = csv_shop(
        {"multiline": not split},
        path="data/orders/",
        incremental="day",
        columns={"day": "date"},
        backfill={"window": "1mo"},
        row_level=[NO_X],
    )
    texts = {}
    for number, file in enumerate("abc"):
        rows = [f"{i},{'x' if i % 4 == number else 'a'},2024-0{1 + i * 7 % 5}-03\n" for i in range(60)]
        texts[file] = "id,name,day\n\n" + "".join(rows)
        shop.file(f"data/orders/{file}.csv", texts[file] + "77,a,someday\n")
    shop.apply()
    first = told_of_each(shop)
    shop.execute("DELETE FROM hakiri.quarantine_shop_orders")
    shop.again("orders", "2024-04")
    for found in (first, told_of_each(shop)):
        assert found
        for file, line, id_ in found:
            assert line is not None
            assert (texts[file] + "77,a,someday").split("\n")[line - 1].startswith(f"{id_ or 77},")
    assert len(first) == 3 * 15 + 3


def told_of_each(shop: ShopProject) -> list[tuple[str, int | None, str | None]]:
    return [(Path(file).stem, line, id_) for _, file, line, id_ in shop.rows(KEPT)]


def test_rows_that_a_gate_or_a_warning_keeps_and_rows_that_cannot_be_stored(csv_shop: Declare) -> None:
    rules: list[dict[str, Any]] = [NO_X | {"on_fail": "warn"}, {"type": "not_null", "field": "n"}]
    shop = csv_shop(row_level=rules, columns=INTEGER)
    shop.execute("CREATE SCHEMA raw")
    shop.execute("CREATE TABLE raw.orders (id smallint, name text, n integer)")
    shop.file("data/orders.csv", "id,name,n\n1,a,1\n2,x,2\n70000,a,3\n4,a,\n")
    assert shop.apply()["orders"]["chunks"]["failed"] == 1
    assert told(shop) == [("regex_name", 3, "2"), ("type", 4, "70000"), ("not_null_n", 5, "4")]


def test_what_comes_after_an_untidy_quote_has_no_line_rather_than_a_wrong_one(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[NO_X])
    shop.file("data/orders.csv", 'id,name\n1,x\n2,"a" b "c"\n3,x\n')
    shop.apply()
    assert [(line, id_) for _, line, id_ in told(shop)] == [(2, "1"), (None, "3")]


def test_a_file_that_changes_meanwhile_tells_no_lines(csv_shop: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    from hakiri_dagster.connectors.files import csv_format

    shop = csv_shop(row_level=[NO_X])
    path = shop.file("data/orders.csv", "id,name\n1,x\n2,a\n")
    read = csv_format.text_lines

    def changed(*given: Any) -> Iterator[str]:
        path.write_text("id,name\n\n\n1,x\n2,a\n")
        return read(*given)

    monkeypatch.setattr(csv_format, "text_lines", changed)
    assert shop.apply()["orders"]["error"] is None
    assert lines(shop) == [("orders.csv", None)]


def test_columnar_files_have_no_lines(shop: ShopProject) -> None:
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "files", "config": {"path": "data", "format": "parquet"}},
            "tables": [{"name": "orders", "row_level": [NO_X]}],
        }
    )
    pq.write_table(pa.table({"id": [1], "name": ["x"]}), shop.file("data/orders.parquet", b""))
    shop.apply()
    assert lines(shop) == [("orders.parquet", None)]
