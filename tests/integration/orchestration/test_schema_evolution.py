"""What a source changes, from its catalog or file to the warehouse and the log."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hakiri_dagster.cli.schema_commands import accept as accept_command
from hakiri_dagster.cli.schema_commands import note_accepted
from hakiri_dagster.destinations.postgres.destination import PostgresDestination
from hakiri_dagster.errors import DestinationError, UsageError
from hakiri_dagster.pipeline.planner import table_plan
from tests.integration.orchestration.conftest import ShopProject

Declare = Callable[..., ShopProject]


@pytest.fixture
def pg_shop(shop: ShopProject) -> Callable[..., ShopProject]:
    """A shop with one table of a PostgreSQL source."""
    shop.execute("CREATE SCHEMA src")

    def declare(made: str = "id int, v int", pipeline: dict[str, Any] | None = None, **table: Any) -> ShopProject:
        shop.manifest(
            {
                "id": "shop",
                "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}},
                "tables": [{"name": "orders"} | table],
            }
            | (pipeline or {})
        )
        if not shop.rows("SELECT 1 FROM pg_class WHERE relname = 'orders' AND relnamespace = 'src'::regnamespace"):
            shop.execute(f"CREATE TABLE src.orders ({made})")
            shop.execute("INSERT INTO src.orders (id) VALUES (1)")
        return shop

    return declare


def events(shop: ShopProject) -> list[tuple[str, str, str]]:
    with shop.runtime() as runtime:
        return [(event.kind, event.column, event.decision) for event in runtime.audit.schemas.events()]


def plan(shop: ShopProject) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is refused, and what is warned of."""
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        planned = table_plan(runtime.survey(table))
        return planned.refusals, planned.warnings


def accept(shop: ShopProject) -> None:
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        for change in runtime.survey(table).refused_changes:
            note_accepted(runtime.audit, table, change, "a test")


def types(shop: ShopProject) -> dict[str, str]:
    rows = shop.rows(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'raw.orders'::regclass"
        " AND attnum > 0 AND NOT attisdropped AND attname <> '_hakiri_load_id' AND attname <> '_source_file_hash'"
    )
    return dict(rows)


def test_a_csv_file_gains_a_column_and_loses_one(csv_shop: Declare) -> None:
    shop = csv_shop()
    shop.file("data/orders.csv", "id,v\n1,a\n")
    shop.apply()
    assert events(shop) == []
    shop.file("data/orders.csv", "id,v,w\n1,a,\n2,b,7\n")
    assert shop.apply()["orders"]["error"] is None
    assert shop.rows("SELECT id, v, w FROM raw.orders ORDER BY id") == [(1, "a", None), (2, "b", 7)]
    assert shop.apply()["orders"]["chunks"]["done"] == 0
    assert events(shop) == [("added", "w", "applied")]


def test_a_column_that_no_csv_file_has_any_more_keeps_its_values(csv_shop: Declare) -> None:
    shop = csv_shop(primary_key=["id"])
    shop.file("data/orders.csv", "id,v,w\n1,a,7\n2,b,8\n")
    shop.apply()
    shop.file("data/orders.csv", "id,v\n1,x\n3,c\n")
    told = shop.apply()["orders"]
    assert any("column w is gone from the source" in warning for warning in told["warnings"])
    assert shop.rows("SELECT id, v, w FROM raw.orders ORDER BY id") == [(1, "x", 7), (2, "b", 8), (3, "c", None)]
    shop.file("data/orders.csv", "")
    assert shop.apply()["orders"]["warnings"] == [f"{shop.root}/data/orders.csv is empty"]
    shop.file("data/orders.csv", "w,id,v\n9,1,y\n")
    assert shop.apply()["orders"]["error"] is None
    assert shop.rows("SELECT v, w FROM raw.orders WHERE id = 1") == [("y", 9)]
    assert events(shop) == [("dropped", "w", "applied"), ("added", "w", "applied")]


def test_the_type_of_a_text_file_is_kept_when_a_value_does_not_fit(csv_shop: Declare) -> None:
    shop = csv_shop()
    shop.file("data/orders.csv", "id\n1\n")
    shop.apply()
    shop.file("data/orders.csv", "id\n2\nthree\n")
    told = shop.apply()["orders"]
    assert (told["error"], told["rows"], told["quarantined"]) == (None, 1, 1)
    csv_shop({"null_values": ["", "x"]})  # the columns are inferred anew, and `id` now looks like text
    assert shop.apply()["orders"]["error"] is None
    assert types(shop)["id"] == "bigint"
    assert events(shop) == []


def test_a_narrower_column_is_refused_until_somebody_permits_it(pg_shop: Declare) -> None:
    shop = pg_shop(load={"mode": "truncate"})
    shop.execute("ALTER TABLE src.orders ALTER v TYPE bigint")
    shop.apply()
    shop.execute("ALTER TABLE src.orders ALTER v TYPE int")
    shop.execute("INSERT INTO src.orders VALUES (2, 7)")
    told = shop.apply()["orders"]
    assert "shop/orders: column v was bigint and is now integer, which holds less" in told["error"]
    assert "hakiri schema accept shop --table orders --column v" in told["error"]
    assert told["chunks"] == {"done": 0, "failed": 0, "skipped": 0, "pending": 1}
    shop.apply()
    assert shop.column("orders", "id") == [1], "nothing of the table is loaded"
    assert events(shop) == [("narrowed", "v", "refused")]
    with shop.runtime() as runtime:
        (alert,) = runtime.audit.alerts.newest()
        assert (alert.kind, alert.subject, alert.severity, alert.times) == ("schema_change", "v", "warning", 2)
    accept(shop)
    assert shop.apply()["orders"]["error"] is None
    assert shop.rows("SELECT id, v FROM raw.orders ORDER BY id") == [(1, None), (2, 7)]
    assert types(shop)["v"] == "bigint"
    assert events(shop)[1:] == [("narrowed", "v", "accepted"), ("narrowed", "v", "applied")]
    shop.execute("ALTER TABLE src.orders ALTER v TYPE smallint")
    assert "is now smallint" in shop.apply()["orders"]["error"], "a later change is another one"


def test_other_tables_go_on_and_a_run_of_the_table_is_refused_as_well(shop: ShopProject) -> None:
    shop.execute("CREATE SCHEMA src; CREATE TABLE src.orders (id bigint); CREATE TABLE src.items (id bigint)")
    source = {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}}
    shop.manifest({"id": "shop", "source": source, "tables": ["orders", "items"], "load": {"mode": "append"}})
    shop.execute("INSERT INTO src.orders VALUES (1); INSERT INTO src.items VALUES (1)")
    shop.apply()
    shop.execute("ALTER TABLE src.orders ALTER id TYPE text")
    told = shop.apply()
    assert "column id was bigint and is now text, which is another type" in told["orders"]["error"]
    assert (told["items"]["error"], told["items"]["rows"]) == (None, 1)
    with pytest.raises(AssertionError):
        shop.again("orders")
    with shop.runtime() as runtime:
        run = runtime.audit.runs.recent("shop", "orders")[0]
        assert (run.status, run.error_kind) == ("failed", "permanent")
        assert "which is another type" in (run.error_message or "")


def test_an_accepted_other_type_loads_what_fits(pg_shop: Declare) -> None:
    shop = pg_shop(load={"mode": "truncate"})
    shop.apply()
    shop.execute("ALTER TABLE src.orders ALTER v TYPE text")
    shop.execute("INSERT INTO src.orders VALUES (2, '7'), (3, 'x')")
    accept(shop)
    told = shop.apply()["orders"]
    assert (told["error"], told["rows"], told["quarantined"]) == (None, 2, 1)
    assert shop.rows("SELECT id, v FROM raw.orders ORDER BY id") == [(1, None), (2, 7)]


def test_a_type_that_the_manifest_declares_text_becomes_text(pg_shop: Declare) -> None:
    shop = pg_shop(primary_key=["id"])
    shop.apply()
    shop.execute("ALTER TABLE src.orders ALTER v TYPE text")
    shop.execute("INSERT INTO src.orders VALUES (3, 'x')")
    assert 'columns = { v = "text" }' in shop.apply()["orders"]["error"]
    pg_shop(primary_key=["id"], columns={"v": "text"})
    assert shop.apply()["orders"]["error"] is None
    assert shop.column("orders", "v") == ["x", None]
    assert types(shop)["v"] == "text"
    assert events(shop)[-1] == ("widened", "v", "applied")


@pytest.mark.parametrize("mode", ["append", "truncate", "upsert", "blue_green", "delete_missing"])
def test_a_wider_column_is_followed_in_every_mode(pg_shop: Declare, mode: str) -> None:
    shop = pg_shop(load={"mode": mode}, primary_key=["id"])
    shop.execute("INSERT INTO src.orders VALUES (2, 7)")
    shop.apply()
    shop.execute("ALTER TABLE src.orders ALTER v TYPE bigint; UPDATE src.orders SET v = 5000000000 WHERE id = 2")
    told = shop.apply()["orders"]
    assert (told["error"], told["quarantined"]) == (None, 0)
    assert shop.rows("SELECT id, v FROM raw.orders ORDER BY id") == [(1, None), (2, 5_000_000_000)]
    assert types(shop) == {"id": "integer", "v": "bigint"}
    assert events(shop) == [("widened", "v", "applied")]


def test_a_column_that_is_gone_keeps_its_values_and_is_told_once(pg_shop: Declare) -> None:
    shop = pg_shop(primary_key=["id"])
    shop.execute("UPDATE src.orders SET v = 7")
    shop.apply()
    shop.execute("ALTER TABLE src.orders DROP v; ALTER TABLE src.orders ADD w int")
    shop.execute("INSERT INTO src.orders VALUES (2)")
    assert any("column v is gone from the source" in warning for warning in shop.apply()["orders"]["warnings"])
    assert shop.apply()["orders"]["warnings"] == []
    assert shop.rows("SELECT id, v FROM raw.orders ORDER BY id") == [(1, 7), (2, None)]
    assert events(shop) == [("added", "w", "applied"), ("dropped", "v", "applied")]


def test_a_column_that_the_target_cannot_do_without_stops_the_table_and_is_told_of(pg_shop: Declare) -> None:
    shop = pg_shop("id int PRIMARY KEY, v int NOT NULL DEFAULT 0", load={"mode": "truncate"})
    shop.apply()
    shop.execute("ALTER TABLE raw.orders ALTER v SET NOT NULL")
    shop.execute("ALTER TABLE src.orders DROP v")
    told = shop.apply()["orders"]
    assert "the target's column v is NOT NULL without a default, and the source does not have it" in told["error"]
    assert not any("new rows have NULL there" in warning for warning in told["warnings"])
    assert events(shop) == [("dropped", "v", "refused")]
    with shop.runtime() as runtime:
        (alert,) = runtime.audit.alerts.newest()
    assert (alert.kind, alert.subject) == ("schema_change", "v")
    with pytest.raises(UsageError, match="that cannot be permitted: every row of"):
        accept_command(shop.root, "shop", table=None, column=None, reason=None, as_json=True)


def test_another_key_of_the_source_waits_for_its_migration(pg_shop: Declare) -> None:
    shop = pg_shop("id int PRIMARY KEY, v int NOT NULL DEFAULT 0", load={"mode": "truncate"})
    shop.apply()
    shop.execute("ALTER TABLE src.orders DROP CONSTRAINT orders_pkey, ADD PRIMARY KEY (id, v)")
    shop.execute("INSERT INTO src.orders VALUES (1, 1)")
    error = shop.apply()["orders"]["error"]
    assert "the key was (id) and is now (id, v), and the target still keeps rows apart by the earlier one" in error
    assert "a key is migrated by hand" in error
    with pytest.raises(UsageError, match="a changed key cannot be permitted"):
        accept_command(shop.root, "shop", table="orders", column=None, reason="RT-481", as_json=True)
    shop.execute("ALTER TABLE raw.orders DROP CONSTRAINT orders_pkey, ADD PRIMARY KEY (id, v)")
    assert shop.apply()["orders"]["error"] is None
    assert shop.rows("SELECT id, v FROM raw.orders ORDER BY id, v") == [(1, 0), (1, 1)]
    assert events(shop) == [("key_changed", "", "refused"), ("key_changed", "", "applied")]


def parquet(**columns: pa.Array) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def test_a_parquet_file_that_narrows_is_refused(shop: ShopProject) -> None:
    source = {"connector": "files", "config": {"path": "data", "format": "parquet"}}
    shop.manifest({"id": "shop", "source": source, "tables": [{"name": "orders"}]})
    shop.file("data/orders.parquet", parquet(id=pa.array([1], pa.int32())))
    shop.apply()
    shop.file("data/orders.parquet", parquet(id=pa.array([2**40], pa.int64())))
    assert shop.apply()["orders"]["error"] is None
    assert types(shop) == {"id": "bigint"}
    shop.file("data/orders.parquet", parquet(id=pa.array([3], pa.int16())))
    assert "was bigint and is now smallint" in shop.apply()["orders"]["error"]
    assert shop.column("orders", "id") == [2**40]
    accept(shop)
    assert shop.apply()["orders"]["error"] is None
    assert shop.column("orders", "id") == [3]


def test_a_project_that_an_earlier_version_has_loaded_takes_the_source_as_it_is(pg_shop: Declare) -> None:
    shop = pg_shop(incremental="id")
    shop.apply()
    with shop.runtime() as runtime:
        runtime.audit._transactions.write(lambda c: c.exec_driver_sql("DELETE FROM accepted_schema"))
    shop.execute("ALTER TABLE src.orders ALTER v TYPE smallint")
    assert shop.apply()["orders"]["error"] is None
    shop.execute("ALTER TABLE src.orders ALTER v TYPE text")
    shop.execute("INSERT INTO src.orders VALUES (2, 'x')")
    assert "was smallint and is now text" in shop.apply()["orders"]["error"], "known since the first look"


def test_a_run_that_died_between_ddl_and_load_is_gone_on_with(
    pg_shop: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = pg_shop(primary_key=["id"])
    shop.apply()
    shop.execute("ALTER TABLE src.orders ALTER v TYPE bigint, ADD w text")
    shop.execute("INSERT INTO src.orders VALUES (2, 5000000000, 'x')")
    with monkeypatch.context() as patch:
        patch.setattr("hakiri_dagster.pipeline.chunk_run.settle", _die)
        shop.apply()
    assert types(shop) == {"id": "integer", "v": "bigint", "w": "text"}
    assert events(shop) == []
    assert shop.apply()["orders"]["error"] is None
    assert shop.rows("SELECT v, w FROM raw.orders WHERE id = 2") == [(5_000_000_000, "x")]
    assert events(shop) == [("widened", "v", "applied"), ("added", "w", "applied")]


def _die(*_args: object, **_named: object) -> None:
    raise SystemExit("killed")


def test_hostile_names_are_just_names(pg_shop: Declare) -> None:
    name = 'v"; DROP TABLE x --%s {} $1.ü'
    quoted = '"' + name.replace('"', '""') + '"'
    shop = pg_shop(f"id int, {quoted} int", primary_key=["id"])
    shop.apply()
    shop.execute(f"ALTER TABLE src.orders ALTER {quoted} TYPE bigint; UPDATE src.orders SET {quoted} = 5000000000")
    assert shop.apply()["orders"]["error"] is None
    assert shop.column("orders", name) == [5_000_000_000]
    shop.execute(f"ALTER TABLE src.orders ALTER {quoted} TYPE text")
    assert f"column {name} was bigint and is now text" in shop.apply()["orders"]["error"]
    accept(shop)
    assert shop.apply()["orders"]["error"] is None
    assert [event for event in events(shop) if event[2] == "accepted"] == [("changed", name, "accepted")]


def test_a_declared_rename_takes_the_targets_column_along_once(pg_shop: Declare) -> None:
    shop = pg_shop(primary_key=["id"])
    shop.execute("UPDATE src.orders SET v = 7")
    shop.apply()
    shop.execute("CREATE VIEW raw.seen AS SELECT id, v FROM raw.orders")
    shop.execute("ALTER TABLE src.orders RENAME v TO amount; INSERT INTO src.orders VALUES (2, 8)")
    pg_shop(primary_key=["id"], renamed={"amount": "v"}, contract="freeze")
    assert shop.apply()["orders"]["error"] is None
    assert shop.rows("SELECT id, amount FROM raw.orders ORDER BY id") == [(1, 7), (2, 8)]
    assert shop.rows("SELECT v FROM raw.seen ORDER BY 1") == [(7,), (8,)], "a view keeps its own names"
    assert shop.apply()["orders"]["error"] is None
    assert events(shop) == [("renamed", "amount", "applied")]


def test_a_frozen_table_takes_no_new_column_until_it_is_permitted(pg_shop: Declare) -> None:
    shop = pg_shop(pipeline={"contract": "freeze"})
    shop.apply()
    shop.execute("ALTER TABLE src.orders ADD w int, DROP v; INSERT INTO src.orders VALUES (2, 2)")
    error = shop.apply()["orders"]["error"]
    assert "column w (integer) is new at the source" in error
    assert "column v (integer) is gone from the source" in error
    assert types(shop) == {"id": "integer", "v": "integer"}
    accept(shop)
    assert shop.apply()["orders"]["error"] is None
    assert shop.rows("SELECT id, v, w FROM raw.orders ORDER BY id") == [(1, None, None), (2, None, 2)]


def test_discard_row_sets_aside_what_holds_a_value_in_a_new_column(pg_shop: Declare) -> None:
    shop = pg_shop("id int, v int", load={"mode": "truncate"}, contract="discard_row")
    shop.apply()
    shop.execute("ALTER TABLE src.orders ADD w text, ALTER v TYPE bigint")
    shop.execute("INSERT INTO src.orders VALUES (2, 2, 'x'), (3, 3, NULL), (4, 5000000000, NULL)")
    told = shop.apply()["orders"]
    assert (told["error"], told["rows"], told["quarantined"]) == (None, 2, 2)
    assert any("column w is new at the source and not loaded" in warning for warning in told["warnings"])
    assert shop.rows("SELECT id, v FROM raw.orders ORDER BY id") == [(1, None), (3, 3)]
    assert types(shop) == {"id": "integer", "v": "integer"}
    kept = shop.rows('SELECT "ruleId", "row"->>\'id\', "row"->>\'w\' FROM hakiri.quarantine_shop_orders ORDER BY 2')
    assert kept == [("unknown_column", "2", "x"), ("type", "4", None)]
    shop.apply()
    assert sorted(events(shop)) == [("added", "w", "discarded"), ("widened", "v", "discarded")]


def test_discard_value_leaves_out_the_value_alone(csv_shop: Declare) -> None:
    shop = csv_shop(contract="discard_value", load={"mode": "truncate"})
    shop.file("data/orders.csv", "id,v\n1,10\n")
    shop.apply()
    shop.file("data/orders.csv", "id,v,w\n1,10,x\n2,many,y\n3,30,\n4,40,z,too many\n")
    told = shop.apply()["orders"]
    assert (told["error"], told["rows"], told["quarantined"]) == (None, 3, 1)
    assert any("1 value(s) discarded" in warning and "`v` is no bigint" in warning for warning in told["warnings"])
    assert shop.rows("SELECT id, v FROM raw.orders ORDER BY id") == [(1, 10), (2, None), (3, 30)]
    assert "w" not in types(shop)
    assert events(shop) == [("added", "w", "discarded")]
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        for change in runtime.survey(table).followed.discarded:
            note_accepted(runtime.audit, table, change, None)
    shop.file("data/orders.csv", "id,v,w\n5,50,x\n")
    assert shop.apply()["orders"]["error"] is None
    assert shop.rows("SELECT id, v, w FROM raw.orders") == [(5, 50, "x")], "somebody has permitted the column"


def test_discard_value_keeps_rows_in_their_windows_and_their_keys(csv_shop: Declare) -> None:
    shop = csv_shop(contract="discard_value", primary_key=["id"], incremental="at", columns={"id": "int"})
    shop.file("data/orders.csv", "id,v,at\n1,10,2024-01-05\n2,20,2024-02-05\n")
    shop.apply()
    shop.file("data/orders.csv", "id,v,at\n1,x,2024-01-05\n2,21,2024-02-05\nno,30,2024-02-06\n")
    told = shop.apply()["orders"]
    assert told["error"] is None
    assert shop.rows("SELECT id, v, at::text FROM raw.orders ORDER BY id") == [
        (1, None, "2024-01-05"),
        (2, 21, "2024-02-05"),
    ]
    assert shop.rows('SELECT "ruleId", message FROM hakiri.quarantine_shop_orders') == [
        ("not_null", "id is NULL, and it is part of the key")
    ]


def test_a_value_of_a_typed_source_that_does_not_fit_is_left_out(pg_shop: Declare) -> None:
    shop = pg_shop(primary_key=["id"], contract="discard_value")
    shop.apply()
    shop.execute("ALTER TABLE src.orders ALTER v TYPE text; INSERT INTO src.orders VALUES (2, '7'), (3, 'x')")
    told = shop.apply()["orders"]
    assert (told["error"], told["rows"], told["quarantined"]) == (None, 3, 0)
    assert shop.rows("SELECT id, v FROM raw.orders ORDER BY id") == [(1, None), (2, 7), (3, None)]


def test_a_load_that_fails_after_the_plan_has_not_followed_the_source_yet(
    pg_shop: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a mode that gives the column its type within the load."""
    shop = pg_shop(load={"mode": "truncate"})
    shop.apply()
    shop.execute("ALTER TABLE src.orders ALTER v TYPE bigint; UPDATE src.orders SET v = 5000000000")
    with monkeypatch.context() as patch:
        patch.setattr(PostgresDestination, "prepare", _fail)
        assert "the disk is full" in shop.apply()["orders"]["error"]
    assert types(shop)["v"] == "integer"
    assert shop.apply()["orders"]["error"] is None
    assert shop.rows("SELECT v FROM raw.orders") == [(5_000_000_000,)]
    assert events(shop) == [("widened", "v", "applied")]


def _fail(*_args: object) -> None:
    raise DestinationError("the disk is full")


def test_three_applies_at_once_follow_a_source_once(pg_shop: Declare) -> None:
    shop = pg_shop(primary_key=["id"])
    shop.apply()
    shop.execute("ALTER TABLE src.orders ALTER v TYPE bigint, ADD w text")
    shop.execute("INSERT INTO src.orders VALUES (2, 5000000000, 'x')")
    told = [applied["orders"] for applied in shop.apply_at_once(3)]
    assert [entry["error"] for entry in told] == [None] * 3
    assert shop.rows("SELECT id, v, w FROM raw.orders ORDER BY id") == [(1, None, None), (2, 5_000_000_000, "x")]
    assert sorted(events(shop)) == [("added", "w", "applied"), ("widened", "v", "applied")]


def test_the_command_line_permits_what_is_refused_now_and_nothing_else(
    pg_shop: Declare, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = pg_shop(primary_key=["id"])
    shop.apply()

    def accepted(**named: Any) -> Any:
        capsys.readouterr()
        settings: dict[str, Any] = {"table": "orders", "column": None, "reason": "RT-481", "as_json": True}
        assert accept_command(shop.root, "shop", **(settings | named)) == 0
        return json.loads(capsys.readouterr().out)

    with pytest.raises(UsageError, match="nothing to accept: no change is refused") as raised:
        accepted()
    assert raised.value.exit_code == 2
    shop.execute("ALTER TABLE src.orders ALTER v TYPE text, ALTER id TYPE smallint")
    with pytest.raises(UsageError, match="no change of column `nope` is refused"):
        accepted(column="nope")
    assert accepted(column="v") == {
        "accepted": [
            {
                "pipeline_id": "shop",
                "table": "orders",
                "change": "changed",
                "column": "v",
                "from": "integer",
                "to": "text",
            }
        ]
    }
    error = shop.apply()["orders"]["error"]
    assert "column id was integer" in error
    assert "column v" not in error
    assert [entry["column"] for entry in accepted()["accepted"]] == ["id"]
    assert shop.apply()["orders"]["error"] is None
