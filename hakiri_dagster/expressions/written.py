"""SQL as we write it for Spark, each part with its kind and with when it cannot be computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hakiri_dagster.expressions.tree import Kind

MOST_SQL = 50_000


class Misfit(Exception):
    """The columns are not what the expression takes them for."""


@dataclass(frozen=True, slots=True)
class Judged:
    """`fails` is a condition that is never NULL: where it holds, the value could not be computed and is NULL. None: it
    always can. `text`: the text, if it is one that is written out."""

    kind: Kind
    sql: str
    fails: str | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        if len(self.sql) + len(self.fails or "") > MOST_SQL:
            raise Misfit("it is too large; split it into several rules")


def text_literal(text: str) -> str:
    """Spark fills `${…}` in wherever it finds it, from its settings and the environment: no `$` is written as such."""
    return "'" + "".join(c if c.isprintable() and c not in "'\\$" else _escaped(c) for c in text) + "'"


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04X}" if ord(character) < 0x10000 else f"\\U{ord(character):08X}"


def either(conditions: Iterable[str | None]) -> str | None:
    known = [condition for condition in conditions if condition is not None]
    return None if not known else known[0] if len(known) == 1 else f"({' OR '.join(known)})"


def fails_of(values: Iterable[Judged]) -> str | None:
    return either(value.fails for value in values)


def attempted(kind: Kind, sql: str, of: Sequence[Judged]) -> Judged:
    """SQL that is NULL where it fails; where a part of it is NULL it is rightly so."""
    missed = " AND ".join([f"{sql} IS NULL", *(f"{part.sql} IS NOT NULL" for part in of)])
    return Judged(kind, sql, either([fails_of(of), f"({missed})"]))
