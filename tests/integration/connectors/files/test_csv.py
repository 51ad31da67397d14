from __future__ import annotations

import bz2
import gzip
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hakiri_dagster.connectors.contract import FILE_COLUMN, MALFORMED_COLUMN
from hakiri_dagster.errors import SourceError


def test_types_are_inferred_and_codes_with_leading_zeros_stay_text(source):
    source.write(
        "a.csv",
        "id,zip,price,ratio,ok,day,at,seen,big,none\n"
        "1,02134,9.90,1e-05,true,2024-01-02,2024-01-02 03:04:05,2024-01-02T03:04:05+02:00,12345678901234567890,\n"
        "-2,99999,10,2.5,FALSE,2024-02-29,2024-01-02T03:04:05.123456,2024-01-02T03:04:05Z,1,\n",
    )
    found = source.discover()
    assert source.types(found) == {
        "id": "bigint",
        "zip": "string",
        "price": "string",
        "ratio": "double",
        "ok": "boolean",
        "day": "date",
        "at": "timestamp_ntz",
        "seen": "timestamp",
        "big": "decimal(38,0)",
        "none": "string",
    }
    assert found.schema.column("price").native_type == "numeric"
    assert any("`none`" in warning for warning in found.warnings)
    first, second = source.rows(found)
    assert (first.id, first.zip, first.price, first.ok) == (1, "02134", "9.90", True)
    assert (first.day, first["at"]) == (date(2024, 1, 2), datetime(2024, 1, 2, 3, 4, 5))
    assert (second.price, second.ratio) == ("10", 2.5)


def test_known_types_are_not_inferred_again(source, remember):
    source.write("a.csv", "id,name\n1,x\n")
    first = source.discover()
    source.write("b.csv", "id,name\nabc,y\n")
    starts = source.spark_starts
    again = source.discover(known=remember(first))
    assert (again.schema, source.spark_starts) == (first.schema, starts)
    assert source.malformed(again) == ["abc,y"]


def test_codes_that_look_like_numbers_stay_as_they_are_and_a_warning_names_them(source):
    source.write("a.csv", "code,phone,version,id\n1E5,+49301234,1.1,1\n2E07,+49305678,1.10,2\n")
    found = source.discover()
    assert source.types(found) == {"code": "string", "phone": "string", "version": "string", "id": "bigint"}
    assert [tuple(row)[:3] for row in source.rows(found)] == [
        ("1E5", "+49301234", "1.1"),
        ("2E07", "+49305678", "1.10"),
    ]
    assert [warning for warning in found.warnings if "declare its type" in warning] == [
        "`code` is text, for a number does not read `1E5` when it is written back; "
        "if it is a number, declare its type under `columns`",
        "`phone` is text, for a number does not read `+49301234` when it is written back; "
        "if it is a number, declare its type under `columns`",
        "`version` is text, for some of its numbers end in superfluous zeros and others do not; "
        "if it is a number, declare its type under `columns`",
    ]


LATER = {
    "n": (["3", "-4", " 5 "], ["1E5", "+49301234", "007", "-0", "6.0", "1_000", "9223372036854775808"]),
    "price": (["3", "4.5", "0.10", "1.555", " 7.0 "], ["+1.50", ".5", "5.", "01.50", "-0.00", "1e2", "NaN"]),
    "ratio": (
        ["2", "1.0E-7", "NaN", "-Infinity", "0.30000000000000004"],
        ["1E5", "+1", ".5", "9007199254740993", "1e999", "1e+999", "1e-400", "nan", "-inf"],
    ),
    "ok": (["TRUE", "False"], ["1", "t", "yes"]),
    "day": (["2024-02-29"], ["2024-1-5", "0000-01-01", "2024-02-30", "2024", "2024-01-02 00:00"]),
    "at": (["2024-01-02", "2024-01-02T03:04"], ["2024-1-5 3:04", "2024-01-02 03:04:05Z"]),
    "seen": (["2024-01-02 03:04:05+02", "2024-01-02T03:04:05.5 UTC"], ["2024-01-02 03:04:05", "2024-01-02"]),
}
"""By column: what a later file may hold, and what makes a line malformed."""


def test_no_value_of_a_later_file_is_converted_to_an_inferred_type(source, remember):
    source.write(
        "a.csv",
        ",".join(LATER) + "\n1,1.50,1e-05,true,2024-01-02,2024-01-02 03:04:05,2024-01-02T03:04:05Z\n",
    )
    first = source.discover()
    assert list(source.types(first).values()) == [
        "bigint",
        "string",
        "double",
        "boolean",
        "date",
        "timestamp_ntz",
        "timestamp",
    ]

    def lines(which):
        return [
            ",".join(text if name == column else "" for name in LATER)
            for column, texts in LATER.items()
            for text in texts[which]
        ]

    good, bad = lines(0), lines(1)
    source.write("b.csv", "\n".join([",".join(LATER), *good, *bad]) + "\n")
    again = source.discover(known=remember(first))
    assert source.malformed(again) == sorted(bad)
    assert len(source.rows(again)) == 1 + len(good)


def test_without_inference_all_is_text_and_spark_is_not_started(source):
    source.config["infer_schema"] = False
    source.write("a.csv", "id,name\n1,x\n")
    assert source.types() == {"id": "string", "name": "string"}
    assert source.spark_starts == 0


def test_declared_types_win_over_inferred_ones(source):
    source.columns = {"id": "text", "amount": "numeric(12,3)", "key": "uuid"}
    source.write("a.csv", "id,amount,key\n1,2.5,6f9619ff-8b86-d011-b42d-00c04fc964ff\n")
    found = source.discover()
    assert source.types(found) == {"id": "string", "amount": "decimal(12,3)", "key": "string"}
    assert [c.native_type for c in found.schema.columns] == ["text", "numeric(12,3)", "uuid"]
    assert source.rows(found)[0].amount == Decimal("2.500")


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("integer", "abc"),
        ("integer", "12.7"),
        ("integer", "99999999999"),
        ("bigint", "9223372036854775808"),
        ("numeric(5,2)", "1234.50"),
        ("numeric(10,2)", "1.239"),
        ("double precision", "1e999"),
        ("double precision", "0x1p3"),
        ("boolean", "maybe"),
        ("date", "2024-02-30"),
        ("date", "2024"),
        ("date", "02.01.2024"),
        ("timestamptz", "12:00"),
        ("timestamptz", "2024-01-02 25:00"),
        ("timestamp", "2024-01-02T03:04:05+02:00"),
    ],
)
def test_a_value_that_is_not_of_its_columns_type_makes_the_line_malformed(source, type_, text):
    source.columns = {"id": "integer", "value": type_}
    source.write("a.csv", f"id,value\n1,{text}\n2,\n")
    found = source.discover()
    assert source.malformed(found) == [f"1,{text}"]
    assert source.reasons(found) == {f"`value` is no {type_}"}
    assert [row.id for row in source.rows(found)] == [2]


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("integer", " 12 ", 12),
        ("integer", '""', None),
        ("numeric(10,2)", "1.2300", Decimal("1.23")),
        ("numeric(10,0)", "12.", Decimal("12")),
        ("numeric(10,2)", ".5", Decimal("0.50")),
        ("double precision", "-Infinity", float("-inf")),
        ("boolean", "yes", True),
        ("date", "2024-1-5", date(2024, 1, 5)),
        ("text", '""', ""),
        ("text", "", None),
        ("text", " x ", " x "),
    ],
)
def test_a_value_is_read_as_postgresql_would_read_it(source, type_, text, value):
    source.columns = {"id": "integer", "value": type_}
    source.write("a.csv", f"id,value\n1,{text}\n")
    assert [row.value for row in source.rows()] == [value]


def test_lines_with_too_few_or_too_many_fields_come_along_with_their_text(source):
    source.write("a.csv", 'id,name,n\n1,"a ""q""\nb",3\n2,b\n3,c,4,e\n')
    found = source.discover()
    assert source.malformed(found) == ["2,b", "3,c,4,e"]
    assert source.reasons(found) == {"not 3 fields, as the header has"}
    assert [tuple(row)[:3] for row in source.rows(found)] == [(1, 'a "q"\nb', 3)]


def test_malformed_lines_are_seen_whatever_columns_are_asked_for(source):
    source.write("a.csv", "id,name\n1,a\n2\n")
    frame = source.read(source.discover()).frame
    assert frame.select("id", MALFORMED_COLUMN).where("_hakiri_malformed is not null").count() == 1


@pytest.mark.parametrize("tail", ["3,c\n", '3,"c"\n'])
def test_a_quote_that_is_never_closed_would_swallow_lines_and_is_refused(source, tail):
    source.write("a.csv", 'id,name\n1,a\n2,"b\n' + tail)
    with pytest.raises(SourceError, match=r"a\.csv: a quote is not closed.*after '1,a'"):
        source.discover()


def test_a_quote_within_a_bare_value_is_a_character_like_any_other(source):
    source.write("a.csv", 'id,name\n1,5" pipe\n2,x\n')
    assert [(row.id, row.name) for row in source.rows()] == [(1, '5" pipe'), (2, "x")]


def test_columns_are_matched_by_the_header_of_each_file(source, values):
    source.write("a.csv", "id,name,qty\n1,one,10\n")
    source.write("b.csv", "qty,id,name\n20,2,two\n")
    source.write("c.csv", "id,name\n3,three\n")
    source.write("d.csv", "name,extra,id,qty\nfour,new,4,40\n")
    found = source.discover()
    assert list(source.types(found)) == ["id", "name", "qty", "extra"]
    rows = sorted(tuple(row)[:4] for row in source.rows(found))
    assert rows == [(1, "one", 10, None), (2, "two", 20, None), (3, "three", None, None), (4, "four", 40, "new")]


def test_a_new_column_in_a_later_file_is_appended_with_its_type(source, remember):
    source.write("a.csv", "id\n1\n")
    first = source.discover()
    source.write("b.csv", "day,id\n2024-01-02,2\n")
    assert source.types(source.discover(known=remember(first))) == {"id": "bigint", "day": "date"}


def test_a_file_of_another_table_is_refused(source):
    source.write("a.csv", "id,name\n1,x\n")
    source.write("b.csv", "7,seven\n8,eight\n")
    with pytest.raises(SourceError, match=r"b\.csv has no column of this table(.|\n)*lack its header") as error:
        source.discover()
    assert str(error.value).startswith("shop/orders: ")


def test_hostile_column_names_are_kept_as_they_are(source):
    names = ["a.b", "a b", "`tick`", "select", "Ünï", "x" * 70, "x" * 69 + "y", "id", "Id"]
    source.write("a.csv", ",".join([*names, '"q""q"', ""]) + "\n" + ",".join("0123456789") + ",10\n")
    found = source.discover()
    assert list(source.types(found)) == [*names, 'q"q', "column_11"]
    row = source.rows(found)[0]
    assert [row[i] for i in range(11)] == list(range(11))
    assert any("`id` and `Id`" in warning for warning in found.warnings)


def test_a_name_that_occurs_twice_in_a_header_is_refused(source):
    source.write("a.csv", "id,name,id\n1,a,2\n")
    with pytest.raises(SourceError, match=r"a\.csv: the header names `id` more than once"):
        source.discover()


def test_a_header_only_file_has_columns_and_no_rows(source):
    source.write("a.csv", "id,name\n")
    found = source.discover()
    assert list(source.types(found)) == ["id", "name"]
    assert source.read(found).frame.count() == 0


def test_an_empty_file_is_refused_alone_and_told_among_others(source):
    source.write("empty.csv", "")
    with pytest.raises(SourceError, match=r"empty\.csv is empty, not even a header"):
        source.discover()
    source.write("a.csv", "id\n1\n")
    found = source.discover()
    assert any("empty.csv is empty" in warning for warning in found.warnings)
    assert [row.id for row in source.rows(found)] == [1]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "iso-8859-1", "windows-1252", "utf-16", "utf-16-le", "iso-8859-15"]
)
@pytest.mark.parametrize("multiline", [True, False])
def test_encodings_are_decoded(source, encoding, multiline):
    source.config |= {"encoding": encoding.removesuffix("-sig"), "multiline": multiline}
    text = "é€" if encoding not in ("iso-8859-1",) else "éÿ"
    source.write("a.csv", f"näme,id\n{text},1\nb,2\n".encode(encoding))
    assert sorted(tuple(row)[:2] for row in source.rows()) == sorted([(text, 1), ("b", 2)])


def test_a_malformed_line_is_decoded_like_any_other(source):
    source.config["encoding"] = "windows-1252"
    source.write("a.csv", "id,name\n1,€,x\n".encode("cp1252"))
    assert source.malformed() == ["1,€,x"]


def test_bytes_of_another_encoding_are_an_error_and_not_question_marks(source):
    source.write("a.csv", "id,name\n1,é\n".encode("latin-1"))
    with pytest.raises(SourceError, match=r"a\.csv is not UTF-8, near byte 10(.|\n)*windows-1252"):
        source.discover()


def test_compressed_files_are_read(source, values):
    source.write("a.csv.gz", gzip.compress(b"id\n1\n"))
    source.write("b.csv.bz2", bz2.compress(b"id\n2\n"))
    source.write("c.csv.zst", pa.compress(b"id\n3\n", codec="zstd", asbytes=True))
    assert values(source.rows(), "id") == [1, 2, 3]


def test_a_truncated_gzip_file_is_named(source):
    whole = gzip.compress(b"id\n" + b"".join(b"%d\n" % (n * 7919) for n in range(50_000)))
    source.write("a.csv.gz", whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=r"a\.csv\.gz is not a complete gzip file"):
        source.discover()


@pytest.mark.parametrize("name", ["a.csv.lz4", "a.csv.zip", "a.csv.zstd"])
def test_a_compression_that_spark_lacks_is_refused(source, name):
    source.config["format"] = "csv"
    source.write(name, b"id\n1\n")
    with pytest.raises(SourceError, match="Spark has no codec"):
        source.discover()


def test_other_delimiters_quotes_and_escapes_are_understood(source):
    source.config |= {"delimiter": ";", "quote": "'", "escape": "\\"}
    source.write("a.csv", "id;name\n1;'it\\'s; me'\n")
    assert [row.name for row in source.rows()] == ["it's; me"]


def test_a_tsv_is_split_at_tabs_and_crlf_ends_a_line(source):
    source.write("a.tsv", "id\tname\r\n1\ta,b\r\n2\tc\td\r\n")
    found = source.discover()
    assert [tuple(row)[:2] for row in source.rows(found)] == [(1, "a,b")]
    assert source.malformed(found) == ["2\tc\td"]


def test_null_values_are_null_in_every_column(source):
    source.config["null_values"] = ["NA", "-"]
    source.write("a.csv", 'id,name\n1,NA\nNA,x\n-,"-"\n')
    found = source.discover()
    assert source.types(found)["id"] == "bigint"
    rows = [tuple(row)[:2] for row in source.rows(found)]
    assert sorted(rows, key=str) == sorted([(1, None), (None, "x"), (None, None)], key=str)


def test_files_without_headers_have_numbered_or_declared_columns(source):
    source.config["header"] = False
    source.write("a.csv", "1,x\n2,y\n")
    assert source.types() == {"column_1": "bigint", "column_2": "string"}
    source.columns = {"id": "integer", "name": "text"}
    assert [(row.id, row.name) for row in source.rows()] == [(1, "x"), (2, "y")]


def test_a_thousand_columns_are_read(source):
    names = [f"c{n}" for n in range(1000)]
    source.config["infer_schema"] = False
    source.write("a.csv", ",".join(names) + "\n" + ",".join(map(str, range(1000))) + "\n")
    row = source.rows()[0]
    assert (row.c0, row.c999) == ("0", "999")


def test_rows_of_several_files_name_their_file(source):
    for number in range(2):
        source.write(f"f{number}.csv", f"id\n{number}\n")
    reading = source.read(source.discover())
    paths = {origin.marker: origin.path for origin in reading.files}
    assert {(row.id, paths[row[FILE_COLUMN]][-6:]) for row in reading.frame.collect()} == {(0, "f0.csv"), (1, "f1.csv")}


def test_an_object_with_a_key_twice_is_malformed_in_a_column_declared_jsonb(source):
    """PostgreSQL would keep the last one without a word."""
    source.columns = {"j": "jsonb"}
    good = ['"{""a"": 1.10, ""b"": {""a"": 2}}"', "[1]", "", "no json at all: that is for PostgreSQL to say"]
    bad = ['"{""a"": 1, ""a"": 2}"', '"[{""b"": {""k"": 1, ""\\u006b"": 2}}]"']
    source.write("a.csv", "id,j\n" + "".join(f"{n},{text}\n" for n, text in enumerate([*good, *bad])))
    found = source.discover()
    assert len(source.malformed(found)) == len(bad)
    assert [row.j for row in source.rows(found)][:2] == ['{"a": 1.10, "b": {"a": 2}}', "[1]"]


def test_a_declared_bytea_is_refused(source):
    source.columns = {"b": "bytea"}
    source.write("a.csv", "id,b\n1,\\x00ff\n")
    with pytest.raises(SourceError, match="declared `bytea`"):
        source.discover()
