from __future__ import annotations

import os
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from hakiri_dagster.connectors.files.read_errors import SPARK_ERRORS, explain_read_error
from hakiri_dagster.errors import SourceError

MOMENT = datetime(2024, 5, 6, 7, 8, 9, 123456)


def put(source, name, columns, **options):
    path = source.write(name, b"")
    pq.write_table(pa.table(columns), path, **options)
    return path


def test_the_schema_comes_from_the_footer_without_spark(source):
    put(source, "a.parquet", {"id": pa.array([1], pa.int32()), "name": ["x"]})
    assert source.types() == {"id": "int", "name": "string"}
    assert source.spark_starts == 0


@pytest.mark.parametrize(
    ("array", "spark_type", "value"),
    [
        (pa.array([2**32 - 1], pa.uint32()), "bigint", 2**32 - 1),
        (pa.array([2**64 - 1], pa.uint64()), "decimal(20,0)", Decimal(2**64 - 1)),
        (pa.array([1.5], pa.float32()), "float", 1.5),
        (pa.array([Decimal("1.25")], pa.decimal128(10, 2)), "decimal(10,2)", Decimal("1.25")),
        (pa.array([date(2024, 1, 2)]), "date", date(2024, 1, 2)),
        (pa.array([MOMENT], pa.timestamp("us")), "timestamp_ntz", MOMENT),
        (pa.array([MOMENT], pa.timestamp("us", "UTC")), "timestamp", MOMENT),
        (pa.array([MOMENT], pa.timestamp("ms", "UTC")), "timestamp", MOMENT.replace(microsecond=123000)),
        (pa.array([MOMENT], pa.timestamp("ns")), "timestamp_ntz", MOMENT),
        (pa.array([MOMENT], pa.timestamp("ns", "UTC")), "timestamp", MOMENT),
        (pa.array([-1], pa.timestamp("ns")), "timestamp_ntz", datetime(1969, 12, 31, 23, 59, 59, 999999)),
        (pa.array([-1], pa.timestamp("ns", "UTC")), "timestamp", datetime(1969, 12, 31, 23, 59, 59, 999999)),
        (pa.array([time(1, 2, 3, 4)], pa.time64("us")), "string", "01:02:03.000004"),
        (pa.array([UUID(int=7).bytes], pa.uuid()), "string", str(UUID(int=7))),
        (pa.array(["a"]).dictionary_encode(), "string", "a"),
        (pa.array(["a"], pa.large_string()), "string", "a"),
        (pa.array([b"\x00\xff"], pa.binary()), "binary", bytearray(b"\x00\xff")),
        (pa.array([[1, 2]]), "array<bigint>", [1, 2]),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "string", '{"k":1}'),
        (pa.nulls(1), "string", None),
    ],
    ids=str,
)
def test_types_and_values_of_parquet_are_kept(source, array, spark_type, value):
    put(source, "a.parquet", {"c": array})
    found = source.discover()
    assert source.types(found) == {"c": spark_type}
    assert [row.c for row in source.rows(found)] == [value]


def test_old_96_bit_timestamps_are_instants(source):
    put(source, "a.parquet", {"c": pa.array([MOMENT], pa.timestamp("us"))}, use_deprecated_int96_timestamps=True)
    found = source.discover(cursor="c")
    assert source.types(found) == {"c": "timestamp"}
    assert [row.c for row in source.rows(found)] == [MOMENT]
    assert found.extent.lower == int(MOMENT.replace(tzinfo=UTC).timestamp() * 1_000_000)


def test_nested_types_keep_their_field_names(source):
    put(source, "a.parquet", {"c": [{"a b": 1, "l": [{"x": Decimal("1.5")}]}]})
    found = source.discover()
    assert source.types(found) == {"c": "struct<`a b`:bigint,`l`:array<struct<`x`:decimal(2,1)>>>"}
    assert source.rows(found)[0].c["a b"] == 1


def test_narrower_types_are_widened_without_loss(source, values):
    put(source, "a.parquet", {"n": pa.array([1], pa.int32()), "d": pa.array([Decimal("1.2")], pa.decimal128(5, 1))})
    put(source, "b.parquet", {"n": [2**40], "d": pa.array([Decimal("1.25")], pa.decimal128(10, 2))})
    put(source, "c.parquet", {"n": pa.nulls(1), "d": pa.nulls(1)})
    found = source.discover()
    assert source.types(found) == {"n": "bigint", "d": "decimal(10,2)"}
    rows = source.rows(found)
    assert values(rows, "n") == [1, 2**40, None]
    assert values(rows, "d") == [Decimal("1.20"), Decimal("1.25"), None]


def test_a_file_of_another_schema_is_named_with_its_column_and_both_types(source):
    put(source, "a.parquet", {"id": [1], "name": ["x"]})
    put(source, "b.parquet", {"id": ["one"], "name": ["y"]})
    with pytest.raises(SourceError, match=r"b\.parquet: column `id` is string, but bigint in .*a\.parquet"):
        source.discover()


def test_a_declared_type_reconciles_files_and_sets_aside_what_does_not_fit(source, values):
    source.columns = {"id": "integer"}
    put(source, "a.parquet", {"id": [1, 2**40]})
    put(source, "b.parquet", {"id": ["2", "two"]})
    put(source, "c.parquet", {"id": [3.0, 3.5]})
    found = source.discover()
    assert source.types(found) == {"id": "int"}
    assert values(source.rows(found), "id") == [1, 2, 3]
    assert source.malformed(found) == ['{"id":"two"}', '{"id":1099511627776}', '{"id":3.5}']


def test_a_declared_type_cuts_no_time_of_day_no_number_and_no_byte(source, values):
    source.columns = {"day": "date", "flag": "boolean", "name": "text"}
    put(
        source,
        "a.parquet",
        {
            "day": pa.array([datetime(2024, 5, 6), MOMENT, None, None], pa.timestamp("us")),
            "flag": [1, 0, 2, None],
            "name": [b"\xc3\xa9", None, None, b"a\xff"],
        },
    )
    found = source.discover()
    assert [tuple(row)[:3] for row in source.rows(found)] == [(date(2024, 5, 6), True, "é")]
    assert source.reasons(found) == {"`day` is no date", "`flag` is no boolean", "`name` is no UTF-8"}


def test_json_of_maps_keeps_nulls_and_microseconds(source):
    item = pa.struct([("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("none", pa.int32())])
    put(source, "a.parquet", {"c": pa.array([[("k", (MOMENT, MOMENT, None))]], pa.map_(pa.string(), item))})
    expected = '{"k":{"at":"2024-05-06T07:08:09.123456Z","local":"2024-05-06T07:08:09.123456","none":null}}'
    assert [row.c for row in source.rows()] == [expected]


def test_a_declared_type_without_a_meaning_for_the_column_is_refused(source):
    source.columns = {"id": "boolean"}
    put(source, "a.parquet", {"id": [date(2024, 1, 1)]})
    with pytest.raises(SourceError, match="`id` is date, which cannot become boolean"):
        source.discover()


def test_missing_columns_are_null_and_told(source, values):
    put(source, "a.parquet", {"id": [1], "name": ["x"]})
    put(source, "b.parquet", {"name": ["y"], "extra": [2.5]})
    found = source.discover()
    assert list(source.types(found)) == ["id", "name", "extra"]
    assert values(source.rows(found), "id") == [1, None]
    assert any("b.parquet has no `id`" in warning for warning in found.warnings)


def test_column_names_keep_their_case_dots_and_quotes(source):
    put(source, "a.parquet", {"Id": [1], "id": [2], "a.b": [3], "q`t": [4]})
    assert tuple(source.rows()[0]) == (1, 2, 3, 4)


def test_half_a_file_and_an_empty_one_are_named_and_the_others_still_told(source):
    whole = put(source, "a.parquet", {"id": [1]}).read_bytes()
    for contents, fault in ((whole[: len(whole) // 2], "is no complete parquet file"), (b"", "is empty")):
        broken = source.write("b.parquet", contents)
        found = source.discover()
        assert [Path(state.path).name for state in found.files] == ["a.parquet", "b.parquet"]
        assert list(found.broken) == [str(broken)]
        assert f"b.parquet {fault}" in str(found.broken[str(broken)])
        assert [column.name for column in found.schema.columns] == ["id"]


def test_a_broken_file_is_an_error_where_its_windows_are_not_known_or_nothing_else_is_there(source):
    broken = source.write("b.parquet", b"")
    with pytest.raises(SourceError, match=r"b\.parquet is empty"):
        source.discover()
    put(source, "a.parquet", {"id": [1]})
    assert list(source.discover().broken) == [str(broken)]
    with pytest.raises(SourceError, match=r"b\.parquet is empty"):
        source.discover(cursor="id")


def test_a_type_that_spark_does_not_read_is_named(source):
    put(source, "a.parquet", {"id": [1], "half": pa.array([1.5], pa.float16())})
    with pytest.raises(SourceError, match=r"a\.parquet: column `half` is of type halffloat"):
        source.discover()


def test_orc_files_are_read(source):
    path = source.write("a.orc", b"")
    table = {"id": pa.array([1], pa.int32()), "at": pa.array([MOMENT], pa.timestamp("ns")), "d": [Decimal("1.25")]}
    orc.write_table(pa.table(table), path)
    found = source.discover(cursor="at")
    assert source.types(found) == {"id": "int", "at": "timestamp", "d": "decimal(3,2)"}
    assert tuple(source.rows(found)[0])[:3] == (1, MOMENT, Decimal("1.25"))
    assert found.extent.upper == int(MOMENT.replace(tzinfo=UTC).timestamp() * 1_000_000)


def test_what_breaks_while_spark_reads_is_told_in_our_words(source):
    first = put(source, "sp ace.parquet", {"id": [1]})
    frame = source.read(source.discover()).frame
    first.write_bytes(b"PAR1 but nothing else PAR1")
    with pytest.raises(SPARK_ERRORS) as damaged:
        frame.collect()
    told = explain_read_error(damaged.value, "shop/orders")
    assert f"{first} cannot be read to its end" in str(told)
    os.remove(first)
    with pytest.raises(SPARK_ERRORS) as gone:
        frame.collect()
    assert f"{first} vanished while it was read" in str(explain_read_error(gone.value, "shop/orders"))
    assert explain_read_error(ValueError("other"), "shop/orders") is None


def test_a_column_that_changed_its_type_behind_our_back_is_told(source):
    path = put(source, "a.parquet", {"id": [1]})
    frame = source.read(source.discover()).frame
    pq.write_table(pa.table({"id": ["x"]}), path)
    with pytest.raises(SPARK_ERRORS) as changed:
        frame.collect()
    assert "column `id` is BINARY, expected bigint" in str(explain_read_error(changed.value, "shop/orders"))


def test_parquet_is_still_read_by_the_vectorised_reader(source, capsys):
    columns = {
        "id": [1, 2],
        "price": pa.array([Decimal("1.25")] * 2, pa.decimal128(15, 2)),
        "day": [date(2024, 1, 1)] * 2,
    }
    put(source, "a.parquet", columns)
    put(source, "b.parquet", columns)
    source.read(source.discover()).frame.explain("formatted")
    plan = capsys.readouterr().out
    assert "Batched: true" in plan
    assert "ColumnarToRow" in plan
