"""What an expression asks of its columns."""

from __future__ import annotations

import pytest

from hakiri_dagster.expressions.judging import holds, judged
from hakiri_dagster.expressions.reading import read_expression
from hakiri_dagster.expressions.written import Judged, Misfit
from tests.unit.expressions.samples import KINDS

COLUMNS = {name: Judged(kind, f"v{place}") for place, (name, kind) in enumerate(KINDS.items())}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("i", "it comes to an integer, and not to true or false"),
        ("i + 1", "it comes to an integer, and not to true or false"),
        ("upper(t)", "it comes to a text, and not to true or false"),
        ("CASE WHEN b THEN 1 END", "it comes to an integer, and not to true or false"),
        ("b AND i", "a part of AND is an integer, and not true or false"),
        ("NOT t", "a part of NOT is a text, and not true or false"),
        ("i IS TRUE", "a part of IS TRUE and IS FALSE is an integer"),
        ("t = 5", "one side of = is a text, the other an integer; write CAST(… AS …) on one of them"),
        ("i = '5'", "one side of = is an integer, the other a text"),
        ("i IN (1, 'a')", "one side of IN is an integer, the other a text"),
        ("b > c", "one side of > is a boolean, which cannot be compared so"),
        ("list = list", "one side of = is of a type that it cannot look into"),
        ("i = NULL", "= NULL is true of no row; write IS NULL or IS NOT NULL"),
        ("i <=> NULL", "<=> NULL is true of no row"),
        ("d > 5", "one side of > is a date, the other an integer"),
        ("d > 'yesterday'", "'yesterday' is not a date; write it like '2024-01-31'"),
        ("d > '2024-01-31 06:00:00'", "'2024-01-31 06:00:00' is not a date"),
        ("nt > '2024-01-31 06:00:00Z'", "is not a timestamp_ntz"),
        ("ts > '2024-02-30'", "'2024-02-30' is not a timestamp"),
        ("d + 1 > e", "+ is for numbers; of dates there are date_add"),
        ("t + 1 > 2", "+ takes a number there, and not a text"),
        ("i || 'x' = t", "concat takes a text there, and not an integer"),
        ("-t = 1", "- takes a number there"),
        ("i LIKE '1%'", "LIKE is for text, and this is an integer"),
        ("upper(i) = '1'", "upper takes a text there, and not an integer; write CAST(… AS …)"),
        ("substring(t, l) = 'a'", "substring takes an integer there, and not a bigint"),
        ("year(t) = 2024", "year takes a date or a time there, and not a text"),
        ("hour(d) = 6", "hour takes a timestamp or a timestamp without time zone there, and not a date"),
        ("isnan(i)", "isnan takes a floating number there"),
        ("coalesce(i, t) = 1", "coalesce is an integer or a text; write CAST(… AS …)"),
        ("coalesce(NULL, NULL) = i", "coalesce is always NULL"),
        ("CASE WHEN b THEN NULL END OR c", "CASE is always NULL"),
        ("CASE WHEN i THEN b END", "a condition of CASE is an integer"),
        ("if(b, d, ts) > d", "if is a date or a timestamp"),
        ("greatest(b, c)", "one side of greatest is a boolean"),
        ("CAST(d AS INT) > 1", "a date cannot be cast to INT"),
        ("CAST(i AS DATE) > d", "an integer cannot be cast to DATE"),
        ("CAST(list AS STRING) = t", "of a type that it cannot look into cannot be cast to STRING"),
    ],
)
def test_what_does_not_fit_is_told(text: str, why: str) -> None:
    with pytest.raises(Misfit) as misfit:
        holds(read_expression(text), COLUMNS)
    assert why in str(misfit.value)


def test_what_grows_beyond_bounds_is_refused() -> None:
    text = f"i / j IN ({', '.join(str(n) for n in range(1_000_000, 1_000_800))})"
    for _ in range(12):
        text = f"({text}) AND b"
    with pytest.raises(Misfit, match="it is too large; split it into several rules"):
        holds(read_expression(text), COLUMNS)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("b AND NOT c", "coalesce((v7 AND (NOT v8)), TRUE)"),
        ("t = '${env:HOME}'", "coalesce((v5 = '\\u0024{env:HOME}'), TRUE)"),
        ("t = 'it''s'", "coalesce((v5 = 'it\\u0027s'), TRUE)"),
        ("t LIKE '50!%' ESCAPE '!'", "coalesce((v5 LIKE '50\\u005C%'), TRUE)"),
        ("d > '2024-01-31'", "coalesce((v9 > DATE '2024-01-31'), TRUE)"),
        (
            "i / j > 1",
            "(coalesce((try_divide(v0, v1) > 1), TRUE) AND NOT "
            "(try_divide(v0, v1) IS NULL AND v0 IS NOT NULL AND v1 IS NOT NULL))",
        ),
    ],
)
def test_what_spark_is_given_is_of_our_own_writing(text: str, sql: str) -> None:
    assert holds(read_expression(text), COLUMNS) == sql


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i + 1", "integer"), ("i + l", "long"), ("i / 2", "float"), ("m / 2", "decimal"), ("m + f", "float"),
        ("length(t)", "integer"), ("floor(f)", "long"), ("coalesce(NULL, i, 2.5)", "decimal"), ("-m", "decimal"),
        ("date_add(ts, 1)", "date"), ("nullif(t, u)", "text"), ("abs(i)", "decimal"), ("i > 2147483648", "boolean"),
        ("CASE WHEN b THEN i ELSE 2147483648 END", "long"),
    ],
)  # fmt: skip
def test_kinds_follow_spark(text: str, kind: str) -> None:
    assert judged(read_expression(text), COLUMNS).kind == kind
