from __future__ import annotations

import pytest

from .conftest import Source, parts_of


def test_names_of_any_kind_are_read_as_they_are(source: Source) -> None:
    schema, table = 'Sch"ema.x', 'Sel"ect; DROP TABLE t --%s {} ü'
    columns = ["order", "a.b", 'q"uote', "with `tick`", "Upper", "upper", "per%cent", "{}", "x" * 63]
    quoted = ['"' + name.replace('"', '""') + '"' for name in (schema, table, *columns)]
    source.run(
        f"CREATE SCHEMA {quoted[0]}",
        f"CREATE TABLE {quoted[0]}.{quoted[1]} ({', '.join(f'{c} int' for c in quoted[2:])})",
        f"INSERT INTO {quoted[0]}.{quoted[1]} VALUES ({', '.join(map(str, range(len(columns))))})",
    )
    for cursor in columns:
        found = source.discover(table, cursor, schema=schema)
        assert found.extent is not None
        assert found.extent.lower == found.extent.upper == columns.index(cursor)
    assert found.schema is not None
    assert [column.name for column in found.schema.columns] == columns
    reading = source.read(table, schema=schema)
    assert [tuple(row) for row in reading.frame.collect()] == [tuple(range(len(columns)))]


def test_an_empty_table_has_columns_and_no_rows(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, at timestamptz)")
    found = source.discover("t", "at")
    assert found.extent is not None
    assert (found.extent.lower, found.extent.upper, found.extent.nulls) == (None, None, 0)
    rows = source.rows("t")
    assert (rows.num_rows, rows.column_names) == (0, ["id", "at"])


def test_the_primary_key_is_told_in_its_own_order(source: Source) -> None:
    source.run("CREATE TABLE t (a int, b int, c int, PRIMARY KEY (c, a) INCLUDE (b))")
    schema = source.discover("t").schema
    assert schema is not None
    assert schema.primary_key == ("c", "a")
    assert [column.nullable for column in schema.columns] == [False, True, False]


def test_dropped_columns_are_not_there_and_generated_ones_are(source: Source) -> None:
    source.run(
        "CREATE TABLE t (a int, gone int, b int GENERATED ALWAYS AS (a * 2) STORED)",
        "ALTER TABLE t DROP COLUMN gone",
        "INSERT INTO t VALUES (4)",
    )
    assert source.rows("t").to_pylist() == [{"a": 4, "b": 8}]


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_views_are_read_like_tables(source: Source, kind: str, many_parts: None) -> None:
    source.run(
        "CREATE TABLE t AS SELECT n AS id, repeat('x', 100) AS pad FROM generate_series(1, 2000) AS n",
        f"CREATE {kind} v AS SELECT id, pad FROM t WHERE id > 1000",
    )
    assert sorted(source.rows("v").column("id").to_pylist()) == list(range(1001, 2001))


def test_a_view_may_call_functions_that_rely_on_the_search_path(source: Source) -> None:
    source.run(
        "CREATE TABLE rates (r int)",
        "INSERT INTO rates VALUES (7)",
        "CREATE FUNCTION rate() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT r FROM rates); END $$",
        "CREATE VIEW v AS SELECT rate() AS at_rate",
    )
    found = source.discover("v", "at_rate")
    assert found.extent is not None
    assert found.extent.upper == 7
    assert source.rows("v").to_pylist() == [{"at_rate": 7}]


def test_a_partitioned_table_is_read_in_parts_whatever_the_sizes_of_its_partitions(
    source: Source, many_parts: None
) -> None:
    source.run(
        "CREATE TABLE t (id int, pad text) PARTITION BY RANGE (id)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (5000) PARTITION BY RANGE (id)",
        "CREATE TABLE t3 PARTITION OF t2 FOR VALUES FROM (10) TO (5000)",
        "CREATE TABLE t4 PARTITION OF t DEFAULT",
        "INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(0, 4999) AS n",
        "ANALYZE t",
    )
    assert source.discover("t").rows_estimate == 5000
    reading = source.read("t")
    assert parts_of(reading) == 8
    assert sorted(row.id for row in reading.frame.select("id").collect()) == list(range(5000))
    reading.close()


def test_a_table_with_children_is_read_with_them(source: Source, many_parts: None) -> None:
    source.run(
        "CREATE TABLE t (id int)",
        "CREATE TABLE child () INHERITS (t)",
        "INSERT INTO child SELECT generate_series(1, 3000)",
        "INSERT INTO t SELECT generate_series(3001, 3100)",
    )
    assert sorted(source.rows("t").column("id").to_pylist()) == list(range(1, 3101))


def test_a_foreign_table_is_described_and_never_cut_by_blocks(source: Source) -> None:
    source.run(
        "CREATE FOREIGN DATA WRAPPER elsewhere",
        "CREATE SERVER far FOREIGN DATA WRAPPER elsewhere",
        "CREATE FOREIGN TABLE f (id int NOT NULL) SERVER far",
    )
    schema = source.discover("f").schema
    assert schema is not None
    assert [(c.name, c.nullable) for c in schema.columns] == [("id", False)]


def test_a_large_table_is_read_in_parts_and_a_small_one_in_one(source: Source, many_parts: None) -> None:
    source.run(
        "CREATE TABLE large AS SELECT n AS id, repeat('x', 100) AS pad FROM generate_series(1, 5000) AS n",
        "CREATE TABLE small AS SELECT 1 AS id",
    )
    large, small = source.read("large", max_connections=3), source.read("small")
    assert (parts_of(large), parts_of(small)) == (3, 1)
    ids = [row.id for row in large.frame.select("id").collect()]
    assert sorted(ids) == list(range(1, 5001))
    large.close()
    small.close()


def test_a_table_of_a_thousand_columns_is_read(source: Source) -> None:
    names = [f"c{n}" for n in range(1000)]
    source.run(
        f"CREATE TABLE wide ({', '.join(f'{n} int' for n in names)})",
        f"INSERT INTO wide VALUES ({', '.join(map(str, range(1000)))})",
    )
    assert source.rows("wide").to_pylist() == [{f"c{n}": n for n in range(1000)}]
