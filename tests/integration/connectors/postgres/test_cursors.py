from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from hakiri_dagster.connectors.contract import Known
from hakiri_dagster.errors import SourceError
from hakiri_dagster.planning.chunks import CursorRange, Interval, NullCursor
from hakiri_dagster.planning.horizon import CursorHistory, Lookback, Reread

from .conftest import Source, no_spark, parts_of

DAY = 86_400_000_000


def micros(year: int, month: int, day: int, microsecond: int = 0) -> int:
    since = datetime(year, month, day, microsecond=microsecond, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(microseconds=1)


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("kind", ["timestamptz", "timestamp", "date"])
def test_the_extent_of_a_time_is_told_in_microseconds_of_utc(source: Source, kind: str, index: bool) -> None:
    source.run(
        f"CREATE TABLE t (at {kind})",
        "SET timezone = 'UTC'",
        "INSERT INTO t SELECT t FROM unnest(ARRAY['1969-12-31', '2024-03-31', '2024-03-31', NULL]::date[]) AS t",
    )
    if index:
        source.run("CREATE INDEX ON t (at)")
    found = source.discover("t", "at")
    assert found.cursor_kind == ("date" if kind == "date" else "timestamp")
    assert found.extent is not None
    assert (found.extent.lower, found.extent.upper) == (-DAY, micros(2024, 3, 31))
    assert (found.extent.nulls, found.extent.rows_at_upper) == (1, 2)
    assert found.extent.upper_by_now is None


def test_the_extent_keeps_every_microsecond(source: Source) -> None:
    source.run("CREATE TABLE t AS SELECT timestamptz '2024-01-01 00:00:00.000001+00' AS at")
    found = source.discover("t", "at")
    assert found.extent is not None
    assert found.extent.upper == micros(2024, 1, 1, 1)


@pytest.mark.parametrize("kind", ["timestamptz", "timestamp", "date"])
def test_rows_dated_after_now_do_not_hide_the_newest_of_today(source: Source, kind: str) -> None:
    source.run(
        f"CREATE TABLE t (at {kind})",
        "INSERT INTO t VALUES ('2099-01-01'), ('2024-01-01'), ('2024-01-01'), ('2023-01-01')",
    )
    extent = source.discover("t", "at").extent
    assert extent is not None
    assert (extent.upper, extent.rows_at_upper) == (micros(2099, 1, 1), 1)
    assert (extent.upper_by_now, extent.rows_at_upper_by_now) == (micros(2024, 1, 1), 2)


@pytest.mark.parametrize(
    "kind", ["timestamptz", "timestamp", "date", "bigint", "smallint", "oid", "numeric", "numeric(9,2)"]
)
def test_a_stretch_that_is_read_again_shows_rows_that_come_go_or_move(source: Source, kind: str) -> None:
    is_number = kind.startswith(("big", "small", "oid", "num"))
    value = (lambda n: str(n)) if is_number else (lambda n: f"'2024-01-{n:02}'")
    lower = 10 if is_number else micros(2024, 1, 10)
    source.run(f"CREATE TABLE t (at {kind})", *(f"INSERT INTO t VALUES ({value(n)})" for n in (1, 10, 12, 14)))
    lookback = Lookback(CursorHistory(reread=Reread(lower)), judges=False)

    def fingerprint() -> str:
        extent = source.table("t").discover(cursor="at", known=Known(), spark=no_spark, lookback=lookback).extent
        assert extent is not None
        ((found, text),) = extent.fingerprints
        assert found == lower
        return text

    seen = [fingerprint()]
    for change in (
        f"INSERT INTO t VALUES ({value(11)})",
        f"UPDATE t SET at = {value(13)} WHERE at = {value(12)}",
        f"DELETE FROM t WHERE at = {value(13)}",
    ):
        source.run(change)
        seen.append(fingerprint())
    assert len(set(seen)) == 4
    source.run(f"UPDATE t SET at = {value(2)} WHERE at = {value(1)}")
    assert fingerprint() == seen[-1], "what lies before the stretch is not in it"


@pytest.mark.parametrize(("kind", "values", "expected"), [
    ("integer", "(-5), (7), (7)", (-5, 7, 2)),
    ("bigint", "(0), (9223372036854775807)", (0, 9223372036854775807, 1)),
    ("oid", "(1), (4294967295)", (1, 4294967295, 1)),
    ("numeric(10,2)", "(-0.5), (7.99)", (-1, 7, 1)),
    ("numeric", "(-0.5), (7.99)", (-1, 7, 1)),
])  # fmt: skip
def test_the_extent_of_a_number_is_its_floor(
    source: Source, kind: str, values: str, expected: tuple[int, int, int]
) -> None:
    source.run(f"CREATE TABLE t (id {kind})", f"INSERT INTO t VALUES {values}")
    found = source.discover("t", "id")
    assert found.cursor_kind == "numeric"
    assert found.extent is not None
    assert (found.extent.lower, found.extent.upper, found.extent.rows_at_upper) == expected


@pytest.mark.parametrize("index", [True, False])
def test_numbers_without_a_position_are_counted_and_read_as_null(source: Source, index: bool) -> None:
    source.run(
        "CREATE TABLE t (id int, n numeric)",
        "INSERT INTO t VALUES (1, 'NaN'), (2, 'Infinity'), (3, '-Infinity'), (4, NULL), (5, 0.5), (6, 7)",
    )
    if index:
        source.run("CREATE INDEX ON t (n)")
    extent = source.discover("t", "n").extent
    assert extent is not None
    assert (extent.lower, extent.upper, extent.nulls, extent.rows_at_upper) == (0, 7, 4, 1)

    def ids(*bounds: CursorRange | NullCursor) -> list[int]:
        return sorted(source.rows("t", *bounds, cursor="n").column("id").to_pylist())

    assert ids(NullCursor()) == [1, 2, 3, 4]
    assert ids(CursorRange(Interval(None, None))) == [5, 6]
    assert ids(CursorRange(Interval(None, 1))) == [5]
    assert ids(CursorRange(Interval(1, None))) == [6]


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_a_number_beyond_64_bits_is_refused(source: Source, value: int) -> None:
    source.run("CREATE TABLE t (n numeric)", f"INSERT INTO t VALUES (1), ({value})")
    with pytest.raises(SourceError, match="no position"):
        source.discover("t", "n")


@pytest.mark.parametrize(
    ("kind", "value"), [("timestamptz", "infinity"), ("date", "-infinity"), ("numeric(10,2)", "NaN")]
)
def test_a_cursor_without_a_position_is_refused(source: Source, kind: str, value: str) -> None:
    source.run(f"CREATE TABLE t (c {kind})", f"INSERT INTO t VALUES ('{value}')")
    with pytest.raises(SourceError, match="no position"):
        source.discover("t", "c")


def test_a_cursor_that_is_not_there_is_told_with_the_name_that_was_meant(source: Source) -> None:
    source.run("CREATE TABLE t (updated_at timestamptz, note text)")
    with pytest.raises(SourceError, match="did you mean `updated_at`"):
        source.discover("t", "update_at")
    with pytest.raises(SourceError, match="'note' of type text cannot be a cursor"):
        source.discover("t", "note")
    with pytest.raises(SourceError, match="'updated_at' of type text cannot be a cursor"):
        source.discover("t", "updated_at", text_columns=["updated_at"])


@pytest.mark.parametrize("kind", ["timestamptz", "timestamp"])
def test_slices_of_a_time_are_half_open_and_nulls_come_only_when_asked_for(source: Source, kind: str) -> None:
    source.run(
        f"CREATE TABLE t (id int, at {kind})",
        "SET timezone = 'UTC'",
        "INSERT INTO t VALUES (1, '2023-12-31 23:59:59.999999'), (2, '2024-01-01'), (3, '2024-01-31 23:59:59.999999'),"
        " (4, '2024-02-01'), (5, NULL), (6, '0044-03-15 BC')",
    )
    january = CursorRange(Interval(micros(2024, 1, 1), micros(2024, 2, 1)))

    def ids(*bounds: CursorRange | NullCursor) -> list[int]:
        return sorted(source.rows("t", *bounds, cursor="at").column("id").to_pylist())

    assert ids(january) == [2, 3]
    assert ids(january, NullCursor()) == [2, 3, 5]
    assert ids(NullCursor()) == [5]
    assert ids(CursorRange(Interval(None, micros(2024, 1, 1)))) == [1, 6]
    assert ids(CursorRange(Interval(micros(2024, 2, 1), None))) == [4]
    assert ids(CursorRange(Interval(None, None))) == [1, 2, 3, 4, 6]
    assert ids(CursorRange(Interval(None, micros(2024, 1, 1))), CursorRange(Interval(micros(2024, 2, 1), None))) == [
        1, 4, 6,
    ]  # fmt: skip


def test_slices_of_a_date_and_of_a_numeric_are_half_open(source: Source) -> None:
    source.run(
        "CREATE TABLE t (d date, n numeric)",
        "INSERT INTO t VALUES ('2024-01-01', -0.5), ('2024-01-02', 0), ('2024-01-03', 1.99), ('2024-01-04', 2)",
    )
    noon = DAY // 2
    by_day = CursorRange(Interval(micros(2024, 1, 1) + noon, micros(2024, 1, 2) + noon))
    assert source.rows("t", by_day, cursor="d").column("d").to_pylist() == [date(2024, 1, 2)]
    by_number = CursorRange(Interval(0, 2))
    assert source.rows("t", by_number, cursor="n").column("n").to_pylist() == ["0", "1.99"]


@pytest.mark.parametrize("kind", ["smallint", "oid", "bigint", "numeric(4,1)"])
def test_slices_may_reach_beyond_what_the_type_of_the_cursor_holds(source: Source, kind: str) -> None:
    source.run(f"CREATE TABLE t (id {kind})", "INSERT INTO t VALUES (1), (2), (NULL)")
    assert source.rows("t", CursorRange(Interval(2, 2**70)), cursor="id").num_rows == 1
    assert source.rows("t", CursorRange(Interval(-(2**70), 2)), cursor="id").num_rows == 1


def test_a_small_part_of_an_indexed_table_is_read_by_the_cursor_in_parts(source: Source, many_parts: None) -> None:
    source.run(
        "CREATE TABLE t AS SELECT n AS id, repeat('x', 100) AS pad FROM generate_series(1, 20000) AS n",
        "CREATE INDEX ON t (id)",
        "VACUUM ANALYZE t",
    )
    reading = source.read("t", CursorRange(Interval(5000, 6000)), cursor="id")
    assert parts_of(reading) > 1
    assert reading.direct is not None
    statements = reading.direct.statements  # type: ignore[attr-defined]  # what is asked is the point here
    assert not any("ctid" in statement for statement in statements)
    assert sorted(row.id for row in reading.frame.select("id").collect()) == list(range(5000, 6000))
    reading.close()

    whole = source.read("t", CursorRange(Interval(0, 19000)), cursor="id")
    assert whole.direct is not None
    assert all("ctid" in statement for statement in whole.direct.statements)  # type: ignore[attr-defined]
    assert whole.frame.count() == 18999
    whole.close()
