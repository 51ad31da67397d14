"""Values that PostgreSQL's `=` takes for one, or cannot compare, and that are two to whoever reads them."""

from __future__ import annotations

# What the extension citext makes, which the embedded server does not have.
_CITEXT = """
CREATE TYPE citext;
CREATE FUNCTION citextin(cstring) RETURNS citext LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION citextout(citext) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE FUNCTION citextrecv(internal) RETURNS citext LANGUAGE internal STABLE STRICT AS 'textrecv';
CREATE FUNCTION citextsend(citext) RETURNS bytea LANGUAGE internal STABLE STRICT AS 'textsend';
CREATE TYPE citext (INPUT = citextin, OUTPUT = citextout, RECEIVE = citextrecv, SEND = citextsend,
                    STORAGE = extended, CATEGORY = 'S', COLLATABLE = true);
CREATE CAST (citext AS text) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (text AS citext) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE FUNCTION citext_eq(citext, citext) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT
    AS 'SELECT lower($1::text) = lower($2::text)';
CREATE FUNCTION citext_hash(citext) RETURNS integer LANGUAGE sql IMMUTABLE STRICT
    AS 'SELECT pg_catalog.hashtext(lower($1::text))';
CREATE OPERATOR = (LEFTARG = citext, RIGHTARG = citext, FUNCTION = citext_eq, COMMUTATOR = =, HASHES);
CREATE OPERATOR CLASS citext_ops DEFAULT FOR TYPE citext USING hash
    AS OPERATOR 1 =, FUNCTION 1 citext_hash(citext);
"""

THEIR_TYPES = f"""
{_CITEXT}
CREATE DOMAIN span AS interval;
CREATE DOMAIN email AS citext CHECK (VALUE <> '');
CREATE DOMAIN price AS numeric;
CREATE TYPE measured AS (value numeric, documents json[]);
CREATE TYPE mood AS ENUM ('ok', 'OK');
"""

EQUAL_OR_WITHOUT_EQUALITY = [
    ("json", '{"a": 1}', '{"a":1}'),
    ("json[]", '{"{\\"a\\": 1}"}', '{"{\\"a\\":1}"}'),
    ("point", "(1,2)", "(1,3)"),
    ("point[]", '{"(1,2)"}', '{"(1,3)"}'),
    ("jsonb", '{"a": 1.0}', '{"a": 1.00}'),
    ("citext", "Bob@x", "bob@x"),
    ("email", "Bob@x", "bob@x"),
    ("citext[]", "{Bob@x}", "{bob@x}"),
    ("interval", "1 day", "24:00:00"),
    ("interval[]", "{1 day,NULL}", "{24:00:00,NULL}"),
    ("span", "1 mon", "30 days"),
    ("numeric", "1.0", "1.00"),
    ("numeric[]", "{1.0}", "{1.00}"),
    ("price", "1.0", "1.00"),
    ("double precision", "0.0", "-0.0"),
    ("real", "0.0", "-0.0"),
    ("bpchar", "a", "a "),
    ("numrange", "[1.0,2)", "[1.00,2)"),
    ("box", "(2,3),(0,0)", "(3,2),(0,0)"),
    ("measured", '(1.0,"{""1""}")', '(1.00,"{""1""}")'),
    ("mood", "ok", "OK"),
    ("numeric(10,2)", "1.00", "1.01"),
    ("char(3)", "a", "A"),
    ("text", "a", "a "),
]
