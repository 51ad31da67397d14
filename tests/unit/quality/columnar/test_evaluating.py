"""Whole expressions, and who computes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hakiri_dagster.errors import UnsafeExpression
from hakiri_dagster.expressions.functions import arity
from hakiri_dagster.expressions.judging import judged
from hakiri_dagster.expressions.reading import read_expression
from hakiri_dagster.expressions.written import Judged, Misfit
from hakiri_dagster.planning.arrow_types import arrow_type
from hakiri_dagster.quality.columnar.calling import FUNCTIONS
from hakiri_dagster.quality.columnar.evaluating import evaluated, is_in_arrow, passing
from hakiri_dagster.quality.columnar.types import settled
from hakiri_dagster.quality.columnar.values import NotInArrow
from hakiri_dagster.quality.expression_rules import kind_of
from tests.unit.expressions.made_up import COLUMNS, rows
from tests.unit.expressions.samples import ACCEPTED, FAILING, SPARK_TYPES

KINDS = {name: arrow_type(told) for name, told in SPARK_TYPES.items()}

TAKEN = [
    "i = j", "i <=> j", "l <= m", "m < f", "t < u", "d <= ts", "ts = nt", "b <> c", "bin = bin", "d >= '2024-01-31'",
    "ts >= '2024-01-31T06:00:00+02:00'", "NOT b AND c", "(b OR c) AND i > 1", "b IS NOT TRUE", "i IN (1, 2)",
    "t NOT IN ('A')", "d IN (ts)", "m IN (1, 2.50, i)", "i BETWEEN j AND j + 1", "t LIKE 'A%'", "t LIKE 'a%b%'",
    "t LIKE 'a_c'", "list IS NOT NULL", "coalesce(i, j, 0) > 1", "nvl2(i, j, 0) > 0", "nullif(i, j) IS NULL",
    "i * j > 10", "m * (1 - m) >= 0 AND t <> ''", "i / j > 1", "f / i > 0", "i % 2 = 0", "mod(i, j) = 1", "-i < 0",
    "i + l + m + f > 0", "abs(l) > 5", "floor(m) = 1", "ceil(f) = 2", "isnan(f)", "greatest(i, j) > 1", "trim(t) = t",
    "length(t) > 1", "octet_length(t) = 2", "substring(t, 1, 2) = 'ab'", "right(t, 2) = 'bc'", "t || u = 'AB'",
    "startswith(t, 'a')", "year(d) = 2024", "weekofyear(d) = 5", "hour(ts) = 6", "datediff(e, d) >= 0",
    "date_add(d, 7) > e", "add_months(d, 1) > e", "CASE WHEN i > 1 THEN b ELSE c END", "if(b, i, j) > 1",
    "CAST(l AS SMALLINT) = 1", "CAST(i AS DECIMAL(12, 2)) = m", "CAST(f AS BIGINT) > 1", "CAST(ts AS DATE) = d",
    "CAST(i AS STRING) = t", "j = 0 OR i / j > 1",
]  # fmt: skip
LEFT = [
    "upper(t) = 'A'", "t ILIKE 'a%'", "replace(t, 'ab', 'x') = 'x'", "contains(t, u)", "substring(t, i, j) = 'a'",
    "round(f, 2) = 1.25", "power(i, 2) > 4", "m / i > 0.5", "m % 2 = 0", "m * m * m * m > 0", "CAST(t AS INT) > 5",
    "TRY_CAST(t AS DATE) IS NULL", "CAST(m AS INT) = 1", "CAST(m AS DECIMAL(12, 1)) = 1", "CAST(d AS STRING) = t",
    "CAST(f AS DECIMAL(4, 1)) > 1", "i < 99999999999999999999", "b OR upper(t) = 'A'",
]  # fmt: skip


@pytest.mark.parametrize("text", TAKEN)
def test_common_expressions_are_computed_by_arrow(text: str) -> None:
    assert is_in_arrow(read_expression(text), KINDS)


@pytest.mark.parametrize("text", LEFT)
def test_what_arrow_does_not_compute_exactly_as_spark_is_left_to_it(text: str) -> None:
    assert not is_in_arrow(read_expression(text), KINDS)


def test_most_of_what_is_allowed_is_computed_by_arrow() -> None:
    taken = [text for text in (*ACCEPTED, *FAILING) if is_in_arrow(read_expression(text), KINDS)]
    assert len(taken) >= 225


@pytest.mark.parametrize("text", ["`first name` = 'A'", "`a.b` = 1", "Upper <> upper"])
def test_columns_are_named_as_they_are(text: str) -> None:
    assert is_in_arrow(read_expression(text), KINDS)


def test_null_passes_and_what_cannot_be_computed_does_not() -> None:
    node = read_expression("v / w > 1")
    columns = {"v": pa.array([4, 1, None, 1, None]), "w": pa.array([2, 2, 1, 0, 0])}
    assert passing(node, columns).to_pylist() == [True, False, True, False, True]


def test_an_answer_that_is_the_same_for_all_rows_is_given_for_each() -> None:
    node = read_expression("1 = 1 OR v > 0")
    assert passing(node, {"v": pa.array([1, None])}).to_pylist() == [True, True]


def taken_by(function: str) -> range:
    """How many arguments."""
    fewest, most = arity(function) or (0, 0)
    return range(fewest, 4 if most is None else most + 1)


EXTREMES = {
    "d": pa.array([2**31 - 1, -(2**31), 0], pa.int32()).cast(pa.date32()),
    "ts": pa.array([2**63 - 1, -(2**63), 0]).cast(pa.timestamp("us", "UTC")),
    "nt": pa.array([-(2**63), 2**63 - 1, 0]).cast(pa.timestamp("us")),
}
NAMES = list(COLUMNS)
SIGNS = ["=", "<", ">=", "<=>", "+", "-", "*", "/", "%", "||", "AND"]
TYPES = ["STRING", "BOOLEAN", "TINYINT", "INT", "BIGINT", "DECIMAL(12, 2)", "DECIMAL(38, 30)", "DECIMAL(3, 3)", "FLOAT",
         "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"]  # fmt: skip
EVERYTHING = [
    *(f"({one}) {sign} ({other})" for sign in SIGNS for one in NAMES for other in NAMES),
    *(f"{one} IN ({other}, 1)" for one in NAMES for other in NAMES),
    *(f"coalesce({one}, {other}, NULL)" for one in NAMES for other in NAMES),
    *(f"greatest({one}, {other})" for one in NAMES for other in NAMES),
    *(f"CASE WHEN b THEN {one} ELSE {other} END" for one in NAMES for other in NAMES),
    *(f"TRY_CAST({one} AS {type_})" for one in NAMES for type_ in TYPES),
    *(f"{function}({one})" for function in FUNCTIONS for one in NAMES if 1 in taken_by(function)),
    *(f"{function}({one}, {more})" for function in FUNCTIONS for one in NAMES for more in ("1", "'a'", "d", "b")
      if 2 in taken_by(function)),
    *(f"{function}({one}, -3, 2)" for function in FUNCTIONS for one in NAMES if 3 in taken_by(function)),
    *(f"- {one}" for one in NAMES), *(f"NOT {one}" for one in NAMES), *(f"{one} LIKE '_%b'" for one in NAMES),
]  # fmt: skip


def test_whatever_fits_the_columns_is_computed_for_any_values_or_left_to_spark() -> None:
    """No row can stop a load."""
    columns = {name: column.cast(settled(column.type)) for name, column in zip(NAMES, rows(150, 1), strict=True)}
    far = {name: pa.nulls(3, settled(kind)) for name, kind in COLUMNS.items()} | EXTREMES
    kinds = {name: Judged(kind_of(kind), name) for name, kind in COLUMNS.items()}
    computed = 0
    for text in EVERYTHING:
        try:
            node = read_expression(text)
            judged(node, kinds)
            evaluated(node, {name: column[:0] for name, column in columns.items()})
        except (UnsafeExpression, Misfit, NotInArrow):
            continue
        evaluated(node, columns)
        evaluated(node, far)
        computed += 1
    assert computed > 2500
