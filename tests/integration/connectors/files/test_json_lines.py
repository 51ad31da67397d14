from __future__ import annotations

import gzip
from datetime import date, datetime
from decimal import Decimal

import pytest

from hakiri_dagster.errors import SourceError


def test_types_come_from_the_values_and_nested_ones_stay_nested(source):
    source.write(
        "a.jsonl",
        '{"id":1,"price":1.10,"ok":true,"day":"2024-01-02","at":"2024-01-02T03:04:05Z","code":"12",'
        '"item":{"a b":1,"tags":["x"]}}\n'
        '{"id":2,"price":10,"ratio":1e3,"item":{"a b":2,"tags":[]}}\n',
    )
    found = source.discover()
    assert source.types(found) == {
        "at": "timestamp",
        "code": "string",
        "day": "date",
        "id": "bigint",
        "item": "struct<`a b`:bigint,`tags`:array<string>>",
        "ok": "boolean",
        "price": "decimal(18,2)",
        "ratio": "decimal(18,2)",
    }
    first, second = source.rows(found)
    assert (first.id, first.price, first.ok, first.code) == (1, Decimal("1.10"), True, "12")
    assert (first.day, first.item["a b"], second.ratio) == (date(2024, 1, 2), 1, 1000.0)
    assert second.price == Decimal("10.00")


@pytest.mark.parametrize(
    "line",
    [
        '{"id":1,"name":"cut',
        '{"id":1}{"id":2}',
        '{"id":1} rest',
        "[1]",
        '[{"id":1},{"id":2}]',
        "42",
        "null",
        '{"id":"x"}',
        '{"id":1.5}',
        '{"id":99999999999999999999}',
        '{"price":1.239}',
        '{"price":12345678901234567890}',
        '{"day":"2024-02-30"}',
        '{"item":{"a":"x"}}',
    ],
)
def test_a_line_that_does_not_fit_comes_along_with_its_text(source, line):
    source.write("a.jsonl", '{"id":7,"name":"x","price":1.25,"day":"2024-01-01","item":{"a":1}}\n')
    found = source.discover()
    source.write("a.jsonl", '{"id":8}\n' + line + "\n\n" + '{"id":9}')
    again = source.discover(known=None)
    reading = source.read(type(again)(schema=found.schema, files=again.files))
    texts = [row["_hakiri_malformed"] and row["_hakiri_malformed"].line for row in reading.frame.collect()]
    assert [text for text in texts if text is not None] == [line]
    assert texts.count(None) == 2


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
    assert source.types(found)["item"] == "struct<`a`:bigint>"
    assert found.schema.column("item").native_type == "jsonb"
    assert [row.amount for row in source.rows(found)] == [Decimal("19.99")] * 2
    assert source.rows(found)[0]["at"] == datetime(2024, 1, 2, 3, 4, 5)


def test_long_integers_keep_every_digit(source):
    source.write("a.jsonl", '{"n":12345678901234567890123}\n')
    assert source.rows()[0].n == Decimal("12345678901234567890123")


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
