"""The checksum of rows in PostgreSQL: of their own values, or of texts that other engines write alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg import sql

from hakiri_dagster.destinations.contract import PROVENANCE_COLUMNS
from hakiri_dagster.destinations.postgres.asked_rows import AskedRows
from hakiri_dagster.destinations.postgres.catalog import stored_name
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.types import PgType
from hakiri_dagster.quality.digests import HEX_DIGITS, NOTHING, SEPARATOR, PortableForm
from hakiri_dagster.quality.measures import Answer, Digest, Digested, Form, Unanswered

_PORTABLE: Mapping[str, PortableForm] = {
    "text": "text", "character varying": "text", "smallint": "integer", "integer": "integer", "bigint": "integer",
    "numeric": "number", "boolean": "boolean", "date": "day", "timestamp with time zone": "instant",
    "timestamp without time zone": "instant", "bytea": "bytes",
}  # fmt: skip
_TEXTS: Mapping[PortableForm, str] = {
    "text": "{}",
    "integer": "{}::text",
    "number": "trim_scale({})::text",
    "boolean": "{}::int::text",
    "day": "({} - date '1970-01-01')::text",
    "instant": "trim_scale(extract(epoch FROM {}) * 1000000)::text",
    "bytes": "encode({}, 'hex')",
}
_AS_THEY_ARE = (
    "text", "character varying", "smallint", "integer", "bigint", "numeric", "boolean", "date", "real",
    "double precision", "timestamp with time zone", "timestamp without time zone", "bytea", "uuid", "interval",
    "time without time zone", "time with time zone",
)  # fmt: skip
"""Types whose values have the same hash on every server; others are compared by their texts."""

_AS_TEXT = ("json", "jsonb", "character", "inet", "cidr", "xml", "bit", "bit varying")
"""Of PostgreSQL's own: a source's value becomes one of them before its text is taken."""

_TEXT = "::text"
_COLUMNS_AT_ONCE = 50
"""PostgreSQL's functions take a hundred arguments."""


def digested(connection: Connection, rows: AskedRows, measure: Digest) -> Answer:
    forms = _forms(rows, measure)
    compared = compared_forms(rows, measure)
    if not compared:
        return Unanswered(f"no checksum can be made of {', '.join(forms)}")
    row = _portable_row(compared) if measure.portable else own_row(compared)
    statement = sql.SQL("SELECT coalesce(sum({}::numeric), 0) FROM {}{}")
    found = connection.execute(statement.format(row, rows.relation, rows.where())).fetchone()
    left_out = tuple(name for name, form in forms.items() if form is None)
    return Digested(int(found[0]) if found is not None else 0, compared, left_out)


def compared_forms(rows: AskedRows, measure: Digest) -> tuple[tuple[str, Form], ...]:
    """What is summed up, as far as the target's columns tell before the rows are there."""
    return tuple((name, form) for name, form in _forms(rows, measure).items() if form is not None)


def _forms(rows: AskedRows, measure: Digest) -> dict[str, Form | None]:
    named = measure.columns or [name for name in rows.types if name not in PROVENANCE_COLUMNS | rows.added]
    types = {name: rows.types[stored_name(name)] for name in named}
    return {name: _form(type_, portable=measure.portable) for name, type_ in types.items()}


def _form(type_: PgType, *, portable: bool) -> Form | None:
    if portable:
        return _PORTABLE.get(type_.name) if not type_.dimensions else None
    if type_.name in _AS_THEY_ARE and not type_.dimensions:
        return str(type_)
    own = type_.name in _AS_THEY_ARE or type_.name in _AS_TEXT
    return f"{type_}{_TEXT}" if own else "text"


def _portable_row(forms: Sequence[tuple[str, str]]) -> sql.Composable:
    texts = [
        sql.SQL("coalesce({}, {})").format(
            sql.SQL(_TEXTS[form]).format(sql.Identifier(stored_name(name))),  # type: ignore[index]  # made by `_form`
            sql.Literal(NOTHING),
        )
        for name, form in forms
    ]
    row = _joined(texts)
    while len(texts) > _COLUMNS_AT_ONCE:
        starts = range(0, len(texts), _COLUMNS_AT_ONCE)
        texts = [_joined(texts[start : start + _COLUMNS_AT_ONCE]) for start in starts]
        row = _joined(texts)
    return sql.SQL("('x0' || left(md5({}), {}))::bit(64)::bigint").format(row, HEX_DIGITS)


def _joined(texts: Sequence[sql.Composable]) -> sql.Composed:
    return sql.SQL("pg_catalog.concat_ws({}, {})").format(sql.Literal(SEPARATOR), sql.SQL(", ").join(texts))


def own_row(forms: Sequence[tuple[str, str]]) -> sql.Composable:
    """Return the hash of a row's own values, as `row_of` of a PostgreSQL source computes it."""
    values = [
        sql.SQL("{}::text" if form == "text" or form.endswith(_TEXT) else "{}").format(
            sql.Identifier(stored_name(name))
        )
        for name, form in forms
    ]
    return sql.SQL("hash_record_extended(ROW({}), 0)").format(sql.SQL(", ").join(values))
