"""Columns, rows and expressions that tests share."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hakiri_dagster.expressions.tree import Kind

KINDS: dict[str, Kind] = {
    "i": "integer",
    "j": "integer",
    "l": "long",
    "m": "decimal",
    "f": "float",
    "t": "text",
    "u": "text",
    "b": "boolean",
    "c": "boolean",
    "d": "date",
    "e": "date",
    "ts": "timestamp",
    "nt": "timestamp_ntz",
    "bin": "bytes",
    "list": "other",
    "first name": "text",
    "a.b": "integer",
    "back`tick": "integer",
    "Upper": "text",
    "upper": "text",
    "it's": "text",
    "${env:PATH}": "text",
}
SPARK_TYPES: dict[str, str] = {
    "i": "int", "j": "int", "l": "bigint", "m": "decimal(12,2)", "f": "double", "t": "string", "u": "string",
    "b": "boolean", "c": "boolean", "d": "date", "e": "date", "ts": "timestamp", "nt": "timestamp_ntz",
    "bin": "binary", "list": "array<int>", "first name": "string", "a.b": "int", "back`tick": "int", "Upper": "string",
    "upper": "string", "it's": "string", "${env:PATH}": "string",
}  # fmt: skip

ACCEPTED = [
    # comparisons
    "i = j", "i == j", "i <> j", "i != j", "i < j", "i <= j", "i > j", "i >= j", "i <=> j",
    "i IS DISTINCT FROM j", "i IS NOT DISTINCT FROM j", "i = l", "l <= m", "m < f", "i + 1 > j - 1", "t < u",
    "d <= e", "d <= ts", "ts > d", "nt >= d", "ts = nt", "b = c", "b <> c", "bin = bin",
    "d >= '2024-01-31'", "'2024-01-31' < ts", "ts < '2024-01-31 06:00'", "ts >= '2024-01-31T06:00:00+02:00'",
    "nt < '2024-01-31 06:00:00.5'", "d = DATE '2024-02-29'", "ts > TIMESTAMP '2024-01-01 00:00:00Z'",
    "nt > TIMESTAMP_NTZ '2024-01-01 00:00:00'", "d < CAST('2024-01-31' AS DATE)",
    # logic, and what binds how
    "b", "NOT b", "!b", "b AND c", "b OR c AND i > 1", "(b OR c) AND i > 1", "NOT b AND c", "NOT i = j", "NOT NOT b",
    "NOT (b OR c)", "b IS TRUE", "b IS NOT TRUE", "b IS FALSE", "b IS NOT FALSE", "(i > 1) IS TRUE", "i = j IS NULL",
    "b = c IS NOT NULL", "b = (c IS NULL)", "NOT i BETWEEN 1 AND 5", "NOT t IS NULL",
    "b AND NOT c OR i < 0", "i IS NULL OR j IS NULL AND b",
    # sets, ranges, patterns
    "i IN (1, 2, NULLIF(3, 4))", "i NOT IN (1, 2)", "t IN ('A', 'B')", "t NOT IN ('A')", "d IN ('2024-01-31', e)",
    "d IN (ts)", "m IN (1, 2.50, i)", "i IN (1.0, 2)", "b IN (TRUE)",
    "i BETWEEN 1 AND 5", "i NOT BETWEEN 1 AND 5", "i BETWEEN j AND j + 1 AND b", "d BETWEEN '2024-01-01' AND e",
    "t BETWEEN 'A' AND 'B'", "t LIKE 'A%'", "t LIKE '%b'", "t LIKE '%b%'", "t LIKE 'a%b'", "t LIKE 'a%b%'",
    "t LIKE 'a_c'", "t LIKE '%_'", "t LIKE ''", "t LIKE 'a'", "t NOT LIKE 'a%'", "t ILIKE 'A%'", "t NOT ILIKE '%A'",
    "t LIKE '50!%' ESCAPE '!'", "t LIKE '!_!!%' ESCAPE '!'", "t LIKE 'a.c'", "t LIKE '(%'", "t LIKE '${env:PATH}%'",
    # NULL
    "i IS NULL", "list IS NOT NULL", "bin IS NULL", "isnull(i)", "isnotnull(list)", "coalesce(i, j, 0) > 1",
    "coalesce(b, TRUE)", "nvl(t, u) = 'A'", "ifnull(m, 0) >= 0", "nullif(i, j) IS NULL", "nvl2(i, j, 0) > 0",
    # arithmetic
    "i * 2 > j", "i * j > 10", "i + j > 0", "l - i < 0", "i / j > 1", "l / 2 >= 1", "m / i > 0.5", "f / i > 0",
    "i % 2 = 0", "mod(i, 2) = 1", "i % j = 0", "f % 2 = 1", "m % 2 = 0", "-i < 0", "- m < 0", "-f > -1", "-5 < i",
    "i > -2147483648", "l > -9223372036854775808", "l < 9223372036854775808", "i = 1.5", "f > 1e5", "f > 1.5e-3",
    "m = 1.50", "m > .5", "m > 5.", "i + l + m + f > 0", "i - j - 1 = 0", "i - (j - 1) = 0", "i * j + 1 > i / 2 - 1",
    "i > 5L", "f = 1.5D", "m = 1.5BD", "m * m * m * m > 0", "m + 0.001 > 1", "abs(i) >= 0", "abs(l) > 5", "abs(m) > 5",
    "abs(f) > 5", "sign(i) = 1", "sqrt(i) > 2", "cbrt(i) > 1", "exp(f) > 1", "ln(i) > 0", "log2(f) > 0",
    "log10(l) > 0", "power(i, 2) > 4", "pow(f, 0.5) > 1", "round(m, 1) > 1.5", "round(m) = 2", "round(f, 2) = 1.25",
    "round(i) = i", "round(l, 2) = l", "floor(f) = 1", "ceil(f) = 2", "ceiling(m) = 2", "floor(m) = 1", "floor(i) = i",
    "ceil(l) = l", "isnan(f)", "greatest(i, j) > 1", "least(i, l, 1.5) > 1", "greatest(d, e) = e", "least(t, u) = t",
    "signum(m) = 1",
    # texts
    "upper(t) = 'A'", "lower(t) = 'a'", "ucase(t) = lcase(u)", "trim(t) = t", "ltrim(t) = rtrim(t)",
    "btrim(t, 'A') = ''", "length(t) > 1", "len(t) = char_length(t)", "character_length(t) = 3", "octet_length(t) = 2",
    "bit_length(bin) = 8", "length(bin) = 1", "substring(t, 1, 2) = 'ab'", "substr(t, 2) = 'b'", "left(t, 1) = 'A'",
    "right(t, 2) = 'bc'", "substring(t, i, j) = 'a'", "reverse(t) = t", "initcap(t) = t", "t || u = 'AB'",
    "concat(t, '-', u) = 'A-B'", "translate(t, 'ab', 'x') = 'x'", "replace(t, 'ab', 'x') = 'x'",
    "replace(t, ' ', '') = t", "instr(t, 'b') = 2", "locate('b', t) = 2", "locate('b', t, 2) > 0",
    "position('b', t) > 0", "startswith(t, 'a')", "endswith(t, u)", "contains(t, 'b')", "ascii(t) = 65",
    "t = 'it''s'", "t = 'ä ß 😀'", "t = ''", "t <> 'a;b'", "t = '${env:PATH}'", "t = '%_'", "t = 'tab	end'",
    # days and times
    "year(d) = 2024", "month(ts) = 1", "day(nt) = 31", "quarter(d) = 1", "dayofweek(d) = 2", "weekday(d) < 5",
    "dayofyear(d) = 31", "weekofyear(d) = 5", "dayofmonth(d) = 31", "hour(ts) = 6", "minute(nt) = 0", "second(ts) < 30",
    "datediff(e, d) >= 0", "datediff(ts, d) = 0", "datediff(d, '2024-01-01') > 5", "date_diff(d, e) < 0",
    "date_add(d, 7) > e", "date_add(ts, 1) > d", "date_sub(d, -7) = e", "dateadd(d, 1) = e", "add_months(d, 1) > e",
    "last_day(d) = d", "date_add(d, 0) = d",
    # CASE, IF, CAST
    "CASE WHEN i > 1 THEN b ELSE c END", "CASE WHEN i > 1 THEN b END", "CASE i WHEN 1 THEN b WHEN 2 THEN c END",
    "CASE t WHEN 'A' THEN 1 WHEN 'B' THEN 2.5 ELSE i END > 1", "CASE WHEN b THEN NULL ELSE d END > e",
    "CASE WHEN b THEN d ELSE '2024-01-31' END = e", "if(b, i, j) > 1", "if(i > j, t = 'A', u = 'A')",
    "CAST(t AS INT) > 5", "CAST(t AS DECIMAL(10, 2)) > 5", "CAST(t AS DATE) > d", "CAST(t AS BOOLEAN)", "t::int = 1",
    "TRY_CAST(t AS INT) IS NOT NULL", "TRY_CAST(t AS TIMESTAMP) IS NULL", "CAST(i AS STRING) = t",
    "CAST(m AS INT) = 1", "CAST(f AS BIGINT) > 1", "CAST(l AS SMALLINT) = 1", "CAST(ts AS DATE) = d",
    "CAST(d AS TIMESTAMP) = ts", "CAST(ts AS TIMESTAMP_NTZ) = nt", "CAST(nt AS TIMESTAMP) <= ts",
    "CAST(b AS INT) = 1", "CAST(i AS BOOLEAN)", "CAST(m AS DECIMAL(3, 1)) = 1.5", "CAST(i AS TINYINT) = 1",
    "CAST(f AS FLOAT) = 1.25", "CAST(l AS DOUBLE) > 1", "CAST(d AS STRING) = t", "CAST(CAST(t AS INT) AS STRING) = t",
    "CAST(t AS VARCHAR(3)) = 'abc'", "CAST(NULL AS INT) IS NULL OR b", "CAST(f AS DECIMAL(4, 1)) > 1",
    # what cannot be computed, and the rest that decides
    "j = 0 OR i / j > 1", "i / j > 1 OR j = 0", "NOT (i / j > 1 AND b)", "b AND CAST(t AS INT) > 5",
    "CASE WHEN t = 'A' THEN b ELSE CAST(t AS INT) > 1 END", "coalesce(i, CAST(t AS INT)) > 1",
    "coalesce(CAST(t AS INT), 0) > 1", "CAST(t AS INT) IS NULL", "if(j = 0, b, i / j > 1)", "CAST(t AS INT) IN (1, 2)",
    "i IN (1, CAST(t AS INT))", "CAST(t AS INT) BETWEEN 1 AND 5", "NOT CAST(t AS INT) > 5",
    # names
    "`first name` = 'A'", "`a.b` = 1", "`back``tick` > 1", "Upper = upper", "`Upper` <> `upper`", "`it's` = 'x'",
    "`${env:PATH}` = 'x'", "upper(Upper) = Upper",
]  # fmt: skip

FAILING = [
    "i / j > 1", "i % j = 0", "i + 2147483647 > 0", "i * 2 > 0", "-i < 0", "l - 1 < 0", "m * m * m * m > 0",
    "CAST(t AS INT) > 5", "CAST(t AS DATE) > d", "CAST(t AS BOOLEAN)", "CAST(l AS SMALLINT) = 1", "t::int = 1",
    "CAST(t AS INT) IS NULL", "coalesce(CAST(t AS INT), 0) > 1", "b AND CAST(t AS INT) > 5",
    "CAST(b AS DECIMAL(2, 2)) > 0",
]  # fmt: skip
"""Of some rows, to Spark."""

ROWS: list[dict[str, Any]] = [
    {"i": 1, "j": 0, "l": 5, "m": Decimal("1.50"), "f": 1.25, "t": "A", "u": "B", "b": True, "c": False,
     "d": date(2024, 1, 31), "e": date(2024, 2, 1), "ts": datetime(2024, 1, 31, 6, tzinfo=UTC),
     "nt": datetime(2024, 1, 31), "bin": b"A", "list": [1], "first name": "A", "a.b": 1, "back`tick": 2,
     "Upper": "X", "upper": "X", "it's": "x", "${env:PATH}": "x"},
    {"i": 2, "j": 2, "l": -7, "m": Decimal("-0.01"), "f": -0.0, "t": "12", "u": "12", "b": False, "c": True,
     "d": date(2024, 2, 29), "e": date(2023, 12, 31), "ts": datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
     "nt": datetime(1600, 1, 1), "bin": b"\xff\x00", "Upper": "x", "upper": "y", "first name": ""},
    {"i": -2147483648, "j": -1, "l": -9223372036854775808, "m": Decimal("9999999999.99"), "f": float("nan"),
     "t": "abc", "u": "bc", "b": True, "c": True, "d": date(1, 1, 1), "e": date(9999, 12, 31), "bin": b""},
    {"i": 2147483647, "j": 1, "l": 9223372036854775807, "m": Decimal("-9999999999.99"), "f": float("inf"), "t": "",
     "u": "", "b": False, "c": False, "d": date(9999, 12, 31), "e": date(1, 1, 1), "list": []},
    {"i": 3, "j": 2, "l": 0, "m": Decimal("2.50"), "f": 1e300, "t": "it's", "u": "5", "b": None, "c": True},
    {"i": 4, "j": 5, "f": -1e300, "t": "2024-01-31", "u": "A", "b": True, "c": None, "d": date(2024, 1, 31)},
    {"i": 0, "j": None, "t": "${env:PATH}", "u": None, "b": None, "c": None, "f": 2.0, "m": Decimal("0.00")},
    {"i": None, "j": 3, "t": "50%", "b": False, "c": True, "l": 1},
    {"i": 5, "j": 4, "t": "1.5", "u": "true", "b": True}, {"i": 6, "j": 6, "t": "_!x", "f": 0.0},
    {"i": 7, "j": -7, "t": " 7 ", "l": 32768}, {"t": "ä ß 😀"}, {"t": "tab\tend"}, {"t": "true", "i": 128},
    {"t": "a.c"}, {},
]  # fmt: skip
