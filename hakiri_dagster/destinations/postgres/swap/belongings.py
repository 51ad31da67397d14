"""What belongs to a table by its name, as the statements that give it: carried out for the table that took the place,
once it has the name, and compared afterwards.

`{oids}` are the tables'. All of it is a change of the catalog alone, so it takes no time that readers would notice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, LiteralString

from hakiri_dagster.destinations.postgres.swap.grants import GRANTS

_TABLE: LiteralString = """
SELECT format('COMMENT ON %s %s IS %L', CASE relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END,
              oid::regclass, obj_description(oid, 'pg_class'))
FROM pg_class WHERE oid = ANY({oids}) AND obj_description(oid, 'pg_class') IS NOT NULL
UNION ALL
SELECT format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', oid::regclass) FROM pg_class
WHERE oid = ANY({oids}) AND relrowsecurity
UNION ALL
SELECT format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', oid::regclass) FROM pg_class
WHERE oid = ANY({oids}) AND relforcerowsecurity
UNION ALL
SELECT format('ALTER TABLE %s REPLICA IDENTITY %s', oid::regclass,
              CASE relreplident WHEN 'n' THEN 'NOTHING' ELSE 'FULL' END)
FROM pg_class WHERE oid = ANY({oids}) AND relreplident IN ('n', 'f')
UNION ALL
SELECT format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', indrelid::regclass, relname)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = ANY({oids}) AND i.indisreplident
UNION ALL
SELECT format('ALTER TABLE %s CLUSTER ON %I', indrelid::regclass, relname)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = ANY({oids}) AND i.indisclustered
"""

_COLUMNS: LiteralString = """
SELECT format('ALTER TABLE ONLY %s ALTER COLUMN %I SET STATISTICS %s', attrelid::regclass, attname, attstattarget)
FROM pg_attribute WHERE attrelid = ANY({oids}) AND attnum > 0 AND NOT attisdropped AND attstattarget >= 0
UNION ALL
SELECT format('ALTER TABLE ONLY %s ALTER COLUMN %I SET (%s)', attrelid::regclass, attname,
              array_to_string(attoptions, ', '))
FROM pg_attribute WHERE attrelid = ANY({oids}) AND attnum > 0 AND NOT attisdropped AND attoptions IS NOT NULL
UNION ALL
SELECT format('COMMENT ON COLUMN %s.%I IS %L', attrelid::regclass, attname, col_description(attrelid, attnum))
FROM pg_attribute
WHERE attrelid = ANY({oids}) AND attnum > 0 AND NOT attisdropped AND col_description(attrelid, attnum) IS NOT NULL
"""

_INDEXES: LiteralString = """
SELECT format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS %s', attrelid::regclass, attnum, attstattarget)
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indexrelid JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = ANY({oids}) AND (i.indisvalid OR c.relkind = 'I') AND attstattarget >= 0
UNION ALL
SELECT format('COMMENT ON INDEX %s IS %L', indexrelid::regclass, obj_description(indexrelid, 'pg_class'))
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = ANY({oids}) AND (i.indisvalid OR c.relkind = 'I')
  AND obj_description(indexrelid, 'pg_class') IS NOT NULL
UNION ALL
SELECT format('COMMENT ON CONSTRAINT %I ON %s IS %L', conname, conrelid::regclass,
              obj_description(oid, 'pg_constraint'))
FROM pg_constraint WHERE conrelid = ANY({oids}) AND obj_description(oid, 'pg_constraint') IS NOT NULL
UNION ALL
SELECT format('ALTER STATISTICS %I.%I SET STATISTICS %s', nspname, stxname, stxstattarget)
FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace
WHERE stxrelid = ANY({oids}) AND stxstattarget >= 0
UNION ALL
SELECT format('COMMENT ON STATISTICS %I.%I IS %L', nspname, stxname, obj_description(s.oid, 'pg_statistic_ext'))
FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace
WHERE stxrelid = ANY({oids}) AND obj_description(s.oid, 'pg_statistic_ext') IS NOT NULL
"""

_TRIGGERS: LiteralString = """
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = ANY({oids}) AND NOT tgisinternal AND tgparentid = 0
UNION ALL
SELECT format('ALTER TABLE ONLY %s %s TRIGGER %I', tgrelid::regclass,
              CASE tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, tgname)
FROM pg_trigger WHERE tgrelid = ANY({oids}) AND NOT tgisinternal AND tgenabled <> 'O'
UNION ALL
SELECT format('COMMENT ON TRIGGER %I ON %s IS %L', tgname, tgrelid::regclass, obj_description(oid, 'pg_trigger'))
FROM pg_trigger WHERE tgrelid = ANY({oids}) AND NOT tgisinternal AND obj_description(oid, 'pg_trigger') IS NOT NULL
UNION ALL
SELECT pg_get_ruledef(oid) FROM pg_rewrite WHERE ev_class = ANY({oids}) AND rulename <> '_RETURN'
UNION ALL
SELECT format('ALTER TABLE %s %s RULE %I', ev_class::regclass,
              CASE ev_enabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, rulename)
FROM pg_rewrite WHERE ev_class = ANY({oids}) AND rulename <> '_RETURN' AND ev_enabled <> 'O'
UNION ALL
SELECT format('COMMENT ON RULE %I ON %s IS %L', rulename, ev_class::regclass, obj_description(oid, 'pg_rewrite'))
FROM pg_rewrite
WHERE ev_class = ANY({oids}) AND rulename <> '_RETURN' AND obj_description(oid, 'pg_rewrite') IS NOT NULL
"""

_POLICIES: LiteralString = """
SELECT concat_ws(' ', format('CREATE POLICY %I ON %s AS', polname, polrelid::regclass),
                 CASE WHEN polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END, 'FOR',
                 CASE polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE'
                             ELSE 'ALL' END,
                 'TO', (SELECT string_agg(CASE role WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(role)) END,
                                          ', ' ORDER BY role) FROM unnest(polroles) AS role),
                 'USING (' || pg_get_expr(polqual, polrelid) || ')',
                 'WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')')
FROM pg_policy WHERE polrelid = ANY({oids})
UNION ALL
SELECT format('COMMENT ON POLICY %I ON %s IS %L', polname, polrelid::regclass, obj_description(oid, 'pg_policy'))
FROM pg_policy WHERE polrelid = ANY({oids}) AND obj_description(oid, 'pg_policy') IS NOT NULL
"""

_SEQUENCES: LiteralString = """
SELECT format('ALTER SEQUENCE %s OWNED BY %s.%I', d.objid::regclass, a.attrelid::regclass, a.attname)
FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY({oids})
  AND d.deptype = 'a'
UNION ALL
SELECT format('COMMENT ON SEQUENCE %s IS %L', d.objid::regclass, obj_description(d.objid, 'pg_class'))
FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY({oids})
  AND d.deptype = 'i' AND obj_description(d.objid, 'pg_class') IS NOT NULL
"""

_PUBLICATIONS: LiteralString = """
SELECT concat_ws(' ', format('ALTER PUBLICATION %I ADD TABLE %s', pubname, prrelid::regclass),
                 (SELECT format('(%s)', string_agg(quote_ident(attname), ', ' ORDER BY attnum)) FROM pg_attribute
                  WHERE attrelid = prrelid AND attnum = ANY(prattrs) HAVING count(*) > 0),
                 'WHERE (' || pg_get_expr(prqual, prrelid) || ')')
FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE prrelid = ANY({oids}) ORDER BY pubname
"""

# Of a function that is made anew PostgreSQL forgets it as well.
_EXTENSIONS: LiteralString = """
SELECT format('ALTER %s DEPENDS ON EXTENSION %I', made.name, extname)
FROM (
    SELECT 'pg_class'::regclass, oid, 'MATERIALIZED VIEW ' || oid::regclass::text
    FROM pg_class WHERE oid = ANY({oids}) AND relkind = 'm'
  UNION ALL
    SELECT 'pg_class'::regclass, indexrelid, 'INDEX ' || indexrelid::regclass::text
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = ANY({oids}) AND (i.indisvalid OR c.relkind = 'I')
  UNION ALL
    SELECT 'pg_trigger'::regclass, oid, format('TRIGGER %I ON %s', tgname, tgrelid::regclass)
    FROM pg_trigger WHERE tgrelid = ANY({oids}) AND NOT tgisinternal
  UNION
    SELECT classid, objid, 'ROUTINE ' || objid::regprocedure::text
    FROM pg_depend
    WHERE classid = 'pg_proc'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = ANY({oids})
) AS made (class, object, name)
JOIN pg_depend d ON d.classid = class AND d.objid = object AND d.deptype = 'x'
JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
"""

BELONGINGS: Final[Mapping[str, LiteralString]] = {
    "grants": GRANTS,
    "table settings": _TABLE,
    "column settings": _COLUMNS,
    "index settings and comments": _INDEXES,
    "sequences": _SEQUENCES,
    "triggers and rules": _TRIGGERS,
    "policies": _POLICIES,
    "publications": _PUBLICATIONS,
    "extensions": _EXTENSIONS,
}
"""In the order in which they are given."""
