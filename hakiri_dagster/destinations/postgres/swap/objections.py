"""Why a table cannot be exchanged: what would be lost and cannot be made anew. Told before any row moves."""

from __future__ import annotations

from typing import LiteralString

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.swap.grants import HINDRANCES
from hakiri_dagster.destinations.postgres.swap.matviews import materialized_views
from hakiri_dagster.destinations.postgres.swap.partitions import family
from hakiri_dagster.destinations.postgres.swap.portrait import about
from hakiri_dagster.destinations.postgres.swap.rights import RIGHTS

_OF_EACH: LiteralString = """
SELECT inhrelid::bigint, format('it is a partition of %s', inhparent::regclass)
FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
WHERE inhrelid = {oid} AND c.relispartition
UNION ALL
SELECT inhrelid, format('it inherits from %s', inhparent::regclass) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
WHERE inhrelid = ANY({oids}) AND NOT c.relispartition
UNION ALL
SELECT inhparent, format('%s inherits from it', inhrelid::regclass) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
WHERE inhparent = ANY({oids}) AND NOT c.relispartition
UNION ALL
SELECT inhparent, format('its partition %s is being detached; let that end, with DETACH PARTITION … FINALIZE',
                         inhrelid::regclass)
FROM pg_inherits WHERE inhparent = ANY({oids}) AND inhdetachpending
UNION ALL
SELECT oid, 'it is a foreign table' FROM pg_class WHERE oid = ANY({oids}) AND relkind = 'f'
UNION ALL
SELECT indrelid, format('its exclusion constraint %s spans partitions; PostgreSQL cannot put it together from theirs',
                        relname)
FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE indrelid = ANY({oids}) AND indisexclusion AND c.relkind = 'I'
UNION ALL
SELECT confrelid, format('the foreign key %s of %s could not be put on again without looking at all its rows, because '
                         'that is partitioned; PostgreSQL 18 can do it', conname, conrelid::regclass)
FROM pg_constraint JOIN pg_class c ON c.oid = conrelid
WHERE contype = 'f' AND confrelid = ANY({oids}) AND conrelid <> ALL({oids}) AND conparentid = 0 AND relkind = 'p'
  AND current_setting('server_version_num')::int < 180000
UNION ALL
SELECT oid, format('it is a table of the type %s', reloftype::regtype) FROM pg_class
WHERE oid = ANY({oids}) AND reloftype <> 0
UNION ALL
SELECT objid, format('it belongs to %s', pg_describe_object(refclassid, refobjid, 0)) FROM pg_depend
WHERE classid = 'pg_class'::regclass AND objid = ANY({oids}) AND deptype = 'e'
UNION ALL
SELECT objoid, format('it has a security label of %s', provider) FROM pg_seclabel
WHERE classoid = 'pg_class'::regclass AND objoid = ANY({oids})
UNION ALL
SELECT c.oid, format('%s refers to its row type', pg_describe_object(d.classid, d.objid, d.objsubid))
FROM pg_class c JOIN pg_type t ON t.oid = c.reltype
JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray)
WHERE c.oid = ANY({oids}) AND d.deptype <> 'i'
UNION ALL
SELECT d.refobjid, format('%s refers to it', pg_describe_object(d.classid, d.objid, d.objsubid))
FROM pg_depend d
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY({oids}) AND d.deptype IN ('n', 'x')
  AND NOT (d.classid = 'pg_constraint'::regclass
           AND EXISTS (SELECT FROM pg_constraint k
                       WHERE k.oid = d.objid AND (k.conrelid = ANY({oids}) OR k.confrelid = ANY({oids}))))
  AND NOT (d.classid = 'pg_rewrite'::regclass
           AND EXISTS (SELECT FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class
                       WHERE r.oid = d.objid AND v.relkind IN ('v', 'm', 'r', 'p')))
  AND NOT (d.classid = 'pg_trigger'::regclass
           AND EXISTS (SELECT FROM pg_trigger t WHERE t.oid = d.objid AND (t.tgrelid = ANY({oids}) OR t.tgisinternal)))
  AND NOT (d.classid = 'pg_attrdef'::regclass
           AND EXISTS (SELECT FROM pg_attrdef f WHERE f.oid = d.objid AND f.adrelid = ANY({oids})))
  AND d.classid NOT IN ('pg_policy'::regclass, 'pg_proc'::regclass, 'pg_publication_rel'::regclass)
  AND NOT (d.classid = 'pg_class'::regclass AND d.objid IN (SELECT inhrelid FROM pg_inherits))
"""

_OF_MATERIALIZED_VIEWS: LiteralString = """
WITH RECURSIVE reads (reader, kind, populated, relation) AS (
    SELECT DISTINCT v.oid, v.relkind, v.relispopulated, d.refobjid
    FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    JOIN pg_class v ON v.oid = r.ev_class AND v.relkind IN ('v', 'm')
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid <> v.oid),
exchanged (oid) AS (
    SELECT unnest({oids})
  UNION
    SELECT reader FROM exchanged JOIN reads ON relation = exchanged.oid AND kind = 'm'),
view (oid) AS (
    SELECT reader FROM exchanged JOIN reads ON relation = exchanged.oid AND kind = 'v'
  UNION
    SELECT reader FROM view JOIN reads ON relation = view.oid AND kind = 'v')
SELECT {oid}::bigint, format('materialized view %s reads it both itself and through view %s, which holds the old rows '
                             'while it is built anew', reader::regclass, relation::regclass)
FROM reads WHERE reader IN (SELECT oid FROM exchanged) AND relation IN (SELECT oid FROM view)
UNION ALL
SELECT {oid}, format('materialized view %s holds rows and reads materialized view %s, which holds none; refresh that',
                     reader::regclass, relation::regclass)
FROM reads JOIN pg_class read ON read.oid = relation AND read.relkind = 'm' AND NOT read.relispopulated
WHERE populated AND reader IN (SELECT oid FROM exchanged) AND relation IN (SELECT oid FROM exchanged)
"""

# While such a view is built the new rows have no policies yet.
_POLICIES_OF_MATERIALIZED_VIEWS: LiteralString = """
SELECT t.oid::bigint, format('row-level security keeps rows from %I, who owns materialized view %s', rolname,
                             v.oid::regclass)
FROM pg_class t JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid
JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'm' AND v.relispopulated
JOIN pg_roles o ON o.oid = v.relowner
WHERE t.oid = ANY({oids}) AND t.relrowsecurity AND NOT o.rolsuper AND NOT o.rolbypassrls
  AND (t.relforcerowsecurity OR NOT pg_has_role(o.oid, t.relowner, 'USAGE'))
GROUP BY t.oid, o.rolname, v.oid
"""


def objections(connection: Connection, oid: int) -> list[str]:
    members = family(connection, oid)
    queries = (_OF_EACH, _OF_MATERIALIZED_VIEWS, _POLICIES_OF_MATERIALIZED_VIEWS, RIGHTS)
    found = [row for query in queries for row in connection.execute(about(query, *members))]
    views = [view for view, _ in materialized_views(connection, members)]
    found += connection.execute(about(HINDRANCES, *members, *views))
    return [reason if of == oid else f"{_partition(connection, of)}: {reason}" for of, reason in found]


def _partition(connection: Connection, oid: int) -> str:
    row = connection.execute("SELECT %s::oid::regclass::text", (oid,)).fetchone()
    assert row is not None
    return f"its partition {row[0]}"
