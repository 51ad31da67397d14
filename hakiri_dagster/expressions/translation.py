"""sqlglot's tree of an expression → ours. What has no place in ours, and what would not be looked at, is refused.

Where two readers of the same SQL could understand it differently, it is refused, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp
from sqlglot.expressions import DType

from hakiri_dagster.errors import UnsafeExpression
from hakiri_dagster.expressions.functions import arity
from hakiri_dagster.expressions.literals import call_of, like_of, moment_of, number_of
from hakiri_dagster.expressions.refusals import refusal_of_call, refusal_of_node, refuse_word
from hakiri_dagster.expressions.tree import Case, Cast, Column, Kind, Node, Null, Operation, Operator, Text, Truth


def tree_of(found: exp.Expr) -> Node:
    reader = _READERS.get(type(found))
    if reader is None:
        raise refusal_of_node(found)
    return reader(found)


def _only(found: exp.Expr, *names: str) -> None:
    """A part that is not looked at would not be judged."""
    more = [name for name, value in found.args.items() if name not in names and value not in (None, False, [])]
    if more:
        raise refusal_of_node(found)


def _column(found: exp.Expr) -> Node:
    name = found.this
    if not isinstance(name, exp.Identifier):
        raise refusal_of_node(found)
    if found.args.get("table") is not None:
        dotted = ".".join(part.name for part in found.parts)  # type: ignore[attr-defined]  # of columns
        raise UnsafeExpression(
            f"{dotted} is a field of a struct", hint=f"only columns can be named; one with a dot: `{dotted}`"
        )
    _only(found, "this")
    if not name.args.get("quoted"):
        refuse_word(name.name)
    return Column(name.name)


def _literal(found: exp.Expr) -> Node:
    _only(found, "this", "is_string")
    return Text(str(found.this)) if found.is_string else number_of(str(found.this))


def _negative(found: exp.Expr) -> Node:
    _only(found, "this")
    inner = found.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return number_of(f"-{inner.this}")
    return Operation("negative", (tree_of(inner),))


def _bracketed(found: exp.Expr) -> Node:
    _only(found, "this")
    return tree_of(found.this)


_PREDICATES = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In,
               exp.Between, exp.Like, exp.ILike, exp.Escape, exp.Not, exp.And, exp.Or)  # fmt: skip


def _value(found: exp.Expr) -> Node:
    """Which of two comparisons in a row comes first is not the same to all readers."""
    if isinstance(found, _PREDICATES):
        raise UnsafeExpression(
            f"it is not clear what belongs to `{found.sql('spark')[:60]}`", hint="put it in brackets: (…)"
        )
    return tree_of(found)


def _binary(operator: Operator) -> Callable[[exp.Expr], Node]:
    def read(found: exp.Expr) -> Node:
        _only(found, "this", "expression", "typed", "safe")
        return Operation(operator, (_value(found.this), _value(found.expression)))

    return read


def _chain(operator: Operator) -> Callable[[exp.Expr], Node]:
    def read(found: exp.Expr) -> Node:
        _only(found, "this", "expression")
        return Operation(operator, tuple(tree_of(one) for one in _links(found)))

    return read


def _links(found: exp.Expr) -> Sequence[exp.Expr]:
    """`a AND b AND c`, however many, without a step down for each."""
    links: list[exp.Expr] = []
    left = found
    while type(left) is type(found):
        _only(left, "this", "expression")
        links.append(left.expression)
        left = left.this
    return [left, *reversed(links)]


def _not(found: exp.Expr) -> Node:
    _only(found, "this")
    return Operation("not", (tree_of(found.this),))


def _distinct(found: exp.Expr) -> Node:
    same = _binary("<=>")(found)
    return Operation("not", (same,))


def _is(found: exp.Expr) -> Node:
    _only(found, "this", "expression")
    value, what = _value(found.this), found.expression
    if isinstance(what, exp.Null):
        return Operation("is_null", (value,))
    if isinstance(what, exp.Boolean):
        return Operation("is_true" if what.this else "is_false", (value,))
    raise refusal_of_node(found)


def _in(found: exp.Expr) -> Node:
    _only(found, "this", "expressions")
    if not found.expressions:
        raise refusal_of_node(found)
    return Operation("in", (_value(found.this), *(_value(one) for one in found.expressions)))


def _between(found: exp.Expr) -> Node:
    _only(found, "this", "low", "high")
    value = _value(found.this)
    low, high = _value(found.args["low"]), _value(found.args["high"])
    return Operation("and", (Operation(">=", (value, low)), Operation("<=", (value, high))))


def _like(found: exp.Expr) -> Node:
    return _like_with(found, escape=None)


def _escape(found: exp.Expr) -> Node:
    _only(found, "this", "expression")
    escape = found.expression
    if not (
        isinstance(found.this, (exp.Like, exp.ILike)) and isinstance(escape, exp.Literal) and len(escape.this) == 1
    ):
        raise refusal_of_node(found)
    return _like_with(found.this, escape=str(escape.this))


def _like_with(found: exp.Expr, escape: str | None) -> Node:
    _only(found, "this", "expression", "negate")
    pattern = found.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise UnsafeExpression("the pattern of a LIKE is not a text", hint="write it out, as in status LIKE 'A%'")
    like = like_of(_value(found.this), str(pattern.this), escape, any_case=isinstance(found, exp.ILike))
    return Operation("not", (like,)) if found.args.get("negate") else like


_TYPES: Mapping[DType, tuple[Kind, str]] = {
    DType.TEXT: ("text", "STRING"),
    DType.BOOLEAN: ("boolean", "BOOLEAN"),
    DType.TINYINT: ("integer", "TINYINT"),
    DType.SMALLINT: ("integer", "SMALLINT"),
    DType.INT: ("integer", "INT"),
    DType.BIGINT: ("long", "BIGINT"),
    DType.FLOAT: ("float", "FLOAT"),
    DType.DOUBLE: ("float", "DOUBLE"),
    DType.DATE: ("date", "DATE"),
    DType.TIMESTAMP: ("timestamp", "TIMESTAMP"),
    DType.TIMESTAMPTZ: ("timestamp", "TIMESTAMP"),
    DType.TIMESTAMPLTZ: ("timestamp", "TIMESTAMP"),
    DType.TIMESTAMPNTZ: ("timestamp_ntz", "TIMESTAMP_NTZ"),
}


def _cast(found: exp.Expr) -> Node:
    _only(found, "this", "to", "safe")
    kind, type_ = _type(found.args["to"])
    inner, lenient = found.this, isinstance(found, exp.TryCast)
    written = isinstance(inner, exp.Literal) and inner.is_string
    if written and not lenient and kind in ("date", "timestamp", "timestamp_ntz"):
        return moment_of(str(inner.this), kind)
    return Cast(tree_of(inner), kind, type_, lenient)


def _type(found: exp.Expr) -> tuple[Kind, str]:
    if found.this is DType.DECIMAL:
        sizes = [str(size.this) for size in found.expressions] or ["10", "0"]
        if all(re.fullmatch(r"\d{1,2}", size) for size in sizes) and len(sizes) <= 2:
            precision, scale = int(sizes[0]), int(sizes[1]) if len(sizes) == 2 else 0
            if 1 <= precision <= 38 and scale <= precision:
                return "decimal", f"DECIMAL({precision}, {scale})"
    known = _TYPES.get(found.this)
    if known is None or found.expressions or found.args.get("nested"):
        raise UnsafeExpression(
            f"{found.sql('spark')} is not among the types of a CAST",
            hint="cast to STRING, BOOLEAN, INT, BIGINT, DECIMAL(15, 2), DOUBLE, DATE, TIMESTAMP or TIMESTAMP_NTZ",
        )
    return known


def _case(found: exp.Expr) -> Node:
    _only(found, "this", "ifs", "default")
    of = None if found.this is None else _value(found.this)
    branches = []
    for branch in found.args["ifs"]:
        _only(branch, "this", "true")
        when = tree_of(branch.this)
        branches.append((when if of is None else Operation("=", (of, when)), tree_of(branch.args["true"])))
    default = found.args.get("default")
    return Case(tuple(branches), Null() if default is None else tree_of(default))


def _call(found: exp.Expr) -> Node:
    _only(found, "this", "expressions")
    name = found.this if isinstance(found.this, str) else ""
    known = arity(name.lower())
    if known is None:
        raise refusal_of_call(name)
    return call_of(name.lower(), tuple(tree_of(one) for one in found.expressions), *known)


_READERS: Mapping[type[exp.Expr], Callable[[exp.Expr], Node]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda found: Truth(bool(found.this)),
    exp.Null: lambda _: Null(),
    exp.Paren: _bracketed,
    exp.And: _chain("and"),
    exp.Or: _chain("or"),
    exp.Not: _not,
    exp.EQ: _binary("="),
    exp.NEQ: _binary("<>"),
    exp.LT: _binary("<"),
    exp.LTE: _binary("<="),
    exp.GT: _binary(">"),
    exp.GTE: _binary(">="),
    exp.NullSafeEQ: _binary("<=>"),
    exp.NullSafeNEQ: _distinct,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.Add: _binary("+"),
    exp.Sub: _binary("-"),
    exp.Mul: _binary("*"),
    exp.Div: _binary("/"),
    exp.Mod: _binary("%"),
    exp.DPipe: _binary("||"),
    exp.Neg: _negative,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.Anonymous: _call,
}
