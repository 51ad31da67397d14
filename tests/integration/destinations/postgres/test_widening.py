"""Columns that get a wider type: without a rewrite where PostgreSQL needs none, in between those who read."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from hakiri_dagster.destinations.postgres import widening
from hakiri_dagster.destinations.postgres.widening_cost import is_catalog_only
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.load_spec import LoadMode
from hakiri_dagster.planning.columns import Column, SourceSchema
from hakiri_dagster.planning.evolution import Widening
from hakiri_dagster.planning.source_types import holds, postgres_type
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.killing_proxy import KillingProxy
from tests.integration.destinations.postgres.scenario import Shop, five_at_once, make_table
from tests.integration.destinations.postgres.workers import WORKERS

MODES: list[LoadMode] = ["append", "truncate", "upsert", "blue_green", "delete_missing"]
CATALOG_ONLY = [
    ("varchar(10)", "varchar(20)"), ("varchar(10)", "text"), ("varchar(10)", "varchar"),
    ("numeric(10,2)", "numeric(12,2)"), ("numeric(10,2)", "numeric"), ("timestamp(3)", "timestamp"),
    ("timestamptz(0)", "timestamptz(3)"), ("time(0)", "time"), ("interval(0)", "interval"),
    ("varbit(4)", "varbit(8)"), ("cidr", "inet"),
]  # fmt: skip
REWRITTEN = [
    ("integer", "bigint"), ("integer", "numeric"), ("real", "double precision"), ("date", "timestamp"),
    ("numeric(10,2)", "numeric(12,4)"), ("char(3)", "varchar(3)"), ("integer[]", "bigint[]"),
]  # fmt: skip


def shop_with(make_shop: MakeShop, before: str, after: str, mode: LoadMode = "append", **changes: Any) -> Shop:
    """One column of the source has changed from one type to another; the target was made for the first."""
    shop = make_shop(mode, schema=_schema(before), cursor=None, **{"upsert_key": ("id",), **changes})
    shop.ensure()
    shop.schema = _schema(after)
    return shop


def _schema(kind: str) -> SourceSchema:
    return SourceSchema((Column("id", "bigint"), Column("v", "string", native_type=kind)))


def widened(shop: Shop, before: str, after: str, *, accepted: bool = False) -> Any:
    wider = Widening("v", postgres_type(before), postgres_type(after), accepted)
    return shop.destination.ensure_target(shop.table, shop.schema, with_file_hash=False, widened=[wider])


def planned(shop: Shop, before: str, after: str, *, accepted: bool = False) -> list[tuple[str, bool, str | None]]:
    wider = Widening("v", postgres_type(before), postgres_type(after), accepted)
    changes = shop.destination.planned_changes(shop.table, shop.schema, widened=[wider])
    return [(change.description, change.refused, change.column) for change in changes]


def type_of_v(shop: Shop) -> str:
    query = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'raw.orders'::regclass"
    return str(shop.query(f"{query} AND attname = 'v'")[0][0])


def node(shop: Shop) -> Any:
    return shop.query("SELECT pg_relation_filenode('raw.orders')")


@pytest.mark.parametrize(("before", "after"), CATALOG_ONLY)
def test_a_table_is_not_rewritten_where_the_catalog_alone_changes(make_shop: MakeShop, before: str, after: str) -> None:
    shop = shop_with(make_shop, before, after)
    shop.query("INSERT INTO raw.orders (id) SELECT generate_series(1, 100)")
    was = node(shop)
    ((told, refused, _),) = planned(shop, before, after)
    assert not refused
    assert "rewritten" not in told
    widened(shop, before, after)
    assert postgres_type(type_of_v(shop)) == postgres_type(after)
    assert node(shop) == was
    assert planned(shop, before, after) == [], "it is done once"


@pytest.mark.parametrize(("before", "after"), REWRITTEN)
def test_a_rewrite_is_told(make_shop: MakeShop, before: str, after: str) -> None:
    shop = shop_with(make_shop, before, after)
    shop.query("INSERT INTO raw.orders (id) SELECT generate_series(1, 100); ANALYZE raw.orders")
    ((told, refused, _),) = planned(shop, before, after)
    assert not refused
    assert "the table of about 100 rows (0 MiB) is rewritten, and nobody can read it meanwhile" in told
    was = node(shop)
    widened(shop, before, after)
    assert postgres_type(type_of_v(shop)) == postgres_type(after)
    assert node(shop) != was


@pytest.mark.parametrize(("before", "after"), [*CATALOG_ONLY, *REWRITTEN])
def test_every_case_is_a_widening(before: str, after: str) -> None:
    assert holds(postgres_type(after), postgres_type(before))
    assert is_catalog_only(postgres_type(before), postgres_type(after)) == ((before, after) in CATALOG_ONLY)


READ_THROUGH = [
    ("CREATE INDEX i ON raw.orders (id) WHERE v <> ''", "the index raw.i"),
    ("CREATE INDEX i ON raw.orders (v) WHERE id > 0", "the index raw.i"),
    ("CREATE INDEX i ON raw.orders (id) INCLUDE (v) WHERE id > 0", "the index raw.i"),
    ("CREATE INDEX i ON raw.orders ((lower(v)))", "the index raw.i"),
    ("CREATE INDEX i ON raw.orders ((id + 1), v)", "the index raw.i"),
    ("ALTER TABLE raw.orders ADD EXCLUDE USING btree (v WITH =) WHERE (id > 0)", "the index raw.orders_v_excl"),
    ("ALTER TABLE raw.orders ADD CONSTRAINT c CHECK (id > 0 OR v > '')", "the check c"),
    ("ALTER TABLE raw.orders ADD CONSTRAINT c CHECK (v > ''); CREATE INDEX i ON raw.orders ((v IS NULL))",
     "the check c and the index raw.i"),
]  # fmt: skip
LEFT_ALONE = [
    "CREATE INDEX ON raw.orders (v)",
    "CREATE UNIQUE INDEX ON raw.orders (id) INCLUDE (v)",
    "CREATE INDEX ON raw.orders (v text_pattern_ops)",
    "CREATE INDEX ON raw.orders ((id + 1)) WHERE id > 0",
    "ALTER TABLE raw.orders ADD CHECK (v > '') NOT VALID",
    "ALTER TABLE raw.orders ADD CHECK (id > 0)",
    "ALTER TABLE raw.orders ALTER v SET NOT NULL",
]


@pytest.mark.parametrize(("made", "what"), READ_THROUGH)
def test_what_a_table_is_read_through_for_is_told(make_shop: MakeShop, made: str, what: str) -> None:
    shop = shop_with(make_shop, "varchar(10)", "text")
    shop.query(f"INSERT INTO raw.orders (id, v) SELECT n, n FROM generate_series(1, 100) AS n; {made}")
    shop.query("ANALYZE raw.orders")
    ((told, refused, _),) = planned(shop, "varchar(10)", "text")
    assert not refused
    assert told == (
        "alter column v of raw.orders from character varying(10) to text: the table of about 100 rows (0 MiB) is read "
        f"through for {what}, and nobody can read it meanwhile"
    )
    assert is_read_through(shop, "text")


@pytest.mark.parametrize("made", LEFT_ALONE)
def test_nothing_is_told_where_no_row_is_read(make_shop: MakeShop, made: str) -> None:
    shop = shop_with(make_shop, "varchar(10)", "text")
    shop.query(f"INSERT INTO raw.orders (id, v) SELECT n, n FROM generate_series(1, 100) AS n; {made}")
    ((told, _, _),) = planned(shop, "varchar(10)", "text")
    assert told == "alter column v of raw.orders from character varying(10) to text"
    assert not is_read_through(shop, "text")


def is_read_through(shop: Shop, after: str) -> bool:
    """As PostgreSQL itself tells."""
    said: list[str] = []
    with psycopg.connect(shop.url) as connection:
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        connection.execute("SET LOCAL client_min_messages = debug1")
        connection.execute(f"ALTER TABLE raw.orders ALTER v TYPE {after}".encode())
        connection.rollback()
    return any(text.startswith(("building index", "verifying table")) and "pg_toast" not in text for text in said)


@pytest.mark.parametrize("mode", ["truncate", "blue_green"])
def test_a_load_that_empties_the_target_rewrites_nothing(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = shop_with(make_shop, "integer", "bigint", mode, primary_key=("id",))
    shop.query("INSERT INTO raw.orders (id, v) SELECT n, n FROM generate_series(1, 100) AS n")
    shop.query("CREATE INDEX by_v ON raw.orders (v); ALTER TABLE raw.orders ADD CHECK (v > 0)")
    ((told, _, _),) = planned(shop, "integer", "bigint")
    assert told == "alter column v of raw.orders from integer to bigint, when the load has emptied it"
    was = node(shop)
    target = widened(shop, "integer", "bigint")
    assert target.retyped == (("v", "bigint"),)
    assert (type_of_v(shop), node(shop)) == ("integer", was), "before the load nothing happens"
    load = _load(shop, target)
    prepared = shop.destination.prepare(load, shop.candidate(load, [(1, "5000000000")]))
    assert type_of_v(shop) == "integer"
    prepared.undo()
    assert type_of_v(shop) == "integer"
    again = _load(shop, target)
    shop.destination.prepare(again, shop.candidate(again, [(1, "5000000000")])).publish(None, 0)
    assert shop.query("SELECT id, v FROM raw.orders") == [(1, 5_000_000_000)]
    assert type_of_v(shop) == "bigint"
    assert shop.query("SELECT indexdef FROM pg_indexes WHERE indexname = 'by_v'")
    assert shop.query("SELECT 1 FROM pg_constraint WHERE contype = 'c' AND conrelid = 'raw.orders'::regclass")


def _load(shop: Shop, target: Any) -> Any:
    return replace(shop.load(), target=target)


def test_a_type_that_somebody_chose_is_kept(make_shop: MakeShop) -> None:
    shop = shop_with(make_shop, "integer", "bigint")
    for chosen in ("smallint", "text", "double precision", "numeric"):
        shop.query(f"ALTER TABLE raw.orders ALTER v TYPE {chosen} USING NULL")
        assert planned(shop, "integer", "bigint") == []


def test_a_view_on_the_column_is_in_the_way_until_somebody_keeps_the_type(make_shop: MakeShop) -> None:
    shop = shop_with(make_shop, "integer", "bigint")
    shop.query('CREATE VIEW raw."a view" AS SELECT v + 1 AS w FROM raw.orders; CREATE VIEW raw.other AS '
               "SELECT id FROM raw.orders")  # fmt: skip
    ((told, refused, column),) = planned(shop, "integer", "bigint")
    assert (refused, column) == (True, "v")
    assert told.startswith("cannot alter column v of raw.orders from integer to bigint, because of the view")
    assert 'raw."a view"' in told
    assert "other" not in told
    assert "permit it: hakiri schema accept shop --table orders --column v" in told
    with pytest.raises(DestinationError, match="because of the view"):
        widened(shop, "integer", "bigint")
    assert planned(shop, "integer", "bigint", accepted=True) == []
    widened(shop, "integer", "bigint", accepted=True)
    assert type_of_v(shop) == "integer"


@pytest.mark.parametrize(
    ("made", "what"),
    [
        ("CREATE MATERIALIZED VIEW raw.m AS SELECT v FROM raw.orders", "the materialized view raw.m"),
        ("ALTER TABLE raw.orders ADD g int GENERATED ALWAYS AS (v + 1) STORED", "the generated column g"),
        ("CREATE POLICY p ON raw.orders USING (v > 0)", "the policy p"),
        ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER t BEFORE "
         "UPDATE OF v ON raw.orders FOR EACH ROW WHEN (OLD.v > 0) EXECUTE FUNCTION f()", "the trigger t"),
        ("CREATE PUBLICATION b FOR TABLE raw.orders WHERE (v > 0)", "the condition of the publication b"),
        ("CREATE RULE r AS ON DELETE TO raw.orders WHERE OLD.v > 0 DO INSTEAD NOTHING", "a rule on raw.orders"),
    ],
)  # fmt: skip
def test_whatever_postgresql_would_refuse_is_told_before_a_row_moves(make_shop: MakeShop, made: str, what: str) -> None:
    shop = shop_with(make_shop, "integer", "bigint")
    shop.query(made)
    ((told, refused, _),) = planned(shop, "integer", "bigint")
    assert refused
    assert what in told


def test_a_partition_key_is_told(make_shop: MakeShop) -> None:
    shop = make_shop("append", schema=_schema("integer"), cursor=None)
    shop.query("CREATE SCHEMA raw; CREATE TABLE raw.orders (id bigint, v int) PARTITION BY RANGE (v)")
    shop.ensure()
    ((told, refused, _),) = planned(shop, "integer", "bigint")
    assert refused
    assert "the partition key" in told


def test_a_big_table_is_rewritten_only_when_somebody_says_so(
    make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(widening, "BIG_BYTES", 8192)
    shop = shop_with(make_shop, "integer", "bigint")
    shop.query("INSERT INTO raw.orders (id) SELECT generate_series(1, 1000)")
    ((told, refused, column),) = planned(shop, "integer", "bigint")
    assert (refused, column) == (True, "v")
    assert "is rewritten, and nobody can read it meanwhile; load it with mode blue_green or truncate, or permit" in told
    assert type_of_v(shop) == "integer"
    widened(shop, "integer", "bigint", accepted=True)
    assert type_of_v(shop) == "bigint"
    shop_ = shop_with(make_shop, "varchar(3)", "text", target_name="texts")
    shop_.query("INSERT INTO raw.texts (id) SELECT generate_series(1, 1000)")
    assert [refused for _, refused, _ in planned(shop_, "varchar(3)", "text")] == [False], "nothing is rewritten"


@pytest.mark.parametrize("made", [READ_THROUGH[0][0], READ_THROUGH[-2][0]])
def test_a_big_table_is_read_through_only_when_somebody_says_so(
    make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    monkeypatch.setattr(widening, "BIG_BYTES", 8192)
    shop = shop_with(make_shop, "varchar(10)", "text")
    shop.query(f"INSERT INTO raw.orders (id) SELECT generate_series(1, 1000); {made}")
    ((told, refused, column),) = planned(shop, "varchar(10)", "text")
    assert (refused, column) == (True, "v")
    assert (
        "and nobody can read it meanwhile; drop what it is read for and make it again after the next load, load it "
        "with mode blue_green or truncate, or permit it: hakiri schema accept"
    ) in told
    with pytest.raises(DestinationError, match="is read through for"):
        widened(shop, "varchar(10)", "text")
    assert type_of_v(shop) == "character varying(10)"
    widened(shop, "varchar(10)", "text", accepted=True)
    assert type_of_v(shop) == "text"


def test_indexes_of_a_partitioned_table_are_built_anew(make_shop: MakeShop) -> None:
    shop = partitioned(make_shop, "varchar(10)", "text")
    ((told, _, _),) = planned(shop, "varchar(10)", "text")
    assert "read through" not in told
    shop.query("CREATE INDEX by_v ON raw.orders (v)")
    ((told, _, _),) = planned(shop, "varchar(10)", "text")
    assert "is read through for the index raw.by_v, and nobody can read it meanwhile" in told
    assert is_read_through(shop, "text")


def partitioned(make_shop: MakeShop, before: str = "integer", after: str = "bigint") -> Shop:
    shop = shop_with(make_shop, before, after)
    shop.query(
        "DROP TABLE raw.orders;"
        f"CREATE TABLE raw.orders (id bigint, v {before}, _hakiri_load_id bigint) PARTITION BY RANGE (id);"
        f"CREATE TABLE raw.few (v {before}, id bigint, _hakiri_load_id bigint);"
        "ALTER TABLE raw.orders ATTACH PARTITION raw.few FOR VALUES FROM (0) TO (9999);"
        "CREATE INDEX ON raw.orders USING brin (_hakiri_load_id)"
    )
    return shop


def test_a_partitioned_table_is_as_big_as_its_partitions(make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(widening, "BIG_BYTES", 8192)
    shop = partitioned(make_shop)
    shop.query("INSERT INTO raw.orders (id) SELECT generate_series(1, 1000)")
    assert [refused for _, refused, _ in planned(shop, "integer", "bigint")] == [True]
    widened(shop, "integer", "bigint", accepted=True)
    assert type_of_v(shop) == "bigint"


def test_a_view_of_a_partition_is_in_the_way_alike(make_shop: MakeShop) -> None:
    shop = partitioned(make_shop)
    shop.query("CREATE VIEW raw.seen AS SELECT id FROM raw.few")
    assert [refused for _, refused, _ in planned(shop, "integer", "bigint")] == [False]
    shop.query("CREATE VIEW raw.values AS SELECT v FROM raw.few")
    ((told, refused, _),) = planned(shop, "integer", "bigint")
    assert refused
    assert 'because of the view raw."values"' in told


@contextmanager
def a_long_reader(shop: Shop) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(shop.url) as connection:
        connection.execute("SELECT * FROM raw.orders")
        yield connection


def test_readers_do_not_queue_behind_a_column_that_waits_for_one_of_them(make_shop: MakeShop) -> None:
    shop = shop_with(make_shop, "varchar(10)", "text")
    shop.query("INSERT INTO raw.orders (id) VALUES (1)")
    thread = threading.Thread(target=lambda: widened(shop, "varchar(10)", "text"))
    with a_long_reader(shop) as reader, psycopg.connect(shop.url, autocommit=True) as other:
        thread.start()
        until_somebody_waits(other, waits=True)
        other.execute("SET statement_timeout = '3s'")
        other.execute("SELECT * FROM raw.orders")
        until_somebody_waits(other, waits=False)
        assert type_of_v(shop) == "character varying(10)"
        reader.rollback()
        thread.join(20)
    assert type_of_v(shop) == "text"


def until_somebody_waits(connection: psycopg.Connection[Any], *, waits: bool) -> None:
    deadline = time.monotonic() + 10
    query = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
    while connection.execute(query).fetchone() != (waits,):
        assert time.monotonic() < deadline, f"nobody {'waits' if waits else 'gave up'}"


@pytest.mark.parametrize("mode", MODES)
def test_widening_and_loading_twice_is_as_once(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = shop_with(make_shop, "integer", "bigint", mode)
    for _ in range(2):
        load = _load(shop, widened(shop, "integer", "bigint"))
        shop.destination.prepare(load, shop.candidate(load, [(1, "5000000000")])).publish(None, 0)
    assert shop.query("SELECT id, v FROM raw.orders") == [(1, 5_000_000_000)]


def test_two_processes_may_widen_at_once(make_shop: MakeShop) -> None:
    shop = shop_with(make_shop, "integer", "bigint")
    five_at_once(lambda: widened(shop, "integer", "bigint"))
    assert type_of_v(shop) == "bigint"


def widening_load(url: str, mode: LoadMode) -> None:
    shop = Shop(url, make_table(mode, cursor=None, upsert_key=("id",)), _schema("bigint"))
    load = _load(shop, widened(shop, "integer", "bigint"))
    shop.destination.prepare(load, shop.candidate(load, [(1, "5000000000")])).publish(None, 0)
    shop.close()


@pytest.mark.parametrize("mode", ["append", "truncate", "blue_green"])
def test_a_worker_that_is_killed_at_any_statement_leaves_one_type_or_the_other(
    make_shop: MakeShop, mode: LoadMode
) -> None:
    shop = shop_with(make_shop, "integer", "bigint", mode)
    for statement in range(1, 200, 4 if mode == "blue_green" else 1):  # its own test enumerates them all
        shop.query("DELETE FROM raw.orders; ALTER TABLE raw.orders ALTER v TYPE integer")
        shop.query("INSERT INTO raw.orders (id, v) VALUES (1, 7)")
        with KillingProxy(shop.url, statement) as proxy:
            worker = WORKERS.Process(target=widening_load, args=(proxy.proxied_url, mode))
            worker.start()
            assert worker.pid is not None
            proxy.kill(worker.pid)
            worker.join()
        left = [*map(list, zip(*shop.query("SELECT v FROM raw.orders ORDER BY v"), strict=True))]
        assert left in ([[7]], [[5_000_000_000]], [[7, 5_000_000_000]] if mode == "append" else []), proxy.killed_at
        widening_load(shop.url, mode)
        assert (type_of_v(shop), shop.query("SELECT max(v) FROM raw.orders")) == ("bigint", [(5_000_000_000,)])
        if proxy.killed_at is None:
            break
    assert statement > 8
