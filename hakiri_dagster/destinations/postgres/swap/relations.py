"""Relations by what PostgreSQL calls them, and statements that are made of its own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.errors import DestinationError


@dataclass(frozen=True, slots=True)
class Rename:
    """`provisional` and `final` are names as PostgreSQL quotes them, `kind` what ALTER calls the thing."""

    kind: str
    schema: str
    provisional: str
    final: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two relations of which the new one is to take the old one's place. `kind` is what DDL calls them; a partition
    goes where its parent goes."""

    kind: Literal["TABLE", "MATERIALIZED VIEW"]
    old: int
    new: int
    partition: bool = False


def of_each(pairs: Sequence[Pair]) -> tuple[list[int], list[int]]:
    return [pair.old for pair in pairs], [pair.new for pair in pairs]


def place_of(connection: Connection, oid: int) -> tuple[str, str]:
    """Its schema, and its name in full, as PostgreSQL quotes them."""
    row = connection.execute(
        "SELECT quote_ident(n.nspname), c.oid::regclass::text FROM pg_class c JOIN pg_namespace n"
        " ON n.oid = c.relnamespace WHERE c.oid = %s",
        (oid,),
    ).fetchone()
    if row is None:
        raise DestinationError("the table that was loaded is gone: somebody dropped it")
    return row[0], row[1]


def oid_of(connection: Connection, name: str) -> int:
    row = connection.execute("SELECT %s::regclass::oid::bigint", (name,)).fetchone()
    assert row is not None
    return int(row[0])


def name_in(qualified: str, schema: str) -> str:
    """A name in full, without the schema."""
    return after(qualified, f"{schema}.")


def after(text: str, beginning: str) -> str:
    if not text.startswith(beginning):
        raise DestinationError(f"PostgreSQL tells a definition in an unexpected way: {text}")
    return text[len(beginning) :]


def before(text: str, end: str) -> str:
    if not text.endswith(end):
        raise DestinationError(f"PostgreSQL tells a definition in an unexpected way: {text}")
    return text[: len(text) - len(end)]


def run(connection: Connection, statement: str) -> None:
    """Made of PostgreSQL's own words alone: definitions, and names that it quoted."""
    connection.execute(statement.encode())


def run_all(connection: Connection, statements: Sequence[str]) -> None:
    """In one go, so that nobody waits for the way there and back."""
    if statements:
        run(connection, ";\n".join(statement.rstrip(";") for statement in statements))
