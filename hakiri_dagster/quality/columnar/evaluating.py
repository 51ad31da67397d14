"""An expression over the columns of a batch: what `expressions.judging` writes in SQL for Spark, computed by Arrow.

The tree was judged before: what does not fit the columns does not come here. Whether Arrow can compute it is told by
evaluating it over no rows, so that the code which decides is the code which computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from hakiri_dagster.expressions.literals import kind_of_number
from hakiri_dagster.expressions.tree import (
    Call,
    Case,
    Cast,
    Column,
    Like,
    Moment,
    Node,
    Null,
    Number,
    Operation,
    Text,
    Truth,
)
from hakiri_dagster.planning.arrow_types import arrow_type
from hakiri_dagster.quality.columnar.arithmetic import computed, negative
from hakiri_dagster.quality.columnar.calling import called
from hakiri_dagster.quality.columnar.casting import cast
from hakiri_dagster.quality.columnar.choosing import chosen, unknown
from hakiri_dagster.quality.columnar.comparing import among, compared
from hakiri_dagster.quality.columnar.logic import combined, is_true, negated, truths
from hakiri_dagster.quality.columnar.moments import moment
from hakiri_dagster.quality.columnar.texts import like
from hakiri_dagster.quality.columnar.types import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    LONG,
    TEXT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    decimal_of,
    number,
    settled,
)
from hakiri_dagster.quality.columnar.values import NotInArrow, Value, failed_of

Kinds = Mapping[str, pa.DataType]


def is_in_arrow(node: Node, kinds: Kinds) -> bool:
    """Depends on the expression and the kinds of its columns, so that one rule has one judge."""
    try:
        passing(node, {name: pa.array([], settled(kind)) for name, kind in kinds.items()})
    except NotInArrow:
        return False
    return True


def passing(node: Node, columns: Mapping[str, pa.Array]) -> pa.BooleanArray:
    """Which rows pass. NULL passes; what could not be computed does not. The columns, of which there is at least one,
    are of settled types."""
    found = evaluated(node, columns)
    passes = pc.fill_null(truths(found), True)
    if found.failed is not None:
        passes = pc.and_(passes, pc.invert(found.failed))
    return passes


def evaluated(node: Node, columns: Mapping[str, pa.Array]) -> Value:
    match node:
        case Column(name):
            return Value(columns[name])
        case Text(text):
            return Value(pa.scalar(text, TEXT), written=node)
        case Number(digits):
            return Value(number(digits, _type_of(digits)), written=node)
        case Truth(value):
            return Value(pa.scalar(value, BOOLEAN))
        case Moment(text, kind):
            return Value(moment(text, {"date": DATE, "timestamp": TIMESTAMP, "timestamp_ntz": TIMESTAMP_NTZ}[kind]))
        case Null():
            return Value(pa.scalar(None, pa.null()))
        case Operation():
            return _operation(node, [evaluated(one, columns) for one in node.operands])
        case Call(function, arguments):
            return called(function, [evaluated(one, columns) for one in arguments])
        case Like():
            return _like(node, evaluated(node.value, columns))
        case Cast(of, _, type_, lenient):
            return cast(evaluated(of, columns), settled(arrow_type(type_)), lenient=lenient)
        case Case(branches, otherwise):
            taken = [(evaluated(when, columns), evaluated(then, columns)) for when, then in branches]
            return chosen(taken, evaluated(otherwise, columns))
        case _:
            assert_never(node)


def _type_of(digits: str) -> pa.DataType:
    match kind_of_number(digits):
        case "integer":
            return INTEGER
        case "long":
            return LONG
        case "float":
            return FLOAT
        case _:
            return decimal_of(digits)


def _operation(node: Operation, values: Sequence[Value]) -> Value:
    match node.operator:
        case "and" | "or" as word:
            return combined(word, values)
        case "not":
            return negated(values[0])
        case "=" | "<>" | "<" | "<=" | ">" | ">=" | "<=>" as sign:
            return compared(sign, values[0], values[1])
        case "in":
            return among(values[0], values[1:])
        case "is_null":
            return unknown(values[0])
        case "is_true":
            return is_true(values[0])
        case "is_false":
            return is_true(negated(values[0]))
        case "+" | "-" | "*" | "/" | "%" as sign:
            return computed(sign, values[0], values[1])
        case "negative":
            return negative(values[0])
        case "||":
            return called("concat", values)
        case _:
            assert_never(node.operator)


def _like(node: Like, value: Value) -> Value:
    if node.any_case:
        raise NotInArrow("letters of any case, of which each Unicode has its own")
    return Value(like(value.cells, node.pattern), failed_of([value]))
