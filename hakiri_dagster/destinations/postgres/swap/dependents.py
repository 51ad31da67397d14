"""What elsewhere refers to a table by its identity, and would go on referring to the one that was replaced.

PostgreSQL keeps such references by number, not by name. Each of them is told as the statement that makes it refer to
whatever bears the name; what has none is told as an objection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, LiteralString

from psycopg import sql

from hakiri_dagster.destinations.postgres.connection import Connection

VIEWS: LiteralString = """
SELECT DISTINCT format('CREATE OR REPLACE VIEW %s%s AS %s', v.oid::regclass,
                       ' WITH (' || array_to_string(v.reloptions, ', ') || ')', pg_get_viewdef(v.oid))
FROM pg_depend d
JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'
JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = {oid}
ORDER BY 1
"""

_RULES: LiteralString = """
SELECT DISTINCT 'CREATE OR REPLACE' || substr(pg_get_ruledef(r.oid), length('CREATE') + 1)
FROM pg_depend d
JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename <> '_RETURN'
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = {oid} AND r.ev_class <> {oid}
ORDER BY 1
"""

_FUNCTIONS: LiteralString = """
SELECT DISTINCT pg_get_functiondef(d.objid) FROM pg_depend d
WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = {oid}
ORDER BY 1
"""

_POLICIES: LiteralString = """
SELECT DISTINCT concat_ws(' ', format('ALTER POLICY %I ON %s', polname, polrelid::regclass),
                          'USING (' || pg_get_expr(polqual, polrelid) || ')',
                          'WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')')
FROM pg_depend d JOIN pg_policy p ON d.classid = 'pg_policy'::regclass AND p.oid = d.objid
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = {oid} AND p.polrelid <> {oid}
ORDER BY 1
"""

MADE_ANEW: Final[Mapping[str, LiteralString]] = {
    "views": VIEWS,
    "rules": _RULES,
    "functions": _FUNCTIONS,
    "policies of other tables": _POLICIES,
}

CHILD_KEYS: LiteralString = """
SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid), convalidated,
       format('COMMENT ON CONSTRAINT %I ON %s IS %L', conname, conrelid::regclass,
              obj_description(oid, 'pg_constraint'))
FROM pg_constraint
WHERE contype = 'f' AND confrelid = {oid} AND conrelid <> {oid} AND conparentid = 0
ORDER BY 1, 2
"""
"""Foreign keys of other tables: taken off before the exchange and put on after it, without looking at the rows."""

RELATIONS: LiteralString = """
SELECT DISTINCT r.oid::regclass::text, r.relkind::text, quote_ident(pg_get_userbyid(r.relowner))
FROM pg_class r
WHERE r.oid IN (SELECT w.ev_class FROM pg_depend d JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass
                AND w.oid = d.objid WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = {oid}
                AND w.ev_class <> {oid})
   OR r.oid IN (SELECT conrelid FROM pg_constraint WHERE contype = 'f' AND confrelid = {oid} AND conrelid <> {oid})
   OR r.oid IN (SELECT p.polrelid FROM pg_depend d JOIN pg_policy p ON d.classid = 'pg_policy'::regclass
                AND p.oid = d.objid WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = {oid}
                AND p.polrelid <> {oid})
ORDER BY 1
"""
"""To be locked before the table: who comes to it through them holds their lock already and waits for the table's."""

OBJECTIONS: LiteralString = """
SELECT 'it is partitioned' FROM pg_class WHERE oid = {oid} AND relkind = 'p'
UNION ALL
SELECT format('it is a partition of %s', inhparent::regclass) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
WHERE inhrelid = {oid} AND c.relispartition
UNION ALL
SELECT format('it inherits from %s', inhparent::regclass) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
WHERE inhrelid = {oid} AND NOT c.relispartition
UNION ALL
SELECT format('%s inherits from it', inhrelid::regclass) FROM pg_inherits JOIN pg_class c ON c.oid = inhparent
WHERE inhparent = {oid} AND c.relkind = 'r'
UNION ALL
SELECT format('it is a table of the type %s', reloftype::regtype) FROM pg_class WHERE oid = {oid} AND reloftype <> 0
UNION ALL
SELECT format('it belongs to %s', pg_describe_object(refclassid, refobjid, 0)) FROM pg_depend
WHERE classid = 'pg_class'::regclass AND objid = {oid} AND deptype = 'e'
UNION ALL
SELECT format('it has a security label of %s', provider) FROM pg_seclabel
WHERE classoid = 'pg_class'::regclass AND objoid = {oid}
UNION ALL
SELECT format('%s refers to its row type', pg_describe_object(d.classid, d.objid, d.objsubid))
FROM pg_class c JOIN pg_type t ON t.oid = c.reltype
JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray)
WHERE c.oid = {oid} AND d.deptype <> 'i'
UNION ALL
SELECT format('materialized view %s refers to materialized view %s, which refers to it', other.oid::regclass,
              m.oid::regclass)
FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
JOIN pg_class m ON m.oid = r.ev_class AND m.relkind = 'm'
JOIN pg_depend e ON e.refclassid = 'pg_class'::regclass AND e.refobjid = m.oid
JOIN pg_rewrite w ON e.classid = 'pg_rewrite'::regclass AND w.oid = e.objid AND w.ev_class <> m.oid
JOIN pg_class other ON other.oid = w.ev_class AND other.relkind = 'm'
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = {oid}
UNION ALL
SELECT format('%s refers to it', pg_describe_object(d.classid, d.objid, d.objsubid))
FROM pg_depend d
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = {oid} AND d.deptype IN ('n', 'x')
  AND NOT (d.classid = 'pg_constraint'::regclass
           AND EXISTS (SELECT FROM pg_constraint k WHERE k.oid = d.objid AND {oid} IN (k.conrelid, k.confrelid)))
  AND NOT (d.classid = 'pg_rewrite'::regclass
           AND EXISTS (SELECT FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class
                       WHERE r.oid = d.objid AND v.relkind IN ('v', 'm', 'r', 'p')))
  AND NOT (d.classid = 'pg_trigger'::regclass
           AND EXISTS (SELECT FROM pg_trigger t WHERE t.oid = d.objid AND (t.tgrelid = {oid} OR t.tgisinternal)))
  AND d.classid NOT IN ('pg_policy'::regclass, 'pg_proc'::regclass)
  AND NOT (d.classid = 'pg_class'::regclass AND d.objid IN (SELECT inhrelid FROM pg_inherits))
"""
"""What would be lost, and cannot be made anew."""

_REFERENCES: LiteralString = """
SELECT format('%s (%s)', conrelid::regclass, conname),
       format('SELECT EXISTS (SELECT FROM %s AS child WHERE %s AND NOT EXISTS (SELECT FROM {new} AS parent WHERE %s))',
              conrelid::regclass, string_agg(format('child.%I IS NOT NULL', c.attname), ' AND '),
              string_agg(format('parent.%I = child.%I', p.attname, c.attname), ' AND '))
FROM pg_constraint k CROSS JOIN unnest(conkey, confkey) AS key (child, parent)
JOIN pg_attribute c ON c.attrelid = conrelid AND c.attnum = key.child
JOIN pg_attribute p ON p.attrelid = confrelid AND p.attnum = key.parent
WHERE contype = 'f' AND confrelid = {oid} AND conrelid <> {oid} AND conparentid = 0 AND convalidated
GROUP BY k.oid, conrelid, conname ORDER BY 1
"""


def orphans(connection: Connection, old: int, new: int) -> list[str]:
    """Foreign keys of other tables that the new rows would break."""
    place = connection.execute("SELECT %s::oid::regclass::text", (new,)).fetchone() or ("",)
    query = sql.SQL(_REFERENCES).format(oid=sql.Literal(old), new=sql.SQL(place[0].replace("'", "''")))
    return [
        name
        for name, question in connection.execute(query).fetchall()
        if connection.execute(question.encode()).fetchone() == (True,)
    ]
