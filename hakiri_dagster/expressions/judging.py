"""What an expression comes to over columns of known kinds, as SQL of our own writing, which no row can make fail.

Spark is given nothing that it would have to convert by itself, for such a conversion fails the whole query at one bad
value. What can fail is written as its `try_…`, which gives NULL, and beside each value goes the condition under which
it could not be computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from hakiri_dagster.expressions.alike import comparable, literal_moment, named
from hakiri_dagster.expressions.calls import arithmetic, called, chosen, numbers
from hakiri_dagster.expressions.functions import DAY, NUMBER
from hakiri_dagster.expressions.literals import kind_of_number
from hakiri_dagster.expressions.tree import (
    Call,
    Case,
    Cast,
    Column,
    Kind,
    Like,
    Moment,
    Node,
    Null,
    Number,
    Operation,
    Text,
    Truth,
)
from hakiri_dagster.expressions.written import Judged, Misfit, attempted, fails_of, text_literal

Columns = Mapping[str, Judged]
"""Each as Spark is to name it."""


def holds(node: Node, columns: Columns) -> str:
    """A condition that is never NULL: whether a row passes. NULL passes; what cannot be computed does not."""
    found = judged(node, columns)
    if found.kind != "boolean":
        raise Misfit(f"it comes to {named(found.kind)}, and not to true or false")
    passes = f"coalesce({found.sql}, TRUE)"
    return passes if found.fails is None else f"({passes} AND NOT {found.fails})"


def judged(node: Node, columns: Columns) -> Judged:
    match node:
        case Column(name):
            return columns[name]
        case Text(value):
            return Judged("text", text_literal(value), text=value)
        case Number(digits):
            return Judged(kind_of_number(digits), digits)
        case Truth(value):
            return Judged("boolean", "TRUE" if value else "FALSE")
        case Moment(text, kind):
            return literal_moment(text, kind)
        case Null():
            return Judged("null", "NULL")
        case Operation():
            return _operation(node, [judged(one, columns) for one in node.operands])
        case Call(function, arguments):
            return called(function, [judged(one, columns) for one in arguments])
        case Like():
            return _like(node, judged(node.value, columns))
        case Cast():
            return _cast(node, judged(node.value, columns))
        case Case(branches, otherwise):
            taken = [(judged(when, columns), judged(then, columns)) for when, then in branches]
            return chosen(taken, judged(otherwise, columns))
        case _:
            assert_never(node)


def _operation(node: Operation, values: Sequence[Judged]) -> Judged:
    match node.operator:
        case "and" | "or" as word:
            return _logic(word, values)
        case "not":
            _refuse_but_booleans("NOT", values)
            return Judged("boolean", f"(NOT {values[0].sql})", values[0].fails)
        case "=" | "<>" | "<=>" as sign:
            return _compared(sign, values, ordered=False)
        case "<" | "<=" | ">" | ">=" as sign:
            return _compared(sign, values, ordered=True)
        case "in":
            return _among(values)
        case "is_null":
            return Judged("boolean", f"({values[0].sql} IS NULL)", values[0].fails)
        case "is_true" | "is_false":
            _refuse_but_booleans("IS TRUE and IS FALSE", values)
            wanted = "TRUE" if node.operator == "is_true" else "FALSE"
            return Judged("boolean", f"({values[0].sql} <=> {wanted})", values[0].fails)
        case "+" | "-" | "*" | "/" | "%" as sign:
            return _arithmetic(sign, values[0], values[1])
        case "negative":
            return _negative(values[0])
        case "||":
            return called("concat", values)
        case _:
            assert_never(node.operator)


def _refuse_but_booleans(where: str, values: Sequence[Judged]) -> None:
    for value in values:
        if value.kind not in ("boolean", "null"):
            raise Misfit(f"a part of {where} is {named(value.kind)}, and not true or false")


def _logic(word: str, values: Sequence[Judged]) -> Judged:
    _refuse_but_booleans(word.upper(), values)
    return _undecided(f"({f' {word.upper()} '.join(value.sql for value in values)})", values)


def _undecided(sql: str, values: Sequence[Judged]) -> Judged:
    """What cannot be computed matters only where the rest does not decide: then the whole is NULL."""
    fails = fails_of(values)
    return Judged("boolean", sql, None if fails is None else f"({sql} IS NULL AND {fails})")


def _compared(sign: str, values: Sequence[Judged], *, ordered: bool) -> Judged:
    left, right = comparable(values[0], values[1], sign, ordered=ordered)
    return Judged("boolean", f"({left.sql} {sign} {right.sql})", fails_of((left, right)))


def _among(values: Sequence[Judged]) -> Judged:
    wanted, *options = values
    pairs = [comparable(wanted, option, "IN", ordered=False) for option in options]
    if any(one.kind != wanted.kind for one, _ in pairs):  # a day among moments
        return _logic("or", [_compared("=", (wanted, option), ordered=False) for option in options])
    listed = [option for _, option in pairs]
    sql = f"({wanted.sql} IN ({', '.join(option.sql for option in listed)}))"
    return _undecided(sql, (wanted, *listed))


def _arithmetic(sign: str, left: Judged, right: Judged) -> Judged:
    if left.kind in DAY or right.kind in DAY:
        raise Misfit(f"{sign} is for numbers; of dates there are date_add, date_sub, add_months and datediff")
    return arithmetic(sign, left, right)


def _negative(value: Judged) -> Judged:
    numbers("-", (value,))
    if value.kind in ("integer", "long"):
        return attempted(value.kind, f"try_subtract(0, {value.sql})", (value,))
    return Judged(value.kind, f"(- {value.sql})", value.fails)


def _like(node: Like, value: Judged) -> Judged:
    if value.kind != "text":
        raise Misfit(f"LIKE is for text, and this is {named(value.kind)}")
    word = "ILIKE" if node.any_case else "LIKE"
    return Judged("boolean", f"({value.sql} {word} {text_literal(node.pattern)})", value.fails)


def _cast(node: Cast, value: Judged) -> Judged:
    if node.to not in _castable(value.kind):
        raise Misfit(f"{named(value.kind)} cannot be cast to {node.type}")
    # a truth that a decimal has no room for fails even in Spark's TRY_CAST; a number does not
    given = f"CAST({value.sql} AS INT)" if (value.kind, node.to) == ("boolean", "decimal") else value.sql
    sql = f"TRY_CAST({given} AS {node.type})"
    return Judged(node.to, sql, value.fails) if node.lenient else attempted(node.to, sql, (value,))


_SCALARS: frozenset[Kind] = NUMBER | DAY | {"text", "boolean"}


def _castable(kind: Kind) -> frozenset[Kind]:
    match kind:
        case "text" | "null":
            return _SCALARS
        case "integer" | "long" | "decimal" | "float" | "boolean":
            return NUMBER | {"text", "boolean"}
        case "date" | "timestamp" | "timestamp_ntz":
            return DAY | {"text"}
        case "bytes" | "other":
            return frozenset()
        case _:
            assert_never(kind)
