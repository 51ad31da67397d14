"""What elsewhere refers to a table by its identity, and would go on referring to the one that was replaced.

PostgreSQL keeps such references by number, not by name. Each of them is told as the statement that makes it refer to
whatever bears the name; what has none is told as an objection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, LiteralString

from psycopg import sql

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.portrait import members
from hakiri_dagster.destinations.postgres.swap.relations import Pair, of_each, place_of

_VIEWS: LiteralString = """
SELECT DISTINCT format('CREATE OR REPLACE VIEW %s%s AS %s', v.oid::regclass,
                       ' WITH (' || array_to_string(v.reloptions, ', ') || ')', pg_get_viewdef(v.oid))
FROM pg_depend d
JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'
JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY({oids})
ORDER BY 1
"""

_RULES: LiteralString = """
SELECT DISTINCT 'CREATE OR REPLACE' || substr(pg_get_ruledef(r.oid), length('CREATE') + 1)
FROM pg_depend d
JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename <> '_RETURN'
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY({oids}) AND r.ev_class <> ALL({oids})
ORDER BY 1
"""

_FUNCTIONS: LiteralString = """
SELECT DISTINCT pg_get_functiondef(d.objid) FROM pg_depend d
WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY({oids})
ORDER BY 1
"""

_POLICIES: LiteralString = """
SELECT DISTINCT concat_ws(' ', format('ALTER POLICY %I ON %s', polname, polrelid::regclass),
                          'USING (' || pg_get_expr(polqual, polrelid) || ')',
                          'WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')')
FROM pg_depend d JOIN pg_policy p ON d.classid = 'pg_policy'::regclass AND p.oid = d.objid
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY({oids}) AND p.polrelid <> ALL({oids})
ORDER BY 1
"""

MADE_ANEW: Final[Mapping[str, LiteralString]] = {
    "views": _VIEWS,
    "rules": _RULES,
    "functions": _FUNCTIONS,
    "policies of other tables": _POLICIES,
}

CHILD_KEYS: LiteralString = """
SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid), convalidated,
       format('COMMENT ON CONSTRAINT %I ON %s IS %L', conname, conrelid::regclass,
              obj_description(oid, 'pg_constraint'))
FROM pg_constraint
WHERE contype = 'f' AND confrelid = ANY({oids}) AND conrelid <> ALL({oids}) AND conparentid = 0
ORDER BY 1, 2
"""
"""Foreign keys of other tables: taken off before the exchange and put on after it, without looking at the rows."""

RELATIONS: LiteralString = """
SELECT DISTINCT r.oid::regclass::text, r.relkind::text, quote_ident(pg_get_userbyid(r.relowner))
FROM pg_class r
WHERE r.oid IN (SELECT w.ev_class FROM pg_depend d JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass
                AND w.oid = d.objid WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY({oids})
                AND w.ev_class <> ALL({oids}))
   OR r.oid IN (SELECT conrelid FROM pg_constraint
                WHERE contype = 'f' AND confrelid = ANY({oids}) AND conrelid <> ALL({oids}))
   OR r.oid IN (SELECT p.polrelid FROM pg_depend d JOIN pg_policy p ON d.classid = 'pg_policy'::regclass
                AND p.oid = d.objid WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY({oids})
                AND p.polrelid <> ALL({oids}))
ORDER BY 1
"""
"""To be locked before the table: who comes to it through them holds their lock already and waits for the table's."""

# Whoever may change a table, or maintain it (from 17 on), may lock it.
PARENTS: LiteralString = """
SELECT oid::regclass::text, has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE'
           || CASE WHEN current_setting('server_version_num')::int < 170000 THEN '' ELSE ', MAINTAIN' END)
FROM pg_class
WHERE oid IN (SELECT confrelid FROM pg_constraint
              WHERE contype = 'f' AND conrelid = ANY({oids}) AND confrelid <> ALL({oids}))
ORDER BY relispartition, 1
"""
"""What the table's own foreign keys refer to, and whether we may lock it. PostgreSQL does when it drops the table."""

_REFERENCES: LiteralString = """
SELECT format('%s (%s)', conrelid::regclass, conname),
       format('SELECT EXISTS (SELECT FROM %s AS child WHERE %s AND NOT EXISTS (SELECT FROM %s AS parent WHERE %s))',
              conrelid::regclass, string_agg(format('child.%I IS NOT NULL', c.attname), ' AND '), {new},
              string_agg(format('parent.%I = child.%I', p.attname, c.attname), ' AND '))
FROM pg_constraint k CROSS JOIN unnest(conkey, confkey) AS key (child, parent)
JOIN pg_attribute c ON c.attrelid = conrelid AND c.attnum = key.child
JOIN pg_attribute p ON p.attrelid = confrelid AND p.attnum = key.parent
WHERE contype = 'f' AND confrelid = {oid} AND conrelid <> ALL({oids}) AND conparentid = 0 AND convalidated
GROUP BY k.oid, conrelid, conname ORDER BY 1
"""


def orphans(connection: Connection, pairs: Sequence[Pair]) -> list[str]:
    """Foreign keys of other tables that the new rows would break."""
    olds, _ = of_each(pairs)
    lost = []
    for pair in pairs:
        _, place = place_of(connection, pair.new)
        query = sql.SQL(_REFERENCES).format(oid=sql.Literal(pair.old), oids=members(olds), new=sql.Literal(place))
        for name, question in connection.execute(query).fetchall():
            if connection.execute(question.encode()).fetchone() == (True,):
                lost.append(name)
    return lost
