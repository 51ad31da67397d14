from __future__ import annotations

import gzip
from datetime import date, datetime
from decimal import Decimal

import pytest

from hakiri_dagster.errors import SourceError


def test_types_come_from_the_values_and_nested_ones_stay_as_they_are_written(source):
    source.write(
        "a.jsonl",
        '{"id":1,"price":1.10,"ok":true,"day":"2024-01-02","at":"2024-01-02T03:04:05Z","code":"12",'
        '"item": {"a b" : 1.10, "tags":["x"]}}\n'
        '{"id":2,"price":10,"ratio":1e3,"item":[12345678901234567890.5]}\n',
    )
    found = source.discover()
    assert found.schema is not None
    assert [(c.name, c.native_type or c.spark_type) for c in found.schema.columns] == [
        ("id", "bigint"),
        ("price", "numeric"),
        ("ok", "boolean"),
        ("day", "date"),
        ("at", "timestamp"),
        ("code", "string"),
        ("item", "jsonb"),
        ("ratio", "numeric"),
    ]
    first, second = source.rows(found)
    assert (first.id, first.price, first.ok, first.code) == (1, "1.10", True, "12")
    assert (first.day, first.item) == (date(2024, 1, 2), '{"a b" : 1.10, "tags":["x"]}')
    assert (second.price, second.ratio, second.item) == ("10", "1e3", "[12345678901234567890.5]")


UNFIT = {
    '{"id":1,"name":"cut': "not JSON: Unterminated string, at character 16",
    '{"id":1}{"id":2}': "something follows the JSON value, at character 9",
    '{"id":1} rest': "something follows the JSON value, at character 9",
    "[1]": "a list instead of a JSON object",
    "42": "a text or number instead of a JSON object",
    "null": "null instead of a JSON object",
    '{"id":NaN}': "not JSON: NaN is no JSON value",
    '{"id":1,"name":"x","id":1}': "the key `id` is there more than once",
    '{"id":1,"\\u0069d":1}': "the key `id` is there more than once",
    '{"id":1,"item":[{"k":1,"k":2}]}': "the key `k` is there more than once",
    '{"id":1,"name":"\\ud800"}': "`name` holds half of a surrogate pair",
    '{"id":1,"\\ud800":1}': 'the key "\\ud800" holds half of a surrogate pair',
    '{"id":"x"}': "`id` is no bigint",
    '{"id":1.5}': "`id` is no bigint",
    '{"id":99999999999999999999}': "`id` is no bigint",
    '{"price":1.239}': "`price` is no numeric(10,2)",
    '{"price":123456789.00}': "`price` is no numeric(10,2)",
    '{"any":"1,5"}': "`any` is no numeric",
    '{"any":true}': "`any` is no numeric",
    '{"day":"2024-02-30"}': "`day` is no date",
    '{"day":"2024-02-03T00:00:00"}': "`day` is no date",
    '{"at":"2024-02-03T04:05:06Z"}': "`at` is no timestamp",
    '{"ratio":1e999}': "`ratio` is no double precision",
    '{"list":[1,"x"]}': "`list` is no integer[]",
    '{"list":{"a":1}}': "`list` is no integer[]",
    '{"ok":2}': "`ok` is no boolean",
}


def test_lines_that_do_not_fit_come_along_with_their_text_and_the_reason(source):
    source.columns = {"price": "numeric(10,2)", "ratio": "double precision", "at": "timestamp", "list": "integer[]"}
    source.write(
        "a.jsonl",
        '{"id":7,"name":"x","price":1.25,"any":1.5,"day":"2024-01-01","at":"2024-01-01 00:00","ratio":1,"list":[1],'
        '"item":{"a":1},"ok":true}\n',
    )
    found = source.discover()
    broken = b'{"id":1,"name":"\xff"}'
    lines = "\n\n \t\n".join(['{"id":8}', *UNFIT, '{"id":9}']).encode() + b"\r\n" + broken
    source.write("a.jsonl", lines)
    later = source.discover()
    reading = source.read(type(found)(schema=found.schema, files=later.files))
    rows = reading.frame.collect()
    marks = [row["_hakiri_malformed"] for row in rows]
    assert {mark.line: mark.reason for mark in marks if mark} == UNFIT | {
        '{"id":1,"name":"\\xff"}': "not UTF-8, at byte 17: is the file in another `encoding`?"
    }
    assert [row.id for row in rows if not row["_hakiri_malformed"]] == [8, 9]


def test_a_field_that_is_new_in_a_later_file_is_appended(source, remember):
    source.write("a.jsonl", '{"id":1}\n')
    first = source.discover()
    source.write("b.jsonl", '{"extra":"2024-01-02","id":2}\n')
    found = source.discover(known=remember(first))
    assert source.types(found) == {"id": "bigint", "extra": "date"}
    assert sorted((row.id, row.extra) for row in source.rows(found))[1] == (2, date(2024, 1, 2))


def test_declared_types_read_texts_and_numbers_alike(source):
    source.columns = {"amount": "numeric(10,2)", "at": "timestamptz", "item": "jsonb"}
    source.write("a.jsonl", '{"amount":"19.99","at":"2024-01-02 03:04:05","item":{"a":1}}\n{"amount":19.99}\n')
    found = source.discover()
    assert found.schema.column("item").native_type == "jsonb"
    assert [row.amount for row in source.rows(found)] == [Decimal("19.99")] * 2
    assert source.rows(found)[0]["at"] == datetime(2024, 1, 2, 3, 4, 5)


def test_long_integers_keep_every_digit(source):
    source.write("a.jsonl", '{"n":12345678901234567890123}\n{"n":%s}\n' % ("9" * 5000))
    assert [row.n for row in source.rows()] == ["12345678901234567890123", "9" * 5000]


def test_a_json_array_is_refused_with_the_way_to_convert_it(source):
    source.write("a.json", '[\n  {"id": 1}\n]\n')
    with pytest.raises(SourceError, match=r"a\.json is one JSON array(.|\n)*jq"):
        source.discover()


def test_a_file_without_an_object_is_refused(source):
    source.write("a.jsonl", "\n\n")
    with pytest.raises(SourceError, match=r"a\.jsonl holds no JSON object"):
        source.discover()


def test_other_encodings_and_compression(source):
    source.config["encoding"] = "windows-1252"
    source.write("a.jsonl.gz", gzip.compress('{"name":"€é"}\n'.encode("cp1252")))
    assert [row.name for row in source.rows()] == ["€é"]


def test_a_byte_order_mark_is_no_part_of_the_first_line(source):
    source.write("a.jsonl", b"\xef\xbb\xbf" + b'{"id":1}\n')
    source.write("b.jsonl.gz", gzip.compress(b"\xef\xbb\xbf" + b'{"id":2}\n'))
    assert sorted(row.id for row in source.rows()) == [1, 2]


def test_utf_16_is_refused(source):
    source.config["encoding"] = "UTF-16"
    source.write("a.jsonl", '{"id":1}\n'.encode("utf-16"))
    with pytest.raises(SourceError, match="JSON lines in UTF-16 cannot be read"):
        source.discover()


def test_field_names_with_dots_quotes_and_upper_case_are_kept(source):
    source.write("a.jsonl", '{"a.b":1,"A":2,"a":3,"q`t":4,"r":5}\n')
    row = source.rows()[0]
    assert (row["a.b"], row["A"], row["a"], row["q`t"], row["r"]) == (1, 2, 3, 4, 5)
