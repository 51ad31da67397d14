from __future__ import annotations

import pickle
import threading
from urllib.parse import urlsplit

import psycopg
import pyarrow as pa
import pytest

from hakiri_dagster.connectors.contract import Known
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.errors import SourceError, SourceUnavailable
from hakiri_dagster.planning.chunks import Chunk, Slice, WholeTable

from .conftest import LABEL, Source, no_spark, part, parts_of

SECRET = "s3cr3t-w0rd"
WHOLE = [Slice(Chunk("full", WholeTable()), WholeTable())]


def url_as(source: Source, user: str, password: str) -> str:
    parts = urlsplit(source.url)
    return f"postgresql://{user}:{password}@{parts.hostname}:{parts.port}{parts.path}"


def visitor(source: Source) -> Source:
    """A role without rights, whose password must not be seen anywhere."""
    source.run(
        "DO $$ BEGIN CREATE ROLE visitor LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        f"ALTER ROLE visitor PASSWORD '{SECRET}'",
    )
    return Source(url_as(source, "visitor", SECRET), source.spark)


def test_a_source_that_is_down_may_answer_the_next_try(source: Source) -> None:
    down = Source(f"postgresql://someone:{SECRET}@127.0.0.1:1/shop", source.spark)
    with pytest.raises(SourceUnavailable, match=r"shop/orders: PostgreSQL at 127\.0\.0\.1:1/shop") as raised:
        down.discover("t")
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("user", "database"), [("postgres", None), ("nobody_at_all", None), (None, "no_such_database")]
)
def test_a_wrong_password_user_or_database_is_permanent(source: Source, user: str | None, database: str | None) -> None:
    url = source.url if user is None else url_as(source, user, SECRET)
    if database is not None:
        url = f"{url.rpartition('/')[0]}/{database}"
    with pytest.raises(SourceError, match="hint: check") as raised:
        Source(url, source.spark).discover("t")
    assert raised.value.kind == "permanent"
    assert SECRET not in str(raised.value)


def test_missing_rights_are_told_with_what_to_grant(source: Source) -> None:
    other = visitor(source)
    source.run(
        "CREATE SCHEMA closed", "CREATE TABLE closed.t (id int)",
        "CREATE TABLE t (a int, b int, c int)", "GRANT SELECT (a) ON t TO visitor",
    )  # fmt: skip
    with pytest.raises(SourceError, match=r"permission denied for public\.t, columns b, c\n  hint: grant"):
        other.discover("t")
    with pytest.raises(SourceError, match=r"permission denied for schema 'closed'\n  hint: grant"):
        other.discover("t", schema="closed")
    source.run("DROP TABLE t")


def test_a_table_that_is_not_there_is_told_with_the_name_that_was_meant(source: Source) -> None:
    source.run("CREATE SCHEMA sales", "CREATE TABLE sales.orders (id int)")
    with pytest.raises(SourceError, match=r"no table or view sales\.Orders\n  hint: did you mean `orders`"):
        source.discover("Orders", schema="sales")
    with pytest.raises(SourceError, match="no schema 'sale'\n  hint: did you mean `sales`"):
        source.discover("orders", schema="sale")


def test_a_table_dropped_after_it_was_planned_is_told(source: Source) -> None:
    source.run("CREATE TABLE t (id int)")
    table = source.table("t")
    schema = table.discover(cursor=None, known=Known(), spark=no_spark).schema
    assert schema is not None
    source.run("DROP TABLE t")
    with pytest.raises(SourceError, match=r"no table or view public\.t"):
        table.read(source.spark, schema, None, WHOLE, {})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("ALTER TABLE t DROP COLUMN v", "column 'v' is gone since"),
        ("ALTER TABLE t ALTER v TYPE bigint", "column 'v' was integer and is bigint since"),
    ],
)
def test_a_column_changed_after_it_was_planned_is_told(source: Source, change: str, told: str) -> None:
    source.run("CREATE TABLE t (id int, v int)")
    table = source.table("t")
    schema = table.discover(cursor=None, known=Known(), spark=no_spark).schema
    assert schema is not None
    source.run(change)
    with pytest.raises(SourceError, match=told):
        table.read(source.spark, schema, None, WHOLE, {})


@pytest.mark.parametrize(
    ("change", "told"),
    [("DROP TABLE t", '"public.t" does not exist'), ("ALTER TABLE t DROP COLUMN v", "column .* does not exist")],
)
def test_what_vanishes_before_the_rows_are_read_is_told_from_the_worker(source: Source, change: str, told: str) -> None:
    source.run("CREATE TABLE t (id int, v int)")
    reading = source.read("t")
    source.run(change)
    with pytest.raises(SourceError, match=f"^{LABEL}: PostgreSQL at .*{told}") as raised, translate_spark_errors(LABEL):
        reading.frame.collect()
    assert raised.value.kind == "permanent"


def test_a_statement_that_fails_halfway_is_told_in_the_words_of_the_server(source: Source) -> None:
    source.run(
        "CREATE VIEW v AS SELECT 1 / (n - 100000) AS x, repeat('y', 100) AS pad FROM generate_series(1, 100000) n"
    )
    reading = source.read("v")
    with pytest.raises(SourceError, match="division by zero") as raised, translate_spark_errors(LABEL):
        reading.frame.count()
    assert "SELECT" not in str(raised.value)


def test_a_connection_that_breaks_in_the_middle_is_transient(source: Source) -> None:
    source.run("CREATE TABLE t AS SELECT n AS id, repeat('x', 1000) AS pad FROM generate_series(1, 100000) AS n")
    reading = source.read("t", max_connections=1)
    assert reading.direct is not None
    batches = reading.direct.read(0)
    next(batches)
    source.run(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with pytest.raises(SourceUnavailable):
        for _ in batches:
            pass


def test_a_reading_that_is_left_in_the_middle_closes_its_connection(source: Source) -> None:
    source.run("CREATE TABLE t AS SELECT n AS id, repeat('x', 1000) AS pad FROM generate_series(1, 100000) AS n")
    reading = source.read("t", max_connections=1)
    assert reading.direct is not None
    batches = reading.direct.read(0)
    next(batches)
    batches.close()  # type: ignore[attr-defined]  # a generator, as Spark's worker sees it
    source.run("SET lock_timeout = '10s'", "DROP TABLE t")


def test_an_unpopulated_materialized_view_is_permanent(source: Source) -> None:
    source.run("CREATE MATERIALIZED VIEW m AS SELECT 1 AS id WITH NO DATA")
    with pytest.raises(SourceError, match="has not been populated") as raised, translate_spark_errors(LABEL):
        source.rows("m")
    assert raised.value.kind == "permanent"


def test_text_that_is_not_utf8_stops_the_reading(source: Source) -> None:
    source.run("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    try:
        other = Source(source.url.rpartition("/")[0] + "/ascii", source.spark)
        other.run("CREATE TABLE t AS SELECT 'gr\u00fcn'::text AS good, convert_from('\\xff', 'SQL_ASCII') AS bad")
        with pytest.raises(SourceError, match='/ascii: invalid byte sequence for encoding "UTF8": 0xff'):
            part(other.read("t"), 0)
        other.run("ALTER TABLE t DROP COLUMN bad")
        assert other.rows("t").to_pylist() == [{"good": "grün"}]
    finally:
        source.run("DROP DATABASE ascii WITH (FORCE)")


def test_text_in_another_encoding_arrives_as_it_is_meant(source: Source) -> None:
    source.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        other = Source(source.url.rpartition("/")[0] + "/latin", source.spark)
        other.run('CREATE TABLE "t\u00fc" AS SELECT \'gr\u00fcn\'::text AS "\u00fc"')
        assert other.rows("tü").to_pylist() == [{"ü": "grün"}]
    finally:
        source.run("DROP DATABASE latin WITH (FORCE)")


def test_the_password_is_nowhere_to_be_seen(
    source: Source, many_parts: None, capsys: pytest.CaptureFixture[str]
) -> None:
    other = visitor(source)
    source.run(
        "CREATE TABLE t AS SELECT n AS id, repeat('x', 100) AS pad FROM generate_series(1, 5000) AS n",
        "GRANT SELECT ON t TO visitor",
    )
    reading = other.read("t")
    assert parts_of(reading) > 1
    assert reading.direct is not None
    assert SECRET.encode() in pickle.dumps(reading.direct), "this test would else prove nothing"
    reading.frame.explain("extended")
    shown = [capsys.readouterr().out, repr(reading), repr(reading.direct), repr(other.table("t"))]
    assert len(shown[0]) > 100
    reading.close()
    with pytest.raises(Exception, match="is gone") as raised:  # whatever Spark makes of it
        reading.frame.count()
    shown += [str(raised.value), repr(raised.value), "".join(map(str, other.table("t").lineage))]
    assert not any(SECRET in text for text in shown)
    source.run("DROP TABLE t")


def test_two_readings_at_once_do_not_disturb_each_other(source: Source, many_parts: None) -> None:
    source.run(
        "CREATE TABLE a AS SELECT n AS id, repeat('x', 100) AS pad FROM generate_series(1, 3000) AS n",
        "CREATE TABLE b AS SELECT -n AS id, repeat('x', 100) AS pad FROM generate_series(1, 3000) AS n",
    )
    found: dict[str, pa.Table] = {}

    def read(name: str) -> None:
        found[name] = source.rows(name)

    threads = [threading.Thread(target=read, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found["a"].column("id").to_pylist()) == list(range(1, 3001))
    assert sorted(found["b"].column("id").to_pylist()) == list(range(-3000, 0))


def test_the_source_is_asked_in_transactions_that_cannot_write(source: Source) -> None:
    source.run(
        "CREATE TABLE log (n int)",
        "CREATE FUNCTION note() RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO log VALUES (1) RETURNING n'",
        "CREATE VIEW v AS SELECT note() AS n",
    )
    reading = source.read("v")
    with pytest.raises(SourceError, match="read-only transaction"), translate_spark_errors(LABEL):
        reading.frame.collect()
    with psycopg.connect(source.url) as connection:
        assert connection.execute("SELECT count(*) FROM log").fetchone() == (0,)
