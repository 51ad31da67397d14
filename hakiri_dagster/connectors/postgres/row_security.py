"""Row-level security of a source table: which policies decide what the reading role sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow, class_row

from hakiri_dagster.errors import SourceError

_FILTERED: Final = """
WITH RECURSIVE
-- The relations that the server reads, each with the role as which it does: beneath a view that is the view's owner,
-- unless the view is a security invoker. What a materialized view holds was read before. Partitions and children are
-- read by the policies of the table that the query names, so they are not followed.
read_relation(oid, as_role) AS (
    SELECT c.oid, r.oid
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_roles r ON r.rolname = current_user
    WHERE n.nspname = %(schema)s AND c.relname = %(table)s
    UNION
    SELECT
        d.refobjid,
        CASE
            WHEN EXISTS (
                SELECT FROM pg_options_to_table(v.reloptions) o
                WHERE o.option_name = 'security_invoker' AND o.option_value::bool
            ) THEN (SELECT oid FROM pg_roles WHERE rolname = current_user)
            ELSE v.relowner
        END
    FROM read_relation
    JOIN pg_class v ON v.oid = read_relation.oid AND v.relkind = 'v'
    JOIN pg_rewrite w ON w.ev_class = v.oid AND w.ev_type = '1'
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
        AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> v.oid
)
SELECT
    format('%%I.%%I', n.nspname, c.relname) AS relation,
    r.rolname::text AS role,
    ARRAY(
        SELECT p.polname::text
        FROM pg_policy p
        WHERE p.polrelid = c.oid AND p.polcmd IN ('*', 'r')
            AND EXISTS (
                SELECT FROM unnest(p.polroles) AS granted(oid)
                WHERE granted.oid = 0 OR pg_has_role(r.oid, granted.oid, 'USAGE')
            )
        ORDER BY p.polname
    ) AS policies
FROM read_relation
JOIN pg_class c ON c.oid = read_relation.oid AND c.relrowsecurity
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_roles r ON r.oid = read_relation.as_role
WHERE NOT r.rolsuper AND NOT r.rolbypassrls
    AND (c.relforcerowsecurity OR NOT pg_has_role(r.oid, c.relowner, 'USAGE'))
ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class FilteredRelation:
    """A relation of which `role` sees only what `policies` let it see: nothing, where there are none."""

    relation: str
    role: str
    policies: list[str]

    def __str__(self) -> str:
        if not self.policies:
            return f"row-level security of {self.relation} hides every row from `{self.role}`: no policy applies to it"
        names = ", ".join(f"`{name}`" for name in self.policies)
        return f"row-level security of {self.relation} decides which rows `{self.role}` sees, by policy {names}"


def find_filtered_relations(connection: Connection[TupleRow], schema: str, table: str) -> list[FilteredRelation]:
    """Return the table, or the tables beneath the view, that row-level security filters for the reading role."""
    with connection.cursor(row_factory=class_row(FilteredRelation)) as cursor:
        return cursor.execute(_FILTERED, {"schema": schema, "table": table}).fetchall()


def row_security_warnings(found: list[FilteredRelation]) -> tuple[str, ...]:
    return tuple(
        f'{one}; read as a role with BYPASSRLS to load all rows, or set row_security = "off" to have such a read fail'
        for one in found
    )


def refuse_filtered(found: list[FilteredRelation], where: str) -> None:
    """PostgreSQL itself refuses such a read when `row_security` is off; this names the policies beforehand."""
    if found:
        raise SourceError(
            f'{found[0]}, and row_security is "off"',
            where=where,
            hint=f"grant BYPASSRLS to `{found[0].role}`, read as another role, or remove `row_security` from the "
            "source's config to load the rows that it sees",
        )
