"""Expressions over a row, as a tree of our own: what is not here cannot be said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

Kind = Literal[
    "text", "boolean", "integer", "long", "decimal", "float", "date", "timestamp", "timestamp_ntz", "bytes", "other",
    "null",
]  # fmt: skip
"""Of values. `integer` has up to 32 bits, `long` 64; `other` are lists, structs and the like; `null` is NULL itself."""

TimeKind = Literal["date", "timestamp", "timestamp_ntz"]

Operator = Literal[
    "and", "or", "not", "=", "<>", "<", "<=", ">", ">=", "<=>", "in", "is_null", "is_true", "is_false", "+", "-", "*",
    "/", "%", "negative", "||",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    name: str


@dataclass(frozen=True, slots=True)
class Text:
    value: str


@dataclass(frozen=True, slots=True)
class Number:
    """As it is written."""

    digits: str


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or a time, in a form that every cast takes."""

    text: str
    kind: TimeKind


@dataclass(frozen=True, slots=True)
class Null:
    pass


@dataclass(frozen=True, slots=True)
class Operation:
    """`in` has what is looked for first."""

    operator: Operator
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function from the list of those that are allowed."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """`pattern` has `%` and `_` for any text and any character, and `\\` before each of the two, and of itself, that
    stands for itself."""

    value: Node
    pattern: str
    any_case: bool


@dataclass(frozen=True, slots=True)
class Cast:
    """`lenient`: what cannot be cast is NULL, and no error."""

    value: Node
    to: Kind
    type: str
    lenient: bool


@dataclass(frozen=True, slots=True)
class Case:
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node


Node = Column | Text | Number | Truth | Moment | Null | Operation | Call | Like | Cast | Case


def parts(node: Node) -> tuple[Node, ...]:
    match node:
        case Column() | Text() | Number() | Truth() | Moment() | Null():
            return ()
        case Operation(operands=several) | Call(arguments=several):
            return several
        case Like(value=value) | Cast(value=value):
            return (value,)
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case _:
            assert_never(node)


def columns_of(node: Node) -> tuple[str, ...]:
    """Each once, in the order in which they are named."""
    return tuple(dict.fromkeys(_columns(node)))


def uncast(node: Node) -> tuple[str, ...]:
    """Columns of which more is asked than whether they are NULL, without a word on what to take them for."""
    return tuple(dict.fromkeys(_uncast(node)))


def _uncast(node: Node) -> Iterator[str]:
    match node:
        case Column(name):
            yield name
        case Cast(value=Column()) | Operation("is_null", (Column(),)) | Call("isnull" | "isnotnull", (Column(),)):
            return
        case _:
            for part in parts(node):
                yield from _uncast(part)


def _columns(node: Node) -> Iterator[str]:
    if isinstance(node, Column):
        yield node.name
    for part in parts(node):
        yield from _columns(part)
