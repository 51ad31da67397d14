from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hakiri_dagster.connectors.files.cursors import overlaps
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.chunks import CursorRange, Interval, NullCursor


def micros(*parts: int) -> int:
    return int((datetime(*parts, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)


def window(lower: int | None, upper: int | None) -> CursorRange:
    return CursorRange(Interval(lower, upper))


MONTHS = {
    "csv": lambda month: "id,at\n" + "".join(f"{month}{day},2024-0{month}-0{day} 00:00:00\n" for day in (1, 5)),
    "jsonl": lambda month: "".join(f'{{"id":{month}{day},"at":"2024-0{month}-0{day} 00:00:00"}}\n' for day in (1, 5)),
}


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
def test_the_extent_of_text_files_is_looked_up_once_a_file(source, remember, format_):
    source.columns = {"at": "timestamptz", "id": "integer"}
    for month in (1, 2):
        source.write(f"{month}.{format_}", MONTHS[format_](month))
    first = source.discover(cursor="at")
    assert first.cursor_kind == "timestamp"
    assert (first.extent.lower, first.extent.upper) == (micros(2024, 1, 1), micros(2024, 2, 5))
    assert [state.rows for state in first.files] == [2, 2]
    starts = source.spark_starts
    assert source.discover(cursor="at", known=remember(first)).extent == first.extent
    assert source.spark_starts == starts
    source.write(f"3.{format_}", MONTHS[format_](3))
    assert source.discover(cursor="at", known=remember(first)).extent.upper == micros(2024, 3, 5)


@pytest.mark.parametrize(
    ("array", "kind", "lower", "upper"),
    [
        (pa.array([3, None, 9]), "numeric", 3, 9),
        (pa.array([Decimal("-1.5"), None, Decimal("2.5")]), "numeric", -2, 2),
        (pa.array([date(1969, 12, 31), None, date(2024, 1, 1)]), "date", -86_400_000_000, micros(2024, 1, 1)),
        (
            pa.array([datetime(2024, 1, 1), None], pa.timestamp("ns")),
            "timestamp",
            micros(2024, 1, 1),
            micros(2024, 1, 1),
        ),
        (
            pa.array([datetime(2024, 1, 1), None], pa.timestamp("ms", "UTC")),
            "timestamp",
            micros(2024, 1, 1),
            micros(2024, 1, 1),
        ),
    ],
    ids=str,
)
def test_the_extent_of_parquet_comes_from_the_footer(source, array, kind, lower, upper):
    pq.write_table(pa.table({"c": array}), source.write("a.parquet", b""))
    found = source.discover(cursor="c")
    assert (found.cursor_kind, found.extent.lower, found.extent.upper, found.extent.nulls) == (kind, lower, upper, 1)
    assert (found.rows_estimate, source.spark_starts) == (len(array), 0)


NOWHERE = [math.nan, math.inf, -math.inf, None]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_nan_and_infinity_in_parquet_belong_to_the_null_chunk(source, kind):
    values = pa.array([-1.5, *NOWHERE, 2.5], kind)
    pq.write_table(pa.table({"id": range(6), "c": values}), source.write("a.parquet", b""), row_group_size=3)
    found = source.discover(cursor="c")
    assert (found.extent.lower, found.extent.upper, found.extent.nulls) == (-2, 2, 4)
    assert source.spark_starts == 1  # no footer tells whether there is a NaN

    def ids(*bounds):
        return sorted(row.id for row in source.rows(found, "c", *bounds))

    assert ids(window(None, None)) == [0, 5]
    assert ids(window(None, 0)) == [0]
    assert ids(window(0, None)) == [5]
    assert ids(NullCursor()) == [1, 2, 3, 4]
    assert ids(window(0, 10), NullCursor()) == [1, 2, 3, 4, 5]


def test_nan_and_infinity_in_text_belong_to_the_null_chunk(source):
    source.columns = {"c": "double precision"}
    source.write("a.csv", "id,c\n1,NaN\n2,1.5\n3,-inf\n4,\n")
    found = source.discover(cursor="c")
    assert (found.extent.lower, found.extent.upper, found.extent.nulls) == (1, 1, 3)
    assert sorted(row.id for row in source.rows(found, "c", NullCursor())) == [1, 3, 4]
    assert [row.id for row in source.rows(found, "c", window(None, None))] == [2]


def test_a_file_of_nan_only_has_a_null_chunk_and_no_extent(source):
    pq.write_table(pa.table({"c": [math.nan, math.nan]}), source.write("a.parquet", b""))
    extent = source.discover(cursor="c").extent
    assert (extent.lower, extent.upper, extent.nulls) == (None, None, 2)


def test_windows_of_large_floats_lose_no_row_between_two_numbers_that_a_double_holds(source):
    values = [float(2**60 + 256 * n) for n in range(4)]
    pq.write_table(pa.table({"c": values}), source.write("a.parquet", b""))
    found = source.discover(cursor="c")
    edge = 2**60 + 256 + 100  # as a double it would be the second value
    assert sorted(row.c for row in source.read(found, "c", window(None, edge)).frame.collect()) == values[:2]
    assert sorted(row.c for row in source.read(found, "c", window(edge, None)).frame.collect()) == values[2:]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2**64 - 1], pa.uint64()),
        pa.array([Decimal(1), Decimal(2**64 + 5)], pa.decimal128(38, 0)),
        pa.array([Decimal(1), Decimal(-(2**63) - 1)], pa.decimal128(38, 0)),
        pa.array([1.0, 1e300]),
        pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32()),
    ],
    ids=lambda array: str(array.type),
)
@pytest.mark.parametrize("told", [True, False], ids=["by the footer", "by a scan"])
def test_a_cursor_beyond_64_bits_is_refused_with_its_file(source, array, told):
    pq.write_table(pa.table({"c": array}), source.write("a.parquet", b""), write_statistics=told)
    with pytest.raises(SourceError, match=r"a\.parquet: the cursor `c` reaches -?\d+, which is no position") as refused:
        source.discover(cursor="c")
    assert "choose another cursor" in str(refused.value)


def test_the_highest_numbers_of_64_bits_are_positions(source):
    last = 2**63 - 1
    pq.write_table(pa.table({"c": pa.array([1, last], pa.uint64())}), source.write("a.parquet", b""))
    found = source.discover(cursor="c")
    assert found.extent.upper == last
    assert [row.c for row in source.rows(found, "c", window(last - 5, last + 995))] == [last]


def test_the_footer_and_a_scan_agree(source):
    table = pa.table(
        {"c": pa.array([datetime(2024, 1, 1, 0, 0, 0, 7), None, datetime(1960, 1, 1)], pa.timestamp("us"))}
    )
    path = source.write("a.parquet", b"")
    pq.write_table(table, path)
    told = source.discover(cursor="c").extent
    assert source.spark_starts == 0
    pq.write_table(table, path, write_statistics=False)
    assert source.discover(cursor="c").extent == told
    assert source.spark_starts == 1


@pytest.mark.parametrize("spark_type", ["timestamptz", "timestamp"])
def test_windows_are_half_open_and_only_their_files_are_read(source, spark_type):
    source.columns = {"at": spark_type, "id": "integer"}
    for month in (1, 2, 3):
        source.write(f"{month}.csv", MONTHS["csv"](month))
    found = source.discover(cursor="at")
    reading = source.read(found, "at", window(micros(2024, 1, 5), micros(2024, 2, 5)))
    assert sorted(row.id for row in reading.frame.collect()) == [15, 21]
    assert [origin.path[-5:] for origin in reading.files] == ["1.csv", "2.csv"]


def test_a_date_between_two_windows_is_in_exactly_one(source):
    source.columns = {"day": "date"}
    source.write("a.csv", "day\n2024-01-01\n2024-01-02\n2024-01-03\n")
    found = source.discover(cursor="day")
    first = source.rows(found, "day", window(None, micros(2024, 1, 2)))
    rest = source.rows(found, "day", window(micros(2024, 1, 2), None))
    assert ([row.day.day for row in first], sorted(row.day.day for row in rest)) == ([1], [2, 3])


def test_the_window_is_pushed_down_to_parquet(source, capsys):
    at = pa.array([datetime(2024, 1, 1), datetime(2024, 2, 1)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"at": at}), source.write("a.parquet", b""))
    found = source.discover(cursor="at")
    reading = source.read(found, "at", window(micros(2024, 2, 1), micros(2024, 3, 1)))
    assert reading.frame.count() == 1
    reading.frame.explain()
    assert "GreaterThanOrEqual(at,2024-02-01" in capsys.readouterr().out


def test_null_cursors_and_malformed_lines_belong_to_the_null_chunk_only(source):
    source.columns = {"at": "timestamptz", "id": "integer"}
    source.write("a.csv", "id,at\n1,2024-01-01 00:00\n2,\n3,never\nx,2024-01-02 00:00\n")
    found = source.discover(cursor="at")
    assert (found.extent.nulls, found.extent.upper) == (3, micros(2024, 1, 1))
    everything = window(None, None)
    assert [row.id for row in source.rows(found, "at", everything)] == [1]
    assert source.malformed(found, "at", everything) == []
    assert [row.id for row in source.rows(found, "at", NullCursor())] == [2]
    assert source.malformed(found, "at", NullCursor()) == ["3,never", "x,2024-01-02 00:00"]
    assert len(source.rows(found, "at", everything, NullCursor())) == 2


def test_a_file_of_malformed_lines_only_still_gives_a_null_chunk(source):
    source.columns = {"at": "timestamptz"}
    source.write("a.csv", "id,at\n1,never\n")
    assert source.discover(cursor="at").extent.nulls == 1


def test_a_slice_that_no_file_overlaps_is_read_as_nothing(source):
    source.columns = {"at": "timestamptz"}
    source.write("a.csv", "id,at\n1,2024-01-01 00:00\n")
    found = source.discover(cursor="at")
    assert source.read(found, "at", window(micros(2030, 1, 1), None)).frame.count() == 0


def test_a_text_cursor_is_refused_with_the_cure(source):
    source.write("a.csv", "id,at\n1,01/02/2024\n")
    with pytest.raises(
        SourceError, match=r'cursor column `at` is of type string(.|\n)*columns = \{ at = "timestamptz" \}'
    ):
        source.discover(cursor="at")


def test_a_cursor_that_no_file_has_is_refused_with_the_names_there_are(source):
    source.write("a.csv", "id,at\n1,2\n")
    with pytest.raises(SourceError, match=r"`updated` is in no file(.|\n)*`id`, `at`"):
        source.discover(cursor="updated")


def test_another_cursor_is_looked_up_anew(source, remember):
    source.write("a.csv", "id,n\n1,70\n")
    first = source.discover(cursor="id")
    assert source.discover(cursor="n", known=remember(first)).extent.upper == 70


def test_years_outside_of_python_are_positions_too(source):
    source.columns = {"at": "timestamp"}
    source.write("a.csv", "at\n12000-01-01 00:00\n0001-01-01 00:00\n")
    found = source.discover(cursor="at")
    assert found.extent.lower == -62135596800000000
    inside = source.read(found, "at", window(found.extent.upper, found.extent.upper + 1))
    assert [row.year for row in inside.frame.selectExpr("year(at) year").collect()] == [12000]


def test_a_file_that_was_never_looked_into_may_hold_any_row(source):
    source.write("a.csv", "id\n1\n")
    state = source.discover().files[0]
    assert overlaps(state, window(5, 6))
    assert overlaps(state, NullCursor())
