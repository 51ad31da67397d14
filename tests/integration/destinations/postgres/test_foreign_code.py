"""Code of other people in the destination does not run with the rights of a load when a hook runs its SQL."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from hakiri_dagster.errors import DestinationError, UnsafeSql
from hakiri_dagster.quality.measures import Orphans, Unanswered, Violations
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order

RAW_ORDERS = ("raw", "orders")

_THEIRS = """
CREATE FUNCTION bi.up() RETURNS int LANGUAGE plpgsql VOLATILE AS
    $$ BEGIN ALTER ROLE analyst SUPERUSER; RETURN 1; END $$;
CREATE FUNCTION bi.evil() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ DECLARE x int; BEGIN
    IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN SELECT bi.up() INTO x; END IF;
    RETURN 1; END $$;
CREATE FUNCTION bi.evil(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN bi.evil(); END $$;
CREATE FUNCTION bi.abs(text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT bi.evil()';
CREATE FUNCTION bi.both(text, text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT bi.evil()';
CREATE OPERATOR bi.+ (LEFTARG = text, RIGHTARG = text, FUNCTION = bi.both);
CREATE FUNCTION bi.gap(int, int) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT bi.evil()::float8';
CREATE TYPE bi.span AS RANGE (subtype = int, subtype_diff = bi.gap);
CREATE TABLE bi.plain (a int, b int)
"""

_HIDDEN = {
    "a view": "CREATE VIEW bi.t AS SELECT bi.evil() AS a",
    "a materialized view": "CREATE MATERIALIZED VIEW bi.t AS SELECT bi.evil() AS a",
    "an index expression": "CREATE TABLE bi.t (a int); CREATE INDEX ON bi.t ((a + bi.evil()))",
    "an index predicate": "CREATE TABLE bi.t (a int); CREATE INDEX ON bi.t (a) WHERE bi.evil() = 1",
    "a check": "CREATE TABLE bi.t (a int CHECK (a > bi.evil()))",
    "statistics": "CREATE TABLE bi.t (a int, b int); CREATE STATISTICS bi.s ON (a + bi.evil()), b FROM bi.t",
    "a type": "CREATE TABLE bi.t (a int, s bi.span)",
    "an array of a type": "CREATE TABLE bi.t (a int, s bi.span[])",
    "a domain": "CREATE DOMAIN bi.d AS int CHECK (VALUE > bi.evil()); CREATE TABLE bi.t (a bi.d)",
    "a generated column": "CREATE TABLE bi.t (a int, b int GENERATED ALWAYS AS (a + bi.evil()) STORED)",
    "a partition key": "CREATE TABLE bi.t (a int) PARTITION BY RANGE (bi.evil(a))",
    "a policy": "CREATE TABLE bi.t (a int); CREATE POLICY p ON bi.t USING (a > bi.evil());"
    "ALTER TABLE bi.t ENABLE ROW LEVEL SECURITY",
    "a partition": "CREATE TABLE bi.t (a int) PARTITION BY RANGE (a);"
    "CREATE TABLE bi.low PARTITION OF bi.t FOR VALUES FROM (0) TO (9); CREATE INDEX ON bi.low ((a + bi.evil()))",
    "a child": "CREATE TABLE bi.t (a int); CREATE TABLE bi.c () INHERITS (bi.t); CREATE TABLE bi.d () INHERITS (bi.c);"
    "CREATE INDEX ON bi.d ((a + bi.evil()))",
}


@pytest.fixture
def shop(make_shop: MakeShop) -> Iterator[Shop]:
    """With an analyst, who has no right but to do as she likes in the schema bi."""
    shop = make_shop()
    shop.publish([order(1)])
    shop.query("CREATE ROLE analyst; CREATE SCHEMA bi AUTHORIZATION analyst")
    by_analyst(shop, _THEIRS)
    yield shop
    shop.query("DROP OWNED BY analyst CASCADE; DROP ROLE analyst")


def by_analyst(shop: Shop, statements: str) -> None:
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute("SET ROLE analyst")
        connection.execute(statements)


def by_hooks(shop: Shop, *statements: str) -> list[str]:
    with shop.destination.hook_session(shop.table, None) as session:
        return [line for statement in statements for line in session.execute(statement, RAW_ORDERS)]


def is_superuser(shop: Shop) -> bool:
    return shop.query("SELECT rolsuper FROM pg_roles WHERE rolname = 'analyst'") == [(True,)]


@pytest.mark.parametrize("where", _HIDDEN)
def test_a_relation_with_code_of_others_in_it_is_not_planned(shop: Shop, where: str) -> None:
    by_analyst(shop, _HIDDEN[where])
    with pytest.raises(UnsafeSql, match=r"a SELECT from bi\.\w+ is not allowed: it (needs|has|is)"):
        by_hooks(shop, "EXPLAIN SELECT a FROM {table} CROSS JOIN (SELECT * FROM bi.t WHERE a = 1) AS x")
    assert not is_superuser(shop)


@pytest.mark.parametrize("what", ["abs('x'::text)", "'x'::text + 'y'::text"])
def test_no_search_path_makes_an_harmless_select_call_what_is_not_of_postgresql(shop: Shop, what: str) -> None:
    with pytest.raises(DestinationError):
        by_hooks(shop, "SET search_path = bi", f"EXPLAIN SELECT {what}")
    assert not is_superuser(shop)


@pytest.mark.parametrize("where", _HIDDEN)
def test_nothing_of_it_runs_when_a_column_refers_to_it(shop: Shop, where: str) -> None:
    """Neither when it is asked, nor before."""
    by_analyst(shop, _HIDDEN[where])
    measure = Orphans("id", "bi", "t", "a")
    doubts = shop.destination.doubts(shop.table, (measure,), None)
    answer = shop.destination.ask(shop.table, (measure,))[measure]
    assert not is_superuser(shop)
    if where in ("a type", "an array of a type"):  # of another column
        assert (doubts, answer) == ((), Violations(1, ("1",)))
        return
    assert isinstance(answer, Unanswered)
    assert "it is not asked: a SELECT from bi." in answer.reason
    assert [doubt.reason.partition(" a SELECT")[0] for doubt in doubts] == ["id cannot refer to bi.t:"]


def test_an_operator_that_fits_better_than_postgresqls_own_is_not_asked(shop: Shop) -> None:
    """Where names are looked up, somebody else may make things; planning runs what can be folded."""
    shop.query("GRANT CREATE ON SCHEMA public TO analyst")
    by_analyst(
        shop,
        "CREATE TABLE bi.t (a varchar);"
        "CREATE FUNCTION public.same(varchar, text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT bi.evil() = 1';"
        "CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = text, FUNCTION = public.same)",
    )
    measure = Orphans("customer", "bi", "t", "a")
    assert shop.destination.doubts(shop.table, (measure,), None) == ()
    assert isinstance(shop.destination.ask(shop.table, (measure,))[measure], Violations)
    assert not is_superuser(shop)


def test_what_is_explained_stays_as_it_was_judged(shop: Shop) -> None:
    """The lock that is waited for is another's index, made between the judgement and the plan."""
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'bi.plain'::regclass"
    with ThreadPoolExecutor(1) as workers, psycopg.connect(shop.url) as analyst:
        analyst.execute("SET ROLE analyst")
        analyst.execute("CREATE INDEX ON bi.plain ((a + bi.evil()))")
        explained = workers.submit(by_hooks, shop, "EXPLAIN SELECT * FROM bi.plain WHERE a = 1")
        while shop.query(waits) == [(0,)]:
            assert not explained.done()
        analyst.commit()
        with pytest.raises(UnsafeSql, match=r"it needs the function bi\.evil\(\)"):
            explained.result(30)
    assert not is_superuser(shop)


def test_what_is_postgresqls_own_is_explained(shop: Shop) -> None:
    shop.query(
        "CREATE TABLE raw.days (id bigint, day date, word text, CHECK (id > 0)) PARTITION BY RANGE (day);"
        "CREATE TABLE raw.days_1 PARTITION OF raw.days FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');"
        "CREATE INDEX ON raw.days (lower(word)) WHERE id > abs(-1);"
        "CREATE INDEX ON raw.days USING gin (to_tsvector('simple', word));"
        "CREATE STATISTICS raw.of_days ON (id + 1), day FROM raw.days;"
        "CREATE UNIQUE INDEX ON raw.orders (id) WHERE amount > 0;"
        "ALTER TABLE raw.orders ADD COLUMN twice bigint GENERATED ALWAYS AS (id * 2) STORED,"
        " ADD COLUMN three int DEFAULT bi.evil()"
    )
    lines = by_hooks(
        shop,
        "SET search_path = bi",
        "EXPLAIN SELECT * FROM {table} AS o JOIN raw.days AS d USING (id) WHERE lower(word) = 'x'",
    )
    assert any("days_1" in line for line in lines)


def test_an_harmless_select_leaves_nothing_behind(shop: Shop) -> None:
    with shop.destination.hook_session(shop.table, None) as session:
        session.execute("SET search_path = raw", RAW_ORDERS)
        session.execute("EXPLAIN SELECT * FROM {table}", RAW_ORDERS)
        session.execute("ANALYZE orders", RAW_ORDERS)
    assert shop.query("SELECT relname FROM pg_stat_user_tables WHERE last_analyze IS NOT NULL") == [("orders",)]


@pytest.mark.parametrize(
    "statement",
    [
        "ANALYZE",
        "ANALYZE bi.t",
        "VACUUM bi.t",
        "VACUUM (FULL, ANALYZE) bi.t",
        "CLUSTER bi.t USING by_evil",
        "REINDEX TABLE bi.t",
        "REINDEX TABLE CONCURRENTLY bi.t",
        "REINDEX SCHEMA bi",
        "REFRESH MATERIALIZED VIEW bi.m",
        "REFRESH MATERIALIZED VIEW CONCURRENTLY bi.m",
    ],
)
def test_postgresql_runs_the_code_of_an_owner_as_the_owner_in_maintenance(shop: Shop, statement: str) -> None:
    """What hooks rely on. A plain VACUUM runs none of it."""
    by_analyst(
        shop,
        "CREATE TABLE bi.ran (by_whom name);"
        "CREATE FUNCTION bi.tell() RETURNS int LANGUAGE plpgsql VOLATILE AS"
        " $$ BEGIN INSERT INTO bi.ran VALUES (current_user); RETURN 1; END $$;"
        "CREATE OR REPLACE FUNCTION bi.evil(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS"
        " $$ DECLARE x int; BEGIN SELECT bi.tell() INTO x; RETURN bi.evil() + $1; END $$;"
        "CREATE TABLE bi.t (a int, b int CHECK (b > bi.evil() - 9));"
        "INSERT INTO bi.t SELECT i, i FROM generate_series(1, 50) AS i;"
        "CREATE INDEX by_evil ON bi.t (bi.evil(a)); CREATE INDEX ON bi.t (b) WHERE bi.evil() = 1;"
        "CREATE STATISTICS bi.s ON (bi.evil(a)), b FROM bi.t;"
        "CREATE MATERIALIZED VIEW bi.m AS SELECT a, bi.evil(a) AS e FROM bi.t; CREATE UNIQUE INDEX ON bi.m (a);"
        "TRUNCATE bi.ran",
    )
    by_hooks(shop, "SET search_path = bi", statement)
    ran_by = [] if statement == "VACUUM bi.t" else [("analyst",)]
    assert shop.query("SELECT DISTINCT by_whom FROM bi.ran") == ran_by
    assert not is_superuser(shop)
