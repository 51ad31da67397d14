"""What a profile says of columns, whatever parts their rows come in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hakiri_dagster.quality.measures import Distinct, Instant, Nulls, Tallied, TextsFound
from hakiri_dagster.quality.numerics import marked
from hakiri_dagster.quality.profile import (
    FEW_VALUES,
    ColumnProfile,
    ProfiledColumn,
    TableProfile,
    measures_of,
    numbers_of,
    profile_of,
)
from hakiri_dagster.quality.profile_told import cells
from hakiri_dagster.quality.tallies import add_up, answers_of, packed, tally, unpacked


def profiled(column: ProfiledColumn, *parts: Sequence[Any], asked: Sequence[Tallied] = ()) -> ColumnProfile:
    measures = measures_of([column], asked=asked)
    tallies: list[Any] = []
    for part in parts:
        batch = pa.record_batch({column.name: pa.array(part, column.kind)})
        batch = marked(batch, {column.name} if column.number_as_text else set())
        tallies = add_up(tallies, unpacked(packed([tally(one, batch) for one in measures])))
    return profile_of([column], sum(map(len, parts)), answers_of(measures, tallies)).columns[0]


TEXT = ProfiledColumn("v", "text", pa.string())


def test_numbers_have_extremes_a_mean_and_their_few_values() -> None:
    found = profiled(ProfiledColumn("v", "integer", pa.int32()), [1, None, 1], [7])
    assert (found.rows, found.nulls, found.distinct, found.mean) == (4, 1, 2, 3.0)
    assert (found.lowest, found.highest) == (1, 7)
    assert found.values == ((1, 2), (7, 1))
    assert numbers_of(found) == {"null_ratio": 0.25, "distinct": 2, "min": 1, "max": 7, "mean": 3.0}


def test_texts_have_lengths_an_order_and_what_all_of_them_can_be_read_as() -> None:
    found = profiled(TEXT, ["12", None], ["007", "9" * 100])
    assert found.texts == TextsFound(2, 100, "007", "9" * 60, frozenset({"integer", "float"}))
    assert profiled(TEXT, ["12"], ["twelve"]).readable_as == frozenset()
    uuid = "8b9f1c1e-93ce-4d4f-8f0a-6b1f3d2b8a10"
    assert profiled(TEXT, [uuid], [None]).readable_as == {"uuid"}
    assert profiled(TEXT, ["2024-02-29"]).readable_as == {"date", "timestamp"}


def test_one_text_that_cannot_be_read_counts_however_late_it_comes() -> None:
    assert "integer" not in profiled(TEXT, [str(number) for number in range(5000)] + ["x"]).readable_as


def test_more_values_than_few_are_counted_and_not_listed() -> None:
    numbers = ProfiledColumn("v", "bigint", pa.int64())
    assert profiled(numbers, range(FEW_VALUES)).values is not None
    found = profiled(numbers, range(15), range(10, 25))
    assert (found.values, found.distinct, found.distinct_is_exact) == (None, 25, True)


def test_a_text_that_is_long_is_not_listed() -> None:
    assert profiled(TEXT, ["a", "b" * 1000]).values is None


def test_many_distinct_values_are_an_estimate() -> None:
    found = profiled(ProfiledColumn("v", "bigint", pa.int64()), range(30_000), range(20_000, 60_000))
    assert not found.distinct_is_exact
    assert found.distinct == pytest.approx(60_000, rel=0.1)
    assert str(cells(found)["distinct"]).startswith("about ")


def test_an_estimate_is_not_above_the_rows_that_have_a_value() -> None:
    column = ProfiledColumn("v", "bigint", pa.int64())
    (found,) = profile_of([column], 10_000, {Nulls("v"): 100, Distinct("v", 20, 2048): 10_300}).columns
    assert (found.distinct, found.distinct_is_exact) == (9_900, False)


def test_times_have_extremes_and_values_as_they_are_written() -> None:
    noon = datetime(2024, 1, 2, 12, tzinfo=UTC)
    found = profiled(ProfiledColumn("v", "timestamptz", pa.timestamp("us", "UTC")), [noon, noon])
    assert found.lowest == Instant.of(noon)
    assert found.values == (("2024-01-02 12:00:00Z", 2),)
    assert numbers_of(found) == {"null_ratio": 0.0, "distinct": 1}
    assert profiled(ProfiledColumn("v", "date", pa.date32()), [date(2024, 1, 2)]).values == (("2024-01-02", 1),)


@pytest.mark.parametrize(
    "column",
    [
        ProfiledColumn("v", "jsonb", pa.string()),
        ProfiledColumn("v", "text[]", pa.string()),
        ProfiledColumn("v", "text[]", pa.list_(pa.string())),
        ProfiledColumn("v", "jsonb", pa.struct([("a", pa.int32())])),
    ],
    ids=lambda column: f"{column.type} as {column.kind}",
)
def test_of_what_has_no_order_only_nulls_are_counted(column: ProfiledColumn) -> None:
    found = profiled(column, [None, None])
    assert (found.nulls, found.distinct, found.values, found.texts) == (2, None, None, None)


def test_other_types_are_told_apart() -> None:
    assert profiled(ProfiledColumn("v", "uuid", pa.string()), ["a", "a"]).texts is None
    assert profiled(ProfiledColumn("v", "bytea", pa.binary()), [b"a", b"b", None]).distinct == 2
    assert profiled(ProfiledColumn("v", "boolean", pa.bool_()), [True, False, True]).values == ((True, 2), (False, 1))


def test_numbers_that_travel_as_texts_are_numbers() -> None:
    found = profiled(ProfiledColumn("v", "numeric", pa.string(), number_as_text=True), ["1.5", None, "10", "NaN"])
    assert found.lowest == 1.5
    assert "max" not in numbers_of(found)
    assert found.mean is None


def test_nothing_that_cannot_be_plotted_is_plotted() -> None:
    found = profiled(ProfiledColumn("v", "double precision", pa.float64()), [float("inf"), float("nan")])
    assert numbers_of(found) == {"null_ratio": 0.0, "distinct": 2}
    assert cells(found)["max"] == "nan"


def test_decimals_keep_their_digits() -> None:
    kind = pa.decimal128(20, 2)
    found = profiled(ProfiledColumn("v", "numeric(20,2)", kind), [Decimal("0.10")], [Decimal("0.20")])
    assert found.lowest == Decimal("0.10")
    assert found.mean == pytest.approx(0.15)


def test_of_no_rows_there_is_nothing_to_tell() -> None:
    found = profiled(TEXT)
    assert (found.rows, found.null_ratio, found.distinct, found.texts) == (0, 0.0, 0, None)


def test_what_validators_ask_is_asked_once() -> None:
    theirs = Distinct("v", 50_000)
    column = ProfiledColumn("v", "bigint", pa.int64())
    measures = measures_of([column], asked=[theirs])
    assert [one for one in measures if isinstance(one, Distinct)] == [theirs]
    assert profiled(column, range(40_000), asked=[theirs]).distinct == 40_000


def test_many_columns_and_slices_share_the_memory() -> None:
    columns = [ProfiledColumn(f"c{place}", "bigint", pa.int64()) for place in range(200)]

    def kept(slices: int) -> int:
        return sum(
            (one.keeps or 0) * slices for one in measures_of(columns, slices=slices) if isinstance(one, Distinct)
        )

    assert kept(1) == 200 * 2048
    assert kept(128) == 200 * 128 * 128


def test_values_that_occur_once_are_not_worth_showing() -> None:
    assert cells(profiled(TEXT, ["a", "b"]))["values"] is None
    assert cells(profiled(TEXT, ["a", "b", "b"]))["values"] == "b (2), a (1)"


def test_columns_that_are_too_many_are_named() -> None:
    assert profile_of([], 3, {}, ["late"]) == TableProfile(3, (), ("late",))
