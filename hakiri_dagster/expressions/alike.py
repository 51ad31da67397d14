"""Which values can stand beside one another. What Spark would convert by itself is written out here, or refused."""

from __future__ import annotations

from collections.abc import Sequence

from hakiri_dagster.errors import UnsafeExpression
from hakiri_dagster.expressions.functions import CLOCK, DAY, NUMBER, Kinds
from hakiri_dagster.expressions.literals import moment_of
from hakiri_dagster.expressions.tree import Kind, TimeKind
from hakiri_dagster.expressions.written import Judged, Misfit, attempted

_NAMES: dict[Kind, str] = {
    "text": "a text", "boolean": "a boolean", "integer": "an integer", "long": "a bigint", "decimal": "a decimal",
    "float": "a floating number", "date": "a date", "timestamp": "a timestamp",
    "timestamp_ntz": "a timestamp without time zone", "bytes": "binary", "other": "of a type that it cannot look into",
    "null": "NULL",
}  # fmt: skip
_WIDTH: tuple[Kind, ...] = ("integer", "long", "decimal", "float")
_ORDERED = NUMBER | DAY | {"text"}
_EQUATED = _ORDERED | {"boolean", "bytes"}


def named(kind: Kind) -> str:
    return _NAMES[kind]


def named_one_of(kinds: Kinds) -> str:
    if kinds == NUMBER:
        return "a number"
    return "a date or a time" if kinds == DAY else " or ".join(named(kind) for kind in sorted(kinds))


def wider(kinds: Sequence[Kind]) -> Kind:
    """Of numbers."""
    return max(kinds, key=_WIDTH.index)


def moment(text: str, kind: TimeKind) -> Judged:
    """A text that is written out, where a time is wanted."""
    try:
        checked = moment_of(text, kind)
    except UnsafeExpression as error:
        raise Misfit(f"{error.what}; {error.hint}") from None
    return literal_moment(checked.text, kind)


def literal_moment(text: str, kind: TimeKind) -> Judged:
    sql = {"date": "DATE '{}'", "timestamp": "TIMESTAMP '{}'", "timestamp_ntz": "TIMESTAMP_NTZ '{}'"}[kind]
    return Judged(kind, sql.format(text))


def comparable(left: Judged, right: Judged, sign: str, *, ordered: bool) -> tuple[Judged, Judged]:
    left, right = _with_moment(left, right.kind), _with_moment(right, left.kind)
    for value in (left, right):
        if value.kind == "null":
            raise Misfit(f"{sign} NULL is true of no row; write IS NULL or IS NOT NULL")
        if value.kind not in (_ORDERED if ordered else _EQUATED):
            raise Misfit(f"one side of {sign} is {named(value.kind)}, which cannot be compared so")
    if left.kind == right.kind or {left.kind, right.kind} <= NUMBER:
        return left, right
    if {left.kind, right.kind} <= DAY:
        return _with_clock(left, right.kind), _with_clock(right, left.kind)
    raise Misfit(
        f"one side of {sign} is {named(left.kind)}, the other {named(right.kind)}; write CAST(… AS …) on one of them"
    )


def _with_moment(value: Judged, other: Kind) -> Judged:
    match other:
        case "date" | "timestamp" | "timestamp_ntz" if value.text is not None:
            return moment(value.text, other)
        case _:
            return value


def _with_clock(value: Judged, other: Kind) -> Judged:
    """Midnight of a day, which not every day of Spark's has."""
    if value.kind != "date" or other not in CLOCK:
        return value
    return attempted(other, f"TRY_CAST({value.sql} AS {other.upper()})", [value])


def as_one_kind(values: Sequence[Judged], where: str) -> tuple[tuple[Judged, ...], Kind]:
    """Of values one of which is chosen."""
    kinds: set[Kind] = {value.kind for value in values if value.kind != "null"}
    time = next((kind for kind in kinds if kind in DAY), None)
    if time is not None:
        values = [_with_moment(value, time) for value in values]
        kinds = {value.kind for value in values if value.kind != "null"}
    if not kinds:
        raise Misfit(f"{where} is always NULL")
    if kinds <= NUMBER:
        return tuple(values), wider(sorted(kinds))
    if len(kinds) > 1:
        raise Misfit(f"{where} is {' or '.join(named(kind) for kind in sorted(kinds))}; write CAST(… AS …)")
    return tuple(values), kinds.pop()
