"""Why rows could not be kept in the quarantine table as it is. Told by `plan`: later, the first row that is set aside
would fail a load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hakiri_dagster.destinations.postgres.catalog import BaseType, base_types, stored_name
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.quarantine import ADDED
from hakiri_dagster.manifest.rule_spec import id_of
from hakiri_dagster.manifest.tables import Table

_RELATION = """
SELECT c.oid::bigint, c.relkind::text, has_schema_privilege(n.oid, 'USAGE'),
       pg_has_role(c.relowner, 'USAGE'), row_security_active(c.oid),
       ARRAY(SELECT needed FROM pg_catalog.unnest(ARRAY['SELECT', 'INSERT', 'DELETE']) AS needed
             WHERE NOT has_table_privilege(c.oid, needed)),
       ARRAY(SELECT s.oid::regclass::text FROM pg_depend d JOIN pg_class s ON s.oid = d.objid
             WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
               AND d.deptype = 'a'
               AND CASE s.relkind WHEN 'S' THEN NOT has_sequence_privilege(s.oid, 'USAGE') ELSE false END)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef OR a.attidentity <> '',
       a.attgenerated <> '' OR a.attidentity = 'a'
FROM pg_attribute a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_KINDS = {
    "v": "a view",
    "m": "a materialized view",
    "f": "a foreign table",
    "i": "an index",
    "I": "an index",
    "S": "a sequence",
    "c": "a type",
}
_TEXTS = frozenset({"text", "character varying", "character", "citext"})
_WHOLE_NUMBERS = frozenset({"integer", "bigint", "numeric"})
_OF_THE_SEED = {
    "id": "bigserial",
    "pipelineId": "text",
    "runId": "text",
    "nodeId": "text",
    "ruleId": "text",
    "row": "jsonb",
    "createdAt": "timestamptz",
}
_MAY_BE_NULL = "sourceFile"
_FILLED_BY_DEFAULTS = frozenset({"id", "createdAt"})
_RUN_ID_LENGTH = 36
_LONGEST_RULE_OF_OURS = len("refused_by_destination")


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    type: str
    not_null: bool
    has_default: bool
    generated: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """The table, by the name that messages and statements have for it."""

    name: str
    columns: Mapping[str, _Column]
    types: Mapping[str, BaseType]
    own: bool


def quarantine_objections(connection: Connection, table: Table) -> list[str]:
    """None of a table that is not there: it is made in the right shape."""
    if not table.validation.quarantine.enabled:
        return []
    row = connection.execute(_RELATION, tuple(map(stored_name, table.quarantine_table))).fetchone()
    if row is None:
        return []
    oid, kind, schema_usable, own, secured, lacking, sequences = row
    return [
        f"the quarantine table {table.quarantine_place} {reason}, or name another table in validate.quarantine.table"
        for reason in (
            [f"is {_KINDS.get(kind, 'no table')}, and rows are kept in a table; move it away"]
            if kind not in ("r", "p")
            else [
                *_rights(table.quarantine_place, schema_usable, lacking, sequences),
                *(["has row-level security, under which no row can be copied into it; disable it"] if secured else []),
                *_misfits(table, _place(connection, table, oid, own=own)),
            ]
        )
    ]


def _place(connection: Connection, table: Table, oid: int, *, own: bool) -> _Place:
    columns = (_Column(*values) for values in connection.execute(_COLUMNS, (oid,)))
    return _Place(table.quarantine_place, {column.name: column for column in columns}, base_types(connection, oid), own)


def _rights(place: str, schema_usable: bool, lacking: list[str], sequences: list[str]) -> Iterator[str]:
    if not schema_usable:
        yield "lies in a schema that the destination's user may not use; GRANT USAGE ON SCHEMA to it"
    if lacking:
        rights = ", ".join(lacking)
        yield f"grants no {rights} to the destination's user; GRANT {rights} ON {place} to it"
    for sequence in sequences:
        yield f"takes numbers from {sequence}, which the destination's user may not use; GRANT USAGE ON SEQUENCE to it"


def _misfits(table: Table, place: _Place) -> Iterator[str]:
    for name, kind in _OF_THE_SEED.items():
        if name not in place.columns:
            yield f'has no column "{name}" ({kind}), by which its rows are found; add it'
    missing = [f'"{name}" {kind}' for name, kind in ADDED.items() if name not in place.columns]
    if missing and not place.own:
        yield (
            f"has no {', '.join(missing)}, and only its owner can add columns; add them, or make the destination's "
            "user a member of that role"
        )
    for column in place.columns.values():
        yield from _misfit(table, place, column)


def _misfit(table: Table, place: _Place, column: _Column) -> Iterator[str]:
    name, written = column.name, column.name in ADDED or column.name in _OF_THE_SEED
    by_default = not written or name in _FILLED_BY_DEFAULTS
    if column.not_null and by_default and not (column.has_default or column.generated):
        yield f'has the column "{name}", which is NOT NULL without a default; give it a default, or make it nullable'
    if column.not_null and name == _MAY_BE_NULL:
        yield f'has the column "{name}" NOT NULL, and not every row is from a file; make it nullable'
    if by_default:
        return
    wanted = _OF_THE_SEED.get(name) or ADDED[name]
    if column.generated:
        yield f'has the column "{name}" as a generated one, which cannot be written; make it a plain {wanted}'
    elif not _takes(place.types[name], wanted, _longest(table, name)):
        yield f'has the column "{name}" as {column.type}, which cannot take what is kept there; make it {wanted}'


def _takes(kept: BaseType, wanted: str, longest: int | None) -> bool:
    kind = kept.type
    if kind.dimensions:
        return False
    match wanted:
        case "text":
            return kind.name in _TEXTS and (not kind.args or (longest is not None and kind.args[0] >= longest))
        case "jsonb":
            return kind.name == "jsonb"
        case "bigint":
            return kind.name in _WHOLE_NUMBERS - {"integer"}
        case _:
            return kind.name in _WHOLE_NUMBERS


def _longest(table: Table, column: str) -> int | None:
    """How long the texts may get; None: nobody knows."""
    match column:
        case "pipelineId":
            return len(table.pipeline_id)
        case "nodeId":
            return len(table.name)
        case "runId":
            return _RUN_ID_LENGTH
        case "ruleId":
            return max(_LONGEST_RULE_OF_OURS, *(len(id_of(rule)) for rule in table.validation.row_level), 0)
        case _:
            return None
