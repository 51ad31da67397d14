"""What the role that loads lacks the right to make anew, to lock or to drop in an exchange."""

from __future__ import annotations

from typing import LiteralString

RIGHTS: LiteralString = """
WITH RECURSIVE exchanged (oid) AS (
    SELECT unnest({oids})
  UNION
    SELECT m.oid
    FROM exchanged JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = exchanged.oid
    JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    JOIN pg_class m ON m.oid = r.ev_class AND m.relkind = 'm'),
reference AS (
    SELECT classid, objid FROM exchanged JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = oid),
made (class, object, schema, owner, given) AS (
    SELECT 'pg_class'::regclass, oid, relnamespace, relowner, true FROM pg_class JOIN exchanged USING (oid)
  UNION
    SELECT 'pg_statistic_ext'::regclass, s.oid, stxnamespace, stxowner, true
    FROM pg_statistic_ext s JOIN exchanged e ON e.oid = stxrelid
  UNION
    SELECT 'pg_class'::regclass, v.oid, CASE relkind WHEN 'v' THEN relnamespace END, relowner, false
    FROM reference JOIN pg_rewrite r ON classid = 'pg_rewrite'::regclass AND r.oid = objid
    JOIN pg_class v ON v.oid = ev_class
  UNION
    SELECT 'pg_class'::regclass, c.oid, NULL, relowner, false
    FROM exchanged e JOIN pg_constraint k ON k.contype = 'f' AND k.confrelid = e.oid JOIN pg_class c ON c.oid = conrelid
  UNION
    SELECT 'pg_class'::regclass, c.oid, NULL, relowner, false
    FROM reference JOIN pg_policy p ON classid = 'pg_policy'::regclass AND p.oid = objid
    JOIN pg_class c ON c.oid = polrelid
  UNION
    SELECT 'pg_proc'::regclass, p.oid, pronamespace, proowner, false
    FROM reference JOIN pg_proc p ON classid = 'pg_proc'::regclass AND p.oid = objid
  UNION
    SELECT 'pg_publication'::regclass, p.oid, NULL, pubowner, false
    FROM exchanged e JOIN pg_publication_rel r ON prrelid = e.oid JOIN pg_publication p ON p.oid = prpubid)
SELECT DISTINCT {oid}::bigint, format('%1$s belongs to %2$I, and %3$I is not a member of that role; GRANT %2$I TO %3$I',
                                      pg_describe_object(class, object, 0), pg_get_userbyid(owner), current_user)
FROM made
WHERE NOT pg_has_role(owner, 'USAGE') OR NOT pg_has_role(
    owner, CASE WHEN NOT given THEN 'USAGE' WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER'
           ELSE 'SET' END)
UNION ALL
SELECT DISTINCT {oid}, format('%I may not create anything in the schema %I, in which %s is made anew', rolname, nspname,
                              pg_describe_object(class, object, 0))
FROM made JOIN pg_namespace n ON n.oid = schema
JOIN pg_roles r ON rolname = current_user OR (given AND r.oid = owner)
WHERE NOT has_schema_privilege(r.oid, n.oid, 'CREATE')
  AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
UNION ALL
SELECT {oid}, format('%I may not create a schema in the database %I, which building %s anew needs', current_user,
                     current_database(), c.oid::regclass)
FROM pg_class c JOIN exchanged USING (oid)
WHERE relkind = 'm' AND NOT has_database_privilege(current_database(), 'CREATE')
UNION ALL
SELECT DISTINCT conrelid, format('%I may not refer to %s by a foreign key', current_user, confrelid::regclass)
FROM pg_constraint WHERE contype = 'f' AND conrelid = ANY({oids}) AND conparentid = 0
  AND NOT has_any_column_privilege(confrelid, 'REFERENCES')
UNION ALL
SELECT DISTINCT tgrelid, format('%I may not execute %s, which a trigger calls', current_user, tgfoid::regprocedure)
FROM pg_trigger
WHERE tgrelid = ANY({oids}) AND NOT tgisinternal AND tgparentid = 0 AND NOT has_function_privilege(tgfoid, 'EXECUTE')
ORDER BY 2
"""
