"""What a table has from its making on, and what it must have while its rows come in: compared, not carried out.

Each query answers one line a thing, with names in full; `{oid}` is the table's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, LiteralString

STORAGE: LiteralString = """
SELECT format('owner %I', pg_get_userbyid(relowner)) FROM pg_class WHERE oid = {oid}
UNION ALL
SELECT format('access method %I', amname) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = {oid}
UNION ALL
SELECT format('tablespace %I', spcname) FROM pg_class c JOIN pg_tablespace s ON s.oid = c.reltablespace
WHERE c.oid = {oid}
UNION ALL
SELECT format('as %s', pg_get_viewdef(oid)) FROM pg_class WHERE oid = {oid} AND relkind = 'm'
UNION ALL
SELECT 'unlogged' FROM pg_class WHERE oid = {oid} AND relpersistence = 'u'
UNION ALL
SELECT format('partitioned by %s', pg_get_partkeydef(oid)) FROM pg_class WHERE oid = {oid} AND relkind = 'p'
UNION ALL
SELECT option FROM pg_class CROSS JOIN unnest(reloptions) AS option WHERE oid = {oid}
UNION ALL
SELECT format('toast.%s', option) FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid
CROSS JOIN unnest(t.reloptions) AS option WHERE c.oid = {oid}
"""

COLUMNS: LiteralString = """
SELECT concat_ws(' ', quote_ident(attname), format_type(atttypid, atttypmod),
                 'collate ' || nullif(attcollation, 0)::regcollation::text, CASE WHEN attnotnull THEN 'not null' END,
                 'identity ' || nullif(attidentity::text, ''), 'generated ' || nullif(attgenerated::text, ''),
                 'default ' || pg_get_expr(adbin, adrelid), 'storage ' || attstorage::text,
                 'compression ' || nullif(attcompression::text, ''))
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""

CHECKS: LiteralString = """
SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE conrelid = {oid} AND contype IN ('c', 'n') ORDER BY contype, conname
"""

INDEXES: LiteralString = """
SELECT concat_ws(' ', pg_get_indexdef(i.indexrelid), 'tablespace ' || quote_ident(s.spcname),
                 'constraint ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid))
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x')
LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
WHERE i.indrelid = {oid} AND i.indisvalid ORDER BY c.relname
"""

STATISTICS: LiteralString = """
SELECT format('%s owner %I', pg_get_statisticsobjdef(oid), pg_get_userbyid(stxowner))
FROM pg_statistic_ext WHERE stxrelid = {oid} ORDER BY 1
"""

FOREIGN_KEYS: LiteralString = """
SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE conrelid = {oid} AND contype = 'f' AND conparentid = 0 ORDER BY conname
"""

IDENTITIES: LiteralString = """
SELECT format('%s of %I as %s from %s by %s within %s and %s, cache %s, cycle %s', s.seqrelid::regclass, a.attname,
              s.seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle)
FROM pg_depend d JOIN pg_sequence s ON s.seqrelid = d.objid
JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = {oid}
  AND d.deptype = 'i' ORDER BY a.attnum
"""

SHAPE: Final[Mapping[str, LiteralString]] = {
    "storage": STORAGE,
    "columns": COLUMNS,
    "checks": CHECKS,
    "indexes": INDEXES,
    "extended statistics": STATISTICS,
    "foreign keys": FOREIGN_KEYS,
    "identities": IDENTITIES,
}
