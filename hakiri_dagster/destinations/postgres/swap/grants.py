"""Rights to relations, each as the statement that gives it in the name of whoever gave it."""

from __future__ import annotations

from typing import LiteralString

_GIVEN: LiteralString = """
WITH RECURSIVE holder (oid, attnum, attname, kind, schema, owner, acl) AS (
    SELECT oid, 0, NULL::name, 'TABLE', relnamespace, relowner, coalesce(relacl, acldefault('r', relowner))
    FROM pg_class WHERE oid = ANY({oids})
  UNION ALL
    SELECT attrelid, attnum, attname, 'TABLE', relnamespace, relowner, attacl
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    WHERE attrelid = ANY({oids}) AND attnum > 0 AND NOT attisdropped
  UNION ALL
    SELECT s.oid, 0, NULL, 'SEQUENCE', relnamespace, relowner, coalesce(relacl, acldefault('s', relowner))
    FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
    WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY({oids})
      AND d.deptype = 'i'),
given AS (
    SELECT *, CASE WHEN grantor <> owner THEN quote_ident(pg_get_userbyid(grantor)) END AS giver,
           CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS receiver
    FROM holder CROSS JOIN LATERAL aclexplode(acl)
         WITH ORDINALITY AS a (grantor, grantee, privilege_type, is_grantable, n))
"""

# Who does not own it gives what they were given. PostgreSQL keeps rights in the order in which each began, which does
# not tell what depends on what where one was extended later: `latest` is the last that must be there before `grantor`
# gives something. Who may give a right to a table may give it to a column.
_TOLD: LiteralString = """,
chain (oid, attnum, privilege_type, role, latest, path) AS (
    SELECT DISTINCT oid, attnum, privilege_type, owner, 0::bigint, ARRAY[owner] FROM given WHERE giver IS NOT NULL
  UNION ALL
    SELECT c.oid, c.attnum, c.privilege_type, g.grantee,
           greatest(latest, CASE WHEN g.attnum = c.attnum THEN g.n ELSE 0 END), path || g.grantee
    FROM chain c JOIN given g ON g.oid = c.oid AND g.attnum IN (0, c.attnum) AND g.privilege_type = c.privilege_type
         AND g.grantor = c.role AND g.is_grantable AND g.grantee <> ALL(path)),
right_to_give AS (
    SELECT DISTINCT ON (oid, attnum, privilege_type, role) oid, attnum, privilege_type, role AS grantor, latest,
           cardinality(path) AS length
    FROM chain ORDER BY oid, attnum, privilege_type, role, latest, length)
SELECT concat('SET LOCAL ROLE ' || giver || '; ',
              'GRANT ', privilege_type, ' (' || quote_ident(attname) || ')', ' ON ', kind, ' ', oid::regclass, ' TO ',
              receiver, CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END,
              CASE WHEN giver IS NOT NULL THEN '; SET LOCAL ROLE ' || ours END)
FROM given LEFT JOIN right_to_give USING (oid, attnum, privilege_type, grantor)
CROSS JOIN (SELECT CASE setting WHEN 'none' THEN 'NONE' ELSE quote_ident(setting) END AS ours
            FROM current_setting('role') AS setting) AS role
ORDER BY attnum, greatest(n, latest), n < latest, length
"""

# A member of the owner, like a superuser, gives everything in the owner's name.
_HINDRANCES: LiteralString = """
SELECT DISTINCT {oid}::bigint, concat(pg_describe_object('pg_class'::regclass, oid, 0),
                                      ' has rights that were given by ', giver, ', ', reason)
FROM given CROSS JOIN LATERAL (VALUES
    (NOT pg_has_role(grantor, CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER'
                              ELSE 'SET' END),
     format('and %1$I is not a member of that role; GRANT %2$s TO %1$I', current_user, giver)),
    (NOT has_schema_privilege(grantor, schema, 'USAGE'),
     format('who may not use the schema; GRANT USAGE ON SCHEMA %s TO %s', schema::regnamespace, giver)),
    (pg_has_role(grantor, owner, 'USAGE'),
     format('who could only give them in the name of the owner %I now; take the grant option from %s, with CASCADE, '
            'and give them as the owner', pg_get_userbyid(owner), giver))) AS hindrance (there, reason)
WHERE giver IS NOT NULL AND there
"""

_TAKEN: LiteralString = """
SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s CASCADE', kind, oid::regclass, receiver) FROM given
"""

GRANTS: LiteralString = _GIVEN + _TOLD
"""In an order in which they can be given."""

REVOKES: LiteralString = _GIVEN + _TAKEN
"""Of all that default privileges give to new relations, and to sequences of their columns."""

HINDRANCES: LiteralString = _GIVEN + _HINDRANCES
"""Why they cannot be given anew, of rights that the owner has not given."""
