"""Rows that the source's row-level security hides from the reading role: named at the plan, or refused."""

from __future__ import annotations

import pytest

from hakiri_dagster.errors import SourceError

from .conftest import Source, part
from .test_failures import WHOLE, visitor

ADVICE = 'read as a role with BYPASSRLS to load all rows, or set row_security = "off" to have such a read fail'


@pytest.fixture
def reader(source: Source) -> Source:
    """The source as a role sees it that may read every table of the test, and has no other rights."""
    reader = visitor(source)
    source.run("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO visitor")
    return reader


def orders(source: Source, *statements: str) -> None:
    source.run(
        "CREATE TABLE orders AS SELECT n AS id, n % 2 AS tenant FROM generate_series(1, 500) AS n",
        *statements,
    )


def test_a_plan_names_the_policies_that_apply_to_the_reading_role(source: Source, reader: Source) -> None:
    orders(
        source,
        "CREATE POLICY mine ON orders FOR SELECT TO visitor USING (tenant = 1)",
        "CREATE POLICY everyone ON orders AS RESTRICTIVE USING (true)",
        "CREATE POLICY writes ON orders FOR UPDATE USING (true)",
        "CREATE POLICY others ON orders FOR SELECT TO pg_monitor USING (true)",
    )
    assert reader.discover("orders").warnings == ()
    source.run("ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
    assert reader.discover("orders", "id").warnings == (
        "row-level security of public.orders decides which rows `visitor` sees, by policy `everyone`, `mine`; "
        + ADVICE,
    )
    assert reader.rows("orders").num_rows == 250
    assert source.discover("orders").warnings == ()


def test_a_role_to_which_no_policy_applies_sees_nothing_and_the_plan_says_so(source: Source, reader: Source) -> None:
    orders(source, "ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
    assert reader.discover("orders").warnings == (
        "row-level security of public.orders hides every row from `visitor`: no policy applies to it; " + ADVICE,
    )


def test_an_owner_is_filtered_where_row_level_security_is_forced(source: Source, reader: Source) -> None:
    orders(source, "ALTER TABLE orders OWNER TO visitor", "ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
    assert reader.discover("orders").warnings == ()
    source.run("ALTER TABLE orders FORCE ROW LEVEL SECURITY")
    assert len(reader.discover("orders").warnings) == 1
    source.run("ALTER ROLE visitor BYPASSRLS")
    try:
        assert reader.discover("orders").warnings == ()
    finally:
        source.run("ALTER ROLE visitor NOBYPASSRLS")


def test_partitions_are_read_by_the_policies_of_the_table_that_is_named(source: Source, reader: Source) -> None:
    source.run(
        "CREATE TABLE t (id int, day int) PARTITION BY RANGE (day)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
        "ALTER TABLE t1 ENABLE ROW LEVEL SECURITY",
    )
    assert reader.discover("t").warnings == ()
    assert reader.rows("t", row_security="off").num_rows == 2
    assert len(reader.discover("t1").warnings) == 1
    source.run("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    assert len(reader.discover("t").warnings) == 1


def test_a_view_reads_as_its_owner_and_a_security_invoker_as_the_reader(source: Source, reader: Source) -> None:
    orders(
        source,
        "CREATE POLICY mine ON orders TO visitor USING (tenant = 1)",
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
        "CREATE VIEW all_orders AS SELECT id FROM orders",
        "CREATE VIEW my_orders WITH (security_invoker = true) AS SELECT id FROM orders",
        "CREATE VIEW outer_orders AS SELECT id FROM my_orders",
        "CREATE VIEW visitors_orders AS SELECT id FROM orders",
        "ALTER VIEW visitors_orders OWNER TO visitor",
    )
    sees = "row-level security of public.orders decides which rows `visitor` sees, by policy `mine`; " + ADVICE
    assert reader.discover("all_orders").warnings == ()
    assert reader.rows("all_orders").num_rows == 500
    for view in ("my_orders", "outer_orders"):
        assert reader.discover(view).warnings == (sees,)
        assert reader.rows(view).num_rows == 250
    assert source.discover("visitors_orders").warnings == (sees,)
    with pytest.raises(SourceError, match="by policy `mine`, and row_security"):
        source.discover("visitors_orders", row_security="off")


def test_with_row_security_off_the_plan_the_driver_and_the_workers_fail(source: Source, reader: Source) -> None:
    orders(source, "CREATE POLICY mine ON orders USING (tenant = 1)")
    table = reader.table("orders", row_security="off")
    schema = reader.discover("orders", row_security="off").schema
    assert schema is not None
    reading = table.read(reader.spark, schema, None, WHOLE, {})
    source.run("ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
    with pytest.raises(SourceError, match=r'by policy `mine`, and row_security is "off"(.|\n)*BYPASSRLS'):
        reader.discover("orders", row_security="off")
    with pytest.raises(SourceError, match=r"would be affected by row-level security policy(.|\n)*BYPASSRLS"):
        table.read(reader.spark, schema, None, WHOLE, {})
    with pytest.raises(SourceError, match=r"would be affected by row-level security policy(.|\n)*BYPASSRLS"):
        part(reading, 0)
