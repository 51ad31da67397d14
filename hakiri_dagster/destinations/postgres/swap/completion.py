"""What the rows need to be in for: indexes, keys, statistics. Built on `<table>_new`, whom nobody waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import LiteralString

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.indexes import index_names, make_indexes
from hakiri_dagster.destinations.postgres.swap.portrait import about
from hakiri_dagster.destinations.postgres.swap.relations import Pair, Rename, after, place_of, run
from hakiri_dagster.destinations.postgres.swap.sequences import Succession, sequence_names, successions

_STATISTICS: LiteralString = """
SELECT s.oid::bigint, quote_ident(n.nspname), quote_ident(stxname), quote_ident(pg_get_userbyid(stxowner)),
       format('CREATE STATISTICS %I.%I', n.nspname, stxname), pg_get_statisticsobjdef(s.oid), stxrelid::regclass::text
FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = stxnamespace WHERE stxrelid = {oid} ORDER BY stxname
"""


@dataclass(frozen=True, slots=True)
class Successors:
    """Relations that are ready to take the places of others, and what else changes with them. What depends on others
    comes first, and a partitioned table before its partitions."""

    pairs: tuple[Pair, ...]
    renames: tuple[Rename, ...]
    sequences: tuple[Succession, ...]

    def __add__(self, other: Successors) -> Successors:
        return Successors(self.pairs + other.pairs, self.renames + other.renames, self.sequences + other.sequences)


def complete(connection: Connection, pairs: Sequence[Pair], prefix: str) -> Successors:
    renames: list[Rename] = []
    for pair in reversed(pairs):
        make_indexes(connection, pair, prefix)
        renames += index_names(connection, pair, prefix)
        renames += _make_statistics(connection, pair, prefix)
        renames += sequence_names(connection, pair)
    sequences = [one for pair in pairs for one in successions(connection, pair)]
    return Successors(tuple(pairs), tuple(renames), tuple(sequences))


def _make_statistics(connection: Connection, pair: Pair, prefix: str) -> Iterator[Rename]:
    _, place = place_of(connection, pair.new)
    for oid, schema, name, owner, head, definition, of in connection.execute(about(_STATISTICS, pair.old)).fetchall():
        provisional = f"{prefix}{oid}"
        body = after(definition, head).removesuffix(f" FROM {of}")
        run(connection, f"CREATE STATISTICS {schema}.{provisional}{body} FROM {place}")
        run(connection, f"ALTER STATISTICS {schema}.{provisional} OWNER TO {owner}")
        yield Rename("STATISTICS", schema, provisional, name)
