"""`<table>_new`: an empty table like another one, and what is built on it once its rows are in.

Names that PostgreSQL keeps once a schema, of indexes and sequences, are provisional until the old table is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, LiteralString

from psycopg import sql

from hakiri_dagster.destinations.contract import LOAD_ID_COLUMN
from hakiri_dagster.destinations.postgres.connection import Connection, relation
from hakiri_dagster.destinations.postgres.swap.portrait import about
from hakiri_dagster.errors import DestinationError

_SUFFIX = "_new"
_NAME_BYTES = 63

_MADE_WITH: LiteralString = """
SELECT c.relpersistence = 'u', quote_ident(a.amname), quote_ident(s.spcname),
       array_cat(c.reloptions, (SELECT array_agg('toast.' || option) FROM unnest(t.reloptions) AS option)),
       quote_ident(pg_get_userbyid(c.relowner))
FROM pg_class c LEFT JOIN pg_am a ON a.oid = c.relam LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
WHERE c.oid = {oid}
"""

# A definition tells its own name and table at its beginning, where they are exchanged for others.
_INDEXES: LiteralString = """
SELECT i.indexrelid::bigint, quote_ident(c.relname), quote_literal(coalesce(s.spcname, '')),
       CASE WHEN m.amname = 'btree' THEN
            CASE k.contype WHEN 'p' THEN 'PRIMARY KEY USING INDEX ' WHEN 'u' THEN 'UNIQUE USING INDEX ' END END,
       CASE WHEN k.oid IS NOT NULL THEN pg_get_constraintdef(k.oid) END,
       concat_ws(' ', CASE WHEN k.condeferrable THEN 'DEFERRABLE' END,
                      CASE WHEN k.condeferred THEN 'INITIALLY DEFERRED' END),
       array_to_string(c.reloptions, ', '),
       format('CREATE %sINDEX ', CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END),
       format('%I ON %s', c.relname, i.indrelid::regclass),
       pg_get_indexdef(i.indexrelid)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x')
LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
WHERE i.indrelid = {oid} AND i.indisvalid AND {which} ORDER BY i.indisprimary DESC, c.relname
"""

# All rows have one load id now, so a summary of it tells nothing apart; `load_id_index` sums up when there are more.
_LOAD_ID_INDEX: LiteralString = """
(m.amname = 'brin' AND i.indnatts = 1 AND pg_get_indexdef(i.indexrelid, 1, false) = {load_id})
"""

_STATISTICS: LiteralString = """
SELECT s.oid::bigint, quote_ident(n.nspname), quote_ident(stxname), quote_ident(pg_get_userbyid(stxowner)),
       format('CREATE STATISTICS %I.%I', n.nspname, stxname), pg_get_statisticsobjdef(s.oid), stxrelid::regclass::text
FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = stxnamespace WHERE stxrelid = {oid} ORDER BY stxname
"""

_FOREIGN_KEYS: LiteralString = """
SELECT quote_ident(conname), pg_get_constraintdef(oid), convalidated,
       (SELECT format('FOREIGN KEY (%s) REFERENCES ', string_agg(quote_ident(attname), ', ' ORDER BY position))
        FROM unnest(conkey) WITH ORDINALITY AS key (attnum, position)
        JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = key.attnum),
       confrelid = conrelid, confrelid::regclass::text
FROM pg_constraint WHERE conrelid = {oid} AND contype = 'f' AND conparentid = 0 ORDER BY conname
"""

_UNCHECKED: LiteralString = """
SELECT quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = {oid} AND contype IN ('c', 'n') AND NOT convalidated
"""

_IDENTITIES: LiteralString = """
SELECT quote_ident(a.attname), d.objid::regclass::text, s.seqtypid::regtype::text
FROM pg_depend d JOIN pg_sequence s ON s.seqrelid = d.objid
JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = {oid}
  AND d.deptype = 'i' ORDER BY a.attnum
"""

_GO_ON_AFTER: LiteralString = """
SELECT setval({quoted}, highest, true)
FROM (SELECT greatest((SELECT CASE WHEN is_called THEN last_value END FROM {before}),
                      (SELECT CASE WHEN is_called THEN last_value END FROM {sequence}),
                      (SELECT max({column}) FROM {place})) AS highest) AS known
WHERE highest IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Rename:
    """`provisional` and `final` are names as PostgreSQL quotes them, `kind` what ALTER calls the thing."""

    kind: str
    schema: str
    provisional: str
    final: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two relations of which the new one is to take the old one's place. `kind` is what DDL calls them."""

    kind: Literal["TABLE", "MATERIALIZED VIEW"]
    old: int
    new: int
    renames: tuple[Rename, ...]


def sibling_name(name: str) -> str:
    """As long as PostgreSQL keeps names."""
    return name.encode()[: _NAME_BYTES - len(_SUFFIX)].decode(errors="ignore") + _SUFFIX


def make(connection: Connection, oid: int, schema: str, name: str, prefix: str) -> int:
    """Empty and ready for rows: without indexes, but for the one that need not read them. Answers its identity."""
    made_with = storage_of(connection, oid)
    new = relation(schema, sibling_name(name))
    connection.execute(
        sql.SQL(
            "CREATE {unlogged} TABLE {new} (LIKE {old} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING IDENTITY"
            " INCLUDING GENERATED INCLUDING STORAGE INCLUDING COMPRESSION) {clauses}"
        ).format(
            unlogged=sql.SQL("UNLOGGED" if made_with.unlogged else ""),
            new=new,
            old=relation(schema, name),
            clauses=sql.SQL(made_with.clauses),
        )
    )
    connection.execute(sql.SQL("ALTER TABLE {} OWNER TO {}").format(new, sql.SQL(made_with.owner)))
    sibling = oid_of(connection, new.as_string(connection))
    _correct(connection, oid, sibling)
    _make_indexes(connection, oid, sibling, prefix, of_load_ids=True)
    return sibling


@dataclass(frozen=True, slots=True)
class Storage:
    """`clauses` stand after a relation's columns where it is made."""

    unlogged: bool
    clauses: str
    owner: str


def storage_of(connection: Connection, oid: int) -> Storage:
    row = connection.execute(about(_MADE_WITH, oid)).fetchone()
    if row is None:
        raise DestinationError("the target was dropped while it was being loaded")
    unlogged, method, tablespace, options, owner = row
    clauses = [
        f"USING {method}" if method else "",
        f"WITH ({', '.join(options)})" if options else "",
        f"TABLESPACE {tablespace}" if tablespace else "",
    ]
    return Storage(unlogged, " ".join(clauses), owner)


def _correct(connection: Connection, old: int, new: int) -> None:
    """LIKE takes constraints for checked that were not, and sequences of all identities for `bigint`."""
    _, place = place_of(connection, new)
    for name, definition in connection.execute(about(_UNCHECKED, old)).fetchall():
        run(connection, f"ALTER TABLE {place} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} {definition}")
    types = {column: kind for column, _, kind in connection.execute(about(_IDENTITIES, old))}
    for column, sequence, kind in connection.execute(about(_IDENTITIES, new)).fetchall():
        if kind != types[column]:
            run(connection, f"ALTER SEQUENCE {sequence} AS {types[column]}")


def complete(connection: Connection, old: int, new: int, prefix: str) -> tuple[Rename, ...]:
    """Builds what the rows need to be in for: indexes, keys, statistics. Answers what is to be renamed after the
    exchange."""
    _make_indexes(connection, old, new, prefix, of_load_ids=False)
    renames = (
        *_index_names(connection, old, new, prefix),
        *_statistics(connection, old, new, prefix),
        *_identities(connection, old, new),
    )
    _add_foreign_keys(connection, old, new)
    return renames


def _make_indexes(connection: Connection, old: int, new: int, prefix: str, *, of_load_ids: bool) -> None:
    schema, place = place_of(connection, new)
    which = sql.SQL(_LOAD_ID_INDEX if of_load_ids else "NOT " + _LOAD_ID_INDEX)
    for oid, _, tablespace, *definition in _indexes(connection, old, which):
        run(connection, f"SET LOCAL default_tablespace = {tablespace}")
        for statement in _index_statements(schema, place, f"{prefix}{oid}", *definition):
            run(connection, statement)


def _index_names(connection: Connection, old: int, new: int, prefix: str) -> Iterator[Rename]:
    schema, _ = place_of(connection, new)
    for oid, name, *_definition in _indexes(connection, old, sql.SQL("true")):
        yield Rename("INDEX", schema, f"{prefix}{oid}", name)


def _indexes(connection: Connection, oid: int, which: sql.SQL) -> Sequence[tuple[Any, ...]]:
    condition = which.format(load_id=sql.Literal(LOAD_ID_COLUMN))
    return connection.execute(sql.SQL(_INDEXES).format(oid=sql.Literal(oid), which=condition)).fetchall()


def _index_statements(
    schema: str,
    place: str,
    provisional: str,
    stands_for: str | None,
    constraint: str | None,
    deferral: str,
    options: str | None,
    create: str,
    itself: str,
    definition: str,
) -> Iterator[str]:
    """A key's own text lacks the index's settings; an exclusion cannot be made of an index."""
    if constraint is not None and stands_for is None:
        yield f"ALTER TABLE {place} ADD CONSTRAINT {provisional} {constraint}"
        if options is not None:
            yield f"ALTER INDEX {schema}.{provisional} SET ({options})"
        return
    yield f"{create}{provisional} ON {place}{_after(definition, create + itself)}"
    if stands_for is not None:
        yield f"ALTER TABLE {place} ADD CONSTRAINT {provisional} {stands_for}{provisional} {deferral}"


def _statistics(connection: Connection, old: int, new: int, prefix: str) -> Iterator[Rename]:
    _, place = place_of(connection, new)
    for oid, schema, name, owner, head, definition, of in connection.execute(about(_STATISTICS, old)):
        provisional = f"{prefix}{oid}"
        body = _after(definition, head).removesuffix(f" FROM {of}")
        run(connection, f"CREATE STATISTICS {schema}.{provisional}{body} FROM {place}")
        run(connection, f"ALTER STATISTICS {schema}.{provisional} OWNER TO {owner}")
        yield Rename("STATISTICS", schema, provisional, name)


def _identities(connection: Connection, old: int, new: int) -> Iterator[Rename]:
    """The new sequences go on after all that the old ones gave and all that the rows hold."""
    schema, place = place_of(connection, new)
    before = {column: sequence for column, sequence, _ in connection.execute(about(_IDENTITIES, old))}
    for column, sequence, _ in connection.execute(about(_IDENTITIES, new)):
        _go_on_after(connection, sequence, before[column], place, column)
        yield Rename("SEQUENCE", schema, name_in(sequence, schema), name_in(before[column], schema))


def _go_on_after(connection: Connection, sequence: str, before: str, place: str, column: str) -> None:
    connection.execute(
        sql.SQL(_GO_ON_AFTER).format(
            quoted=sql.Literal(sequence),
            sequence=sql.SQL(sequence),
            before=sql.SQL(before),
            place=sql.SQL(place),
            column=sql.SQL(column),
        )
    )


def _add_foreign_keys(connection: Connection, old: int, new: int) -> None:
    """Checked without keeping the referred table's writers out, which ADD CONSTRAINT alone would do for as long."""
    _, place = place_of(connection, new)
    for name, definition, valid, head, to_itself, referred in connection.execute(about(_FOREIGN_KEYS, old)).fetchall():
        text = f"{head}{place}{_after(definition, head + referred)}" if to_itself else definition
        put_off = "" if text.endswith(" NOT VALID") else " NOT VALID"
        run(connection, f"ALTER TABLE {place} ADD CONSTRAINT {name} {text}{put_off}")
        if valid:
            run(connection, f"ALTER TABLE {place} VALIDATE CONSTRAINT {name}")


def _after(text: str, beginning: str) -> str:
    if not text.startswith(beginning):
        raise DestinationError(f"PostgreSQL tells a definition in an unexpected way: {text}")
    return text[len(beginning) :]


def name_in(qualified: str, schema: str) -> str:
    """A name in full, without the schema."""
    return _after(qualified, f"{schema}.")


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


def run(connection: Connection, statement: str) -> None:
    """Made of PostgreSQL's own words alone: definitions, and names that it quoted."""
    connection.execute(statement.encode())
