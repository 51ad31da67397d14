"""Foreign keys out of `<table>_new`. Those of other tables into it are `dependents.CHILD_KEYS`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.portrait import about
from hakiri_dagster.destinations.postgres.swap.relations import Pair, after, of_each, place_of, run

_FOREIGN_KEYS: LiteralString = """
SELECT conrelid::bigint, quote_ident(conname), pg_get_constraintdef(k.oid), convalidated,
       (SELECT format('FOREIGN KEY (%s) REFERENCES ', string_agg(quote_ident(attname), ', ' ORDER BY position))
        FROM unnest(conkey) WITH ORDINALITY AS key (attnum, position)
        JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = key.attnum),
       confrelid::bigint, confrelid::regclass::text, relkind = 'p'
FROM pg_constraint k JOIN pg_class c ON c.oid = conrelid
WHERE conrelid = ANY({oids}) AND contype = 'f' AND conparentid = 0
"""

_CHECKED_LATER_IF_PARTITIONED = 180_000
"""The first version of PostgreSQL that takes NOT VALID for a partitioned table's key."""


def add_foreign_keys(connection: Connection, pairs: Sequence[Pair]) -> list[str]:
    """Without a look at the rows, for the tables that they refer to are kept from writers meanwhile. Answers the
    statements that check them, which keep nobody out: to be run in a later transaction."""
    olds, news = of_each(pairs)
    successor = dict(zip(olds, news, strict=True))
    checks = []
    for of, name, definition, valid, head, referred, its_name, partitioned in connection.execute(
        about(_FOREIGN_KEYS, *olds)
    ).fetchall():
        _, place = place_of(connection, successor[of])
        text = definition
        if referred in successor:
            text = f"{head}{place_of(connection, successor[referred])[1]}{after(definition, head + its_name)}"
        later = not partitioned or connection.info.server_version >= _CHECKED_LATER_IF_PARTITIONED
        put_off = " NOT VALID" if later and not text.endswith(" NOT VALID") else ""
        run(connection, f"ALTER TABLE {place} ADD CONSTRAINT {name} {text}{put_off}")
        if valid and later:
            checks.append(f"ALTER TABLE {place} VALIDATE CONSTRAINT {name}")
    return checks
