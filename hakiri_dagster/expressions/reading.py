"""An expression as it is written → our tree of it, or why it is refused.

sqlglot reads Spark's SQL; its functions are switched off, so that a call is a name and arguments as they are written.
"""

from __future__ import annotations

from functools import cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from hakiri_dagster.errors import UnsafeExpression
from hakiri_dagster.expressions.dialect import RowDialect
from hakiri_dagster.expressions.refusals import ALLOWED
from hakiri_dagster.expressions.translation import tree_of
from hakiri_dagster.expressions.tree import Node, columns_of, parts

MOST_CHARACTERS = 10_000
MOST_PARTS = 1_000
DEEPEST = 16
"""Both parsers recurse, and from 20 divisions within one another on Spark takes a minute to plan them."""


@cache
def read_expression(text: str) -> Node:
    if len(text) > MOST_CHARACTERS:
        raise _refusal(f"it is longer than {MOST_CHARACTERS} characters")
    hidden = next((c for c in text if not (c.isprintable() or c in "\t\r\n")), None)
    if hidden is not None:
        raise _refusal(f"it holds the invisible character U+{ord(hidden):04X}")
    for sign, why in _SIGNS.items():
        if sign in text:
            raise UnsafeExpression(f"it holds {sign}", hint=why)
    try:
        node = tree_of(_parsed(text))
        _refuse_too_large(node)
    except RecursionError:
        raise _refusal("it is nested too deep") from None
    if not columns_of(node):
        raise UnsafeExpression("it names no column, so it says nothing about a row", hint="compare a column of the row")
    return node


_SIGNS = {
    '"': "write a text in single quotes, 'A', and a column as it is or in backticks, `first name`",
    "\\": "a backslash means something else to each reader; leave it out",
    "--": "leave comments out",
    "/*": "leave comments out",
}
"""Wherever they stand: inside of a text, too."""


def _refusal(what: str) -> UnsafeExpression:
    return UnsafeExpression(what, hint=ALLOWED)


def _parsed(text: str) -> exp.Expr:
    try:
        parsed = RowDialect().parse_into(exp.Condition, text)
    except SqlglotError as error:
        told = getattr(error, "errors", None)
        what = _in_words(str(told[0].get("description") or error) if told else str(error).partition(" '")[0])
        near = f" near `{told[0].get('highlight')}`" if told and told[0].get("highlight") else ""
        raise _refusal(f"it cannot be read: {what.rstrip('.')}{near}") from None
    if len(parsed) > 1:
        raise _refusal("it is more than one expression")
    if not parsed or parsed[0] is None:
        raise _refusal("it is empty")
    return parsed[0]


_WORDS = {
    "Required keyword": "a value is missing",
    "Expecting )": "a parenthesis is not closed",
    "Invalid expression": "something stands there that does not belong",
}
"""For what sqlglot says of its own classes and tokens."""


def _in_words(told: str) -> str:
    return next((words for start, words in _WORDS.items() if told.startswith(start)), told)


def _refuse_too_large(root: Node) -> None:
    """A part may stand in several places of the tree: it is counted in each, as it will be written in each."""
    count, level = 0, [root]
    for _ in range(DEEPEST):
        count += len(level)
        if count > MOST_PARTS:
            raise _refusal(f"it has more than {MOST_PARTS} parts")
        level = [part for node in level for part in parts(node)]
    if level:
        raise _refusal(f"it is nested more than {DEEPEST} deep")
