"""Expressions by chance over columns of all types, and rows with extreme values for them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from decimal import Context
from typing import Any, TypeVar

import pyarrow as pa

COLUMNS: dict[str, pa.DataType] = {
    "y": pa.int8(), "s": pa.int16(), "i": pa.int32(), "j": pa.int32(), "l": pa.int64(), "k": pa.int64(),
    "m": pa.decimal128(12, 2), "n": pa.decimal128(18, 6), "w": pa.decimal128(38, 10), "x": pa.decimal128(3, 3),
    "g": pa.float32(), "f": pa.float64(), "h": pa.float64(), "t": pa.string(), "u": pa.string(), "b": pa.bool_(),
    "c": pa.bool_(), "d": pa.date32(), "e": pa.date32(), "ts": pa.timestamp("us", "UTC"), "nt": pa.timestamp("us"),
    "bin": pa.binary(), "list": pa.list_(pa.int32()),
}  # fmt: skip

_YEAR_1, _YEAR_9999, _LAST_MIDNIGHT = -719_162, 2_932_896, 106_751_990
_DAYS = [0, -1, 1, 11_016, 19_753, 19_782, 19_783, -141_428, _YEAR_1, _YEAR_1 - 1, _YEAR_9999, _YEAR_9999 + 1,
         _LAST_MIDNIGHT, -_LAST_MIDNIGHT]  # fmt: skip
_CLOCKS = [86_400_000_000 * day + more for day in _DAYS for more in (0, 1, -1, 21_600_000_000, 59_999_999)]
_FLOATS = [0.0, -0.0, 1.0, 1.25, -1.5, 2.5, 0.1, 1e300, -1e300, 5e-324, float("nan"), float("inf"), float("-inf"),
           2.0**31, 2.0**53 + 2, 9.2e18, 2.0**63, -(2.0**63), 2.0**24 + 1, 127.9, -128.9, 32768.0]  # fmt: skip
_TEXTS = ["", " ", "A", "a", "abc", "ab", " ab ", "12", "-7", "true", "ä ß 😀", "😀😀", "a\nb", "a%b", "50%", "_!x",
          "\t a", "\u00a0x", "\x00", "ab" * 20, "é", "e\u0301", "z", "it's", "\ufb01"]  # fmt: skip
_BYTES = [b"", b"A", b"\xff\x00", b"ab"]


def rows(count: int, seed: int) -> pa.RecordBatch:
    chance = random.Random(seed)
    columns = [_column(kind, count, chance) for kind in COLUMNS.values()]
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))


def _column(kind: pa.DataType, count: int, chance: random.Random) -> pa.Array:
    known = _values(kind)
    picked = [None if chance.random() < 0.12 else chance.choice(known) for _ in range(count)]
    if pa.types.is_date(kind):
        return pa.array(picked, pa.int32()).cast(kind)
    return pa.array(picked, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(picked, kind)


def _values(kind: pa.DataType) -> Sequence[Any]:
    if pa.types.is_integer(kind):
        most = 2 ** (kind.bit_width - 1) - 1
        half = 1 << (kind.bit_width // 2)
        return [0, 1, -1, 2, 5, -7, 100, most, -most - 1, most - 1, most // 2 + 1, half, -half]
    if pa.types.is_decimal(kind):
        exact, most = Context(prec=40), 10**kind.precision - 1
        unscaled = [0, 1, -1, 100, 150, 250, -250, 999, most, -most, most // 3, -(10 ** (kind.precision - 1))]
        return [exact.scaleb(exact.create_decimal(one), -kind.scale) for one in unscaled]
    if pa.types.is_floating(kind):
        return _FLOATS
    if pa.types.is_date(kind):
        return _DAYS
    if pa.types.is_timestamp(kind):
        return _CLOCKS
    if pa.types.is_boolean(kind):
        return [True, False]
    if pa.types.is_binary(kind):
        return _BYTES
    return _TEXTS if pa.types.is_string(kind) else [[], [1]]


_NUMBERS = [
    "y", "s", "i", "j", "l", "k", "m", "n", "w", "x", "g", "f", "h", "0", "1", "-1", "2", "7", "2147483647",
    "-2147483648", "9223372036854775807", "99999999999999999999", "1.5", "0.01", "-0.5", "100.00", "1e0", "1.5e-3",
    "0e0", "1e300",
]  # fmt: skip
_TRUTHS = ["b", "c", "TRUE", "b IS NULL", "list IS NOT NULL", "bin = bin", "isnan(f)", "isnan(g)", "b = c"]
_WORDS = ["t", "u", "'a'", "''", "'ä'", "'😀'"]
_DATES = ["d", "e", "DATE '2024-02-29'", "DATE '0001-01-01'", "DATE '9999-12-31'"]
_TIMES = ["ts", "nt", "TIMESTAMP '2024-01-31 06:00:00+02:00'", "TIMESTAMP_NTZ '0001-01-01 00:00:00'"]
_WRITTEN_DAYS = ["'2024-01-31'", "'0001-01-01'", "'9999-12-31'"]
_TYPES = ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(38, 10)", "DECIMAL(5, 2)",
          "DECIMAL(20, 0)", "DECIMAL(3, 3)"]  # fmt: skip
_PATTERNS = ["a%", "%b", "%b%", "a%b", "a%b%", "a_c", "%_", "_", "", "a", "😀_", "_%b", "a%_", "% ", "ä%😀"]
_OF_DAYS = ["year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear"]
_SIGNS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]
_PLACES = ["0", "1", "2", "-1", "-3", "-5", "30"]
_LENGTHS = ["0", "1", "3", "-1", "2147483647"]

Maker = Callable[[int], str]
Choice = TypeVar("Choice")


class MadeUp:
    """Texts of expressions, nested so deep. Some of them do not fit the columns."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def of_any_kind(self, depth: int) -> str:
        return self._one_of(self.condition, self.number, self.text, self.day, self.time)(depth)

    def condition(self, depth: int) -> str:
        return self._made(
            depth,
            _TRUTHS,
            lambda d: self._compared(self.number, d),
            lambda d: self._compared(self.number, d),
            lambda d: self._compared(self.text, d),
            lambda d: self._compared(self._one_of(self.day, self.time), d),
            lambda d: f"(({self.condition(d)}) {self._one_of('AND', 'OR')} ({self.condition(d)}))",
            lambda d: f"(NOT ({self.condition(d)}))",
            lambda d: f"(({self.condition(d)}) IS {self._one_of('TRUE', 'FALSE', 'NOT TRUE', 'NULL')})",
            lambda d: f"({self.text(d)} LIKE '{self._one_of(*_PATTERNS)}')",
            lambda d: (
                f"{self._one_of('startswith', 'endswith', 'contains')}({self.text(d)}, {self._one_of(*_WORDS[2:])})"
            ),
            lambda d: f"isnull({self.of_any_kind(d)})",
            lambda d: f"CAST({self.number(d)} AS BOOLEAN)",
            lambda d: self._chosen(self.condition, d),
        )

    def number(self, depth: int) -> str:
        one = self.number
        return self._made(
            depth,
            _NUMBERS,
            lambda d: f"({one(d)} {self._one_of('+', '-', '*')} {one(d)})",
            lambda d: f"({one(d)} {self._one_of('+', '-', '*')} {one(d)})",
            lambda d: f"({one(d)} {self._one_of('/', '%')} {one(d)})",
            lambda d: f"(- ({one(d)}))",
            lambda d: f"{self._one_of('abs', 'floor', 'ceil')}({one(d)})",
            lambda d: f"{self._one_of('CAST', 'TRY_CAST')}({one(d)} AS {self._one_of(*_TYPES)})",
            lambda d: f"CAST({self.condition(d)} AS {self._one_of(*_TYPES)})",
            lambda d: f"{self._one_of('length', 'octet_length', 'bit_length')}({self.text(d)})",
            lambda d: f"{self._one_of(*_OF_DAYS)}({self._one_of(self.day, self.time)(d)})",
            lambda d: f"{self._one_of('hour', 'minute', 'second')}({self.time(d)})",
            lambda d: f"datediff({self.day(d)}, {self.day(d)})",
            lambda d: f"{self._one_of('greatest', 'least')}({one(d)}, {one(d)}, {one(d)})",
            lambda d: self._chosen(one, d),
        )

    def text(self, depth: int) -> str:
        return self._made(
            depth,
            _WORDS,
            lambda d: f"{self._one_of('trim', 'ltrim', 'rtrim', 'btrim')}({self.text(d)})",
            lambda d: f"({self.text(d)} || {self.text(d)})",
            lambda d: f"concat({self.text(d)}, {self.text(d)}, {self.text(d)})",
            lambda d: f"substring({self.text(d)}, {self._one_of(*_PLACES)}, {self._one_of(*_LENGTHS)})",
            lambda d: f"{self._one_of('substr', 'left', 'right')}({self.text(d)}, {self._one_of(*_PLACES)})",
            lambda d: f"CAST({self._one_of('y', 's', 'i', 'l', 'b', 'u')} AS STRING)",
            lambda d: self._chosen(self.text, d),
        )

    def day(self, depth: int) -> str:
        by = ["0", "1", "-40", "100000"]
        return self._made(
            depth,
            _DATES,
            lambda d: f"{self._one_of('date_add', 'date_sub', 'add_months')}({self.day(d)}, {self._one_of(*by)})",
            lambda d: f"last_day({self._one_of(self.day, self.time)(d)})",
            lambda d: f"CAST({self.time(d)} AS DATE)",
            lambda d: self._chosen(self.day, d),
        )

    def time(self, depth: int) -> str:
        types = ["TIMESTAMP", "TIMESTAMP_NTZ"]
        return self._made(
            depth, _TIMES, lambda d: f"CAST({self._one_of(self.day, self.time)(d)} AS {self._one_of(*types)})"
        )

    def _made(self, depth: int, simple: Sequence[str], *makers: Maker) -> str:
        if depth <= 0 or self._chance.random() < 0.1:
            return self._one_of(*simple)
        return self._one_of(*makers)(depth - 1)

    def _one_of(self, *choices: Choice) -> Choice:
        return self._chance.choice(choices)

    def _compared(self, made: Maker, depth: int) -> str:
        one, other = made(depth), made(depth)
        if made in (self.day, self.time) and self._chance.random() < 0.3:
            other = self._one_of(*_WRITTEN_DAYS, self.day(depth), self.time(depth))
        return self._one_of(
            *[f"({one} {sign} {other})" for sign in _SIGNS],
            f"({one} IN ({other}, {made(depth)}))",
            f"({one} NOT IN ({made(0)}, {made(0)}, {made(0)}))",
            f"({one} BETWEEN {other} AND {made(depth)})",
        )

    def _chosen(self, made: Maker, depth: int) -> str:
        one, other, when = made(depth), made(depth), self.condition(depth)
        return self._one_of(
            f"coalesce({one}, {other}, {made(0)})",
            f"nullif({one}, {other})",
            f"if({when}, {one}, {other})",
            f"nvl2({self.of_any_kind(depth)}, {one}, {other})",
            f"(CASE WHEN {when} THEN {one} WHEN {self.condition(depth)} THEN {other} END)",
            f"(CASE WHEN {when} THEN NULL ELSE {one} END)",
        )
