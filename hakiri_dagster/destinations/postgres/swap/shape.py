"""What a table has from its making on, and what it must have while its rows come in: compared, not carried out.

Each query answers one line a thing, with names in full; `{oids}` are the tables'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, LiteralString

_STORAGE: LiteralString = """
SELECT format('%s: kind %s, owner %I', oid::regclass, relkind, pg_get_userbyid(relowner)) FROM pg_class
WHERE oid = ANY({oids})
UNION ALL
SELECT format('%s: access method %I', c.oid::regclass, amname) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE c.oid = ANY({oids})
UNION ALL
SELECT format('%s: tablespace %I', c.oid::regclass, spcname)
FROM pg_class c JOIN pg_tablespace s ON s.oid = c.reltablespace WHERE c.oid = ANY({oids})
UNION ALL
SELECT format('%s: as %s', oid::regclass, pg_get_viewdef(oid)) FROM pg_class WHERE oid = ANY({oids}) AND relkind = 'm'
UNION ALL
SELECT format('%s: unlogged', oid::regclass) FROM pg_class WHERE oid = ANY({oids}) AND relpersistence = 'u'
UNION ALL
SELECT format('%s: %s', oid::regclass, option) FROM pg_class CROSS JOIN unnest(reloptions) AS option
WHERE oid = ANY({oids})
UNION ALL
SELECT format('%s: toast.%s', c.oid::regclass, option) FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid
CROSS JOIN unnest(t.reloptions) AS option WHERE c.oid = ANY({oids})
"""

_PARTITIONS: LiteralString = """
SELECT format('%s: by %s', oid::regclass, pg_get_partkeydef(oid)) FROM pg_class
WHERE oid = ANY({oids}) AND relkind = 'p'
UNION ALL
SELECT format('%s: %s %s', inhparent::regclass, inhrelid::regclass, pg_get_expr(c.relpartbound, c.oid))
FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = ANY({oids})
"""

_COLUMNS: LiteralString = """
SELECT concat_ws(' ', attrelid::regclass::text || ':', quote_ident(attname), format_type(atttypid, atttypmod),
                 'collate ' || nullif(attcollation, 0)::regcollation::text, CASE WHEN attnotnull THEN 'not null' END,
                 'identity ' || nullif(attidentity::text, ''), 'generated ' || nullif(attgenerated::text, ''),
                 'default ' || pg_get_expr(adbin, adrelid), 'storage ' || attstorage::text,
                 'compression ' || nullif(attcompression::text, ''),
                 'number ' || row_number() OVER (PARTITION BY attrelid ORDER BY attnum))
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE attrelid = ANY({oids}) AND attnum > 0 AND NOT attisdropped
"""

_CHECKS: LiteralString = """
SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE conrelid = ANY({oids}) AND contype IN ('c', 'n')
"""

# An index of a partitioned table counts even where partitions lack theirs.
_INDEXES: LiteralString = """
SELECT concat_ws(' ', pg_get_indexdef(i.indexrelid), 'tablespace ' || quote_ident(s.spcname),
                 'constraint ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid),
                 'part of ' || h.inhparent::regclass::text, CASE WHEN NOT i.indisvalid THEN 'incomplete' END)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x')
LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
LEFT JOIN pg_inherits h ON h.inhrelid = i.indexrelid
WHERE i.indrelid = ANY({oids}) AND (i.indisvalid OR c.relkind = 'I')
"""

_STATISTICS: LiteralString = """
SELECT format('%s owner %I', pg_get_statisticsobjdef(oid), pg_get_userbyid(stxowner))
FROM pg_statistic_ext WHERE stxrelid = ANY({oids})
"""

_FOREIGN_KEYS: LiteralString = """
SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE conrelid = ANY({oids}) AND contype = 'f' AND conparentid = 0
"""

_IDENTITIES: LiteralString = """
SELECT format('%s of %s.%I as %s from %s by %s within %s and %s, cache %s, cycle %s', s.seqrelid::regclass,
              a.attrelid::regclass, a.attname, s.seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax, seqcache,
              seqcycle)
FROM pg_depend d JOIN pg_sequence s ON s.seqrelid = d.objid
JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY({oids})
  AND d.deptype = 'i'
"""

SHAPE: Final[Mapping[str, LiteralString]] = {
    "storage": _STORAGE,
    "partitions": _PARTITIONS,
    "columns": _COLUMNS,
    "checks": _CHECKS,
    "indexes": _INDEXES,
    "extended statistics": _STATISTICS,
    "foreign keys": _FOREIGN_KEYS,
    "identities": _IDENTITIES,
}
