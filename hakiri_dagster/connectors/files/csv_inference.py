"""The types of CSV columns that the manifest does not declare, inferred from every value.

CSV has no types, so a column becomes a number only if each of its values can be written back as it was: `1E5`,
`+49301234`, `007`, `.5` and `-0` are texts. Fractions follow one form throughout the column: a fixed number of
decimals (`1.50`, `2.25`), or no superfluous zeros (`1.5`, `2.25`); `1.1` beside `1.10` makes the column text. They are
loaded as `numeric`, which keeps the decimals that each value has.
A later value that inference would not have taken for the column's type is malformed, never converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.files.text_inference import DAY, are_days, split_matching
from hakiri_dagster.connectors.files.text_values import (
    NOT_FINITE,
    NUMBER,
    ZONE,
    Parsed,
    is_in_range,
    parse,
    sub_microseconds,
)
from hakiri_dagster.connectors.files.types import FLOATS, MAX_PRECISION, decimal, decimal_parts, is_integer, quoted
from hakiri_dagster.connectors.json.type_inference import NUMERIC
from hakiri_dagster.planning.columns import Column as SourceColumn

_WHOLE: Final = r"-?(?:0|[1-9]\d*)"
_FRACTION: Final = rf"{_WHOLE}\.\d+"
_NEGATIVE_ZERO: Final = r"-0(?:\.0+)?"
_EXPONENTIAL: Final = (
    # As PostgreSQL, Python and C write a double: `1e-05`, `1.5e+20`.
    r"-?[1-9](?:\.\d*[1-9])?e(?:-(?:0[5-9]|[1-9]\d{1,2})|\+(?:1[5-9]|[2-9]\d|[1-9]\d{2}))"
    # As Java and Spark do: `1.0E-5`, `1.5E20`.
    r"|-?[1-9]\.(?:0|\d*[1-9])E(?:-(?:[4-9]|[1-9]\d{1,2})|[7-9]|[1-9]\d{1,2})"
)
_BOOLEAN: Final = r"(?i:true|false)"
_MINUTE: Final = r"[ T](?:[01]?\d|2[0-3]):[0-5]?\d"
_SECOND: Final = r":[0-5]?\d(?:\.\d{1,9})?"
_ZONELESS: Final = rf"{DAY}{_MINUTE}(?:{_SECOND})?"
_ZONED: Final = rf"{DAY}{_MINUTE}{_SECOND}{ZONE}"
"""Spark reads no zone behind minutes."""

_EXACT_IN_A_DOUBLE: Final = 15
"""Every decimal number of so many significant digits survives a double."""
_FAR: Final = 300
"""About so many digits from the point, doubles lose digits, and end."""
_LONG_DIGITS: Final = 18
_LONG_MAX: Final = 2**63
_MONEY_SCALE: Final = 12
"""More decimals than these come from programs that print doubles."""

(
    _IS_INTEGER,
    _IS_FRACTION,
    _IS_EXPONENTIAL,
    _IS_NOT_FINITE,
    _IS_BOOLEAN,
    _IS_DATE,
    _IS_ZONELESS,
    _IS_ZONED,
    _IS_TEXT,
    _BEYOND_64_BITS,
    _BEYOND_A_DOUBLE,
    _IS_PADDED,
    _IS_WHOLE_WITH_POINT,
) = (1 << bit for bit in range(13))
_KINDS: Final = _BEYOND_64_BITS - 1
_NOT_FINITE: Final = "NaN|-?Infinity"
"""As PostgreSQL writes them."""
_TOO_MANY_DIGITS: Final = "no type of numbers holds all of its digits"
_TIMES: Final = (
    (rf"^{DAY}$", _IS_DATE),
    (rf"^{_ZONELESS}$", _IS_ZONELESS),
    (rf"^{_ZONED}$", _IS_ZONED),
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the values of a column have shown so far.

    `digits` counts those before the point, `scales` spans the numbers of decimals; `odd` is a value that is a number,
    but would read otherwise when it is written back.
    """

    flags: int = 0
    digits: int = 0
    scales: tuple[int, int] | None = None
    odd: str | None = None

    def plus(self, other: Evidence) -> Evidence:
        spans = [span for span in (self.scales, other.scales) if span is not None]
        return Evidence(
            flags=self.flags | other.flags,
            digits=max(self.digits, other.digits),
            scales=(min(low for low, _ in spans), max(high for _, high in spans)) if spans else None,
            odd=self.odd if self.odd is not None else other.odd,
        )

    @property
    def is_text(self) -> bool:
        return bool(self.flags & _IS_TEXT)


@dataclass(frozen=True, slots=True)
class InferredType:
    """`spark_type` is None for a column without a value. `native_type`: of what travels as text. `why_text` is set
    where every value is a number, and the column is text all the same."""

    spark_type: str | None
    why_text: str | None = None
    native_type: str | None = None

    def column(self, name: str) -> SourceColumn:
        return SourceColumn(name, self.spark_type or "string", native_type=self.native_type)


def infer_csv_types(texts: DataFrame, names: Sequence[str]) -> Mapping[str, InferredType]:
    """Run one Spark job over the columns, and return a type for each."""
    columns = texts.select(*[F.col(quoted(name)).alias(f"c{i}") for i, name in enumerate(names)])
    found = dict.fromkeys(range(len(names)), Evidence())
    for row in columns.mapInArrow(_gather, _GATHERED).collect():
        scales = None if row["low"] is None else (row["low"], row["high"])
        found[row["c"]] = found[row["c"]].plus(Evidence(row["flags"], row["digits"], scales, row["odd"]))
    return {name: type_of(found[i]) for i, name in enumerate(names)}


_GATHERED: Final = "c int, flags int, digits int, low int, high int, odd string"
_GATHERED_ARROW: Final = pa.schema(
    [
        ("c", pa.int32()),
        ("flags", pa.int32()),
        ("digits", pa.int32()),
        ("low", pa.int32()),
        ("high", pa.int32()),
        ("odd", pa.string()),
    ]
)


def _gather(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run in a Spark task. A column that turned out to be text is not examined any further."""
    found: dict[int, Evidence] = {}
    for batch in batches:
        for i, values in enumerate(batch.columns):
            before = found.get(i, Evidence())
            if not before.is_text:
                found[i] = before.plus(evidence_of(values))
    rows = [
        {"c": i, "flags": one.flags, "digits": one.digits, "low": low, "high": high, "odd": one.odd}
        for i, one in found.items()
        for low, high in [one.scales or (None, None)]
    ]
    yield pa.RecordBatch.from_pylist(rows, schema=_GATHERED_ARROW)


def evidence_of(values: pa.Array) -> Evidence:
    """Return what some texts say about their column. Blanks around a value do not count, nor do empty texts."""
    texts = pc.utf8_trim(values.drop_null(), " ")
    texts = texts.filter(pc.not_equal(texts, ""))
    texts, zeros = split_matching(texts, rf"^{_NEGATIVE_ZERO}$")
    texts, whole = split_matching(texts, rf"^{_WHOLE}$")
    texts, fractions = split_matching(texts, rf"^{_FRACTION}$")
    texts, exponentials = split_matching(texts, rf"^(?:{_EXPONENTIAL})$")
    found = _of_whole(whole).plus(_of_fractions(fractions)).plus(_of_exponentials(exponentials))
    texts, not_finite = split_matching(texts, rf"^(?:{_NOT_FINITE})$")
    found = found.plus(Evidence(_IS_NOT_FINITE if len(not_finite) else 0))
    texts, booleans = split_matching(texts, rf"^{_BOOLEAN}$")
    flags = _IS_BOOLEAN if len(booleans) else 0
    for pattern, flag in _TIMES:
        texts, times = split_matching(texts, pattern)
        if len(times):
            flags |= flag if are_days(times) else _IS_TEXT
    # A superfluous zero in front is the mark of a code, and no reason to wonder why the column is text.
    texts, odd = split_matching(texts, rf"^(?:{NUMBER}|{NOT_FINITE})$")
    odd, codes = split_matching(odd, r"^[+-]?0\d")
    flags |= _IS_TEXT if len(texts) or len(codes) else 0
    example = next((one[0].as_py() for one in (odd, zeros) if len(one)), None)
    return found.plus(Evidence(flags, odd=example))


def _of_whole(texts: pa.Array) -> Evidence:
    if not len(texts):
        return Evidence()
    lengths = pc.utf8_length(pc.utf8_ltrim(texts, "-"))
    long = texts.filter(pc.greater(lengths, _LONG_DIGITS)).to_pylist()
    flags = _IS_INTEGER | _beyond_a_double(texts)
    if not all(-_LONG_MAX <= int(text) < _LONG_MAX for text in long):
        flags |= _BEYOND_64_BITS
    return Evidence(flags, digits=pc.max(lengths).as_py())


def _of_fractions(texts: pa.Array) -> Evidence:
    if not len(texts):
        return Evidence()
    digits = pc.find_substring(pc.utf8_ltrim(texts, "-"), ".")
    scales = pc.min_max(pc.subtract(pc.utf8_length(texts), pc.add(pc.find_substring(texts, "."), 1)))
    flags = _IS_FRACTION | _beyond_a_double(texts)
    zero_ended = texts.filter(pc.ends_with(texts, "0"))
    if pc.any(pc.match_substring_regex(zero_ended, r"\d0$")).as_py():
        flags |= _IS_PADDED  # `1.0` is not: the shortest form of many programs
    if pc.any(pc.match_substring_regex(zero_ended, r"\.0+$")).as_py():
        flags |= _IS_WHOLE_WITH_POINT
    return Evidence(flags, pc.max(digits).as_py(), (scales["min"].as_py(), scales["max"].as_py()))


def _of_exponentials(texts: pa.Array) -> Evidence:
    return Evidence(_IS_EXPONENTIAL | _beyond_a_double(texts)) if len(texts) else Evidence()


def _beyond_a_double(texts: pa.Array) -> int:
    """Return the flag if a text has other digits than those that tell its double from all others."""
    digits = _significant(texts)
    long = pc.greater(pc.utf8_length(digits), _EXACT_IN_A_DOUBLE)
    far = pc.or_(pc.match_substring_regex(texts, "[eE].*[0-9]{3}$"), pc.greater(pc.utf8_length(texts), _FAR))
    doubtful = pc.or_(long, far)
    if not pc.any(doubtful).as_py():
        return 0
    read = texts.filter(doubtful).cast(pa.float64())
    same = pc.equal(_significant(read.cast(pa.string())), digits.filter(doubtful))
    return 0 if pc.all(pc.and_(same, pc.is_finite(read))).as_py() else _BEYOND_A_DOUBLE


def _significant(texts: pa.Array) -> pa.Array:
    digits = pc.replace_substring_regex(texts, r"[eE].*$|[-.]", "")
    return pc.utf8_rtrim(pc.utf8_ltrim(digits, "0"), "0")


def type_of(found: Evidence) -> InferredType:
    if found.is_text:
        return InferredType("string")
    kinds = found.flags & _KINDS
    if not kinds & ~(_IS_INTEGER | _IS_FRACTION | _IS_EXPONENTIAL | _IS_NOT_FINITE):
        return _number(found, kinds)
    if found.odd is not None:
        return InferredType("string")
    times = {_IS_DATE: "date", _IS_ZONELESS: "timestamp_ntz", _IS_DATE | _IS_ZONELESS: "timestamp_ntz"}
    return InferredType({_IS_BOOLEAN: "boolean", _IS_ZONED: "timestamp", **times}.get(kinds, "string"))


def _number(found: Evidence, kinds: int) -> InferredType:
    if found.odd is not None:
        return InferredType("string", f"a number does not read `{found.odd}` when it is written back")
    if not kinds:
        return InferredType(None)
    low, high = found.scales or (0, 0)
    if kinds & _IS_INTEGER and found.flags & _IS_WHOLE_WITH_POINT:
        return InferredType("string", f"it has whole numbers with and without decimals (`1` and `1.{'0' * low}`)")
    is_double = bool(kinds & ~(_IS_INTEGER | _IS_FRACTION))
    if found.flags & _IS_PADDED and (low != high or is_double):
        return InferredType("string", "some of its numbers end in superfluous zeros and others do not")
    fits_a_double = not found.flags & (_BEYOND_A_DOUBLE | _IS_PADDED)
    if is_double:
        return InferredType("double") if fits_a_double else InferredType("string", _TOO_MANY_DIGITS)
    if kinds == _IS_INTEGER and not found.flags & _BEYOND_64_BITS:
        return InferredType("bigint")
    if fits_a_double and high > _MONEY_SCALE:
        return InferredType("double")
    if found.digits + high > MAX_PRECISION:
        return InferredType("string", _TOO_MANY_DIGITS)
    if kinds == _IS_INTEGER:
        return InferredType(decimal(MAX_PRECISION, 0))
    return InferredType("string", native_type=NUMERIC)


def parse_inferred(text: Column, column: SourceColumn) -> Parsed:
    """Return what `text` means in a column whose type was inferred. A text that inference would not have taken for the
    type fails, so that nothing in a later file is converted in silence."""
    spark_type, trimmed = column.spark_type, F.trim(text)
    if spark_type == "string":
        if column.native_type != NUMERIC:
            return Parsed(text, None)
        spelled = trimmed.rlike(f"^(?!{_NEGATIVE_ZERO}$){_WHOLE}(?:\\.\\d+)?$")
        return Parsed(F.when(spelled, trimmed), (trimmed != "") & ~spelled)
    value = trimmed.try_cast(spark_type)
    allowed = _is_canonical(trimmed, value, spark_type)
    if allowed is None:
        return parse(text, spark_type)
    failed = (trimmed != "") & ~F.coalesce(allowed, F.lit(False))
    return Parsed(F.when(allowed, value), failed, sub_microseconds(trimmed, spark_type))


def _is_canonical(text: Column, value: Column, spark_type: str) -> Column | None:
    """None for a type that is never inferred."""
    match spark_type:
        case "boolean":
            return text.rlike(f"^{_BOOLEAN}$")
        case "date":
            return text.rlike(f"^{DAY}$") & value.isNotNull()
        case "timestamp_ntz":
            return value.isNotNull() & text.rlike(f"^(?:{DAY}|{_ZONELESS})$")
        case "timestamp":
            return value.isNotNull() & text.rlike(f"^{_ZONED}$")
        case _ if is_integer(spark_type):
            return value.cast("string") == text
        case _ if spark_type in FLOATS:
            spelled = text.rlike(f"^(?!{_NEGATIVE_ZERO}$)(?:{_WHOLE}|{_FRACTION}|{_EXPONENTIAL})$")
            kept = spelled & is_in_range(text, value) & _keeps_digits(text, value)
            return kept | text.rlike(f"^(?:{_NOT_FINITE})$")
        case _:
            parts = decimal_parts(spark_type)
            if parts is None:
                return None
            places = rf"(?:\.\d{{1,{parts[1]}}})?" if parts[1] else ""
            return value.isNotNull() & text.rlike(f"^(?!{_NEGATIVE_ZERO}$){_WHOLE}{places}$")


def _keeps_digits(text: Column, value: Column) -> Column:
    """Java, too, prints the digits that tell a double from all others (from Java 19 on always the fewest)."""

    def significant(written: Column) -> Column:
        return F.regexp_replace(F.regexp_replace(written, r"[eE].*$|[-.]", ""), r"^0+|0+$", "")

    return F.when(
        F.length(text) > _EXACT_IN_A_DOUBLE, significant(text) == significant(value.cast("string"))
    ).otherwise(value.isNotNull())
