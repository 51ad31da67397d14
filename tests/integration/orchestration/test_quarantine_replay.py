"""Rows out of the quarantine, after the rules or the data were mended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.cli.quarantine_commands import Filters
from hakiri_dagster.cli.replay_command import ReplayDocument, replay, replay_tables
from hakiri_dagster.cli.tally import Tally
from hakiri_dagster.engine.process_identity import ProcessIdentity, is_dead
from hakiri_dagster.orchestration.replay import Replayer
from hakiri_dagster.planning.states import ChunkState
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.test_hostile_names import COLUMNS, quoted_csv

Declare = Callable[..., ShopProject]

EMAIL = {"type": "regex", "field": "email", "pattern": "@", "on_fail": "skip"}
KEPT = 'SELECT "ruleId", "onFail", "row"->>\'id\' FROM hakiri.quarantine_shop_orders ORDER BY 1, 3'


def replayed(shop: ShopProject, **filters: str) -> ReplayDocument:
    tally = Tally()
    with shop.runtime(tally) as runtime:
        (table,) = runtime.project.tables
        opened = lambda: nullcontext(Replayer(runtime, shop.instance))  # noqa: E731
        (told,) = replay_tables(runtime, [table], Filters(**filters), tally, opened)
        return told


def states(shop: ShopProject) -> tuple[ChunkState, ...]:
    with shop.runtime() as runtime:
        return runtime.audit.chunks.states("shop", "orders")


def ids(shop: ShopProject) -> list[Any]:
    return shop.column("orders", "id")


def test_rows_that_pass_by_now_go_into_the_target_and_leave_the_quarantine(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[EMAIL])
    shop.file("data/orders.csv", "id,email\n1,a@b\n2,nobody\n3,no.where\n")
    shop.apply()
    csv_shop(row_level=[EMAIL | {"pattern": "[@.]"}])
    told = replayed(shop)
    assert (told["replayed"], told["held"], told["left"], told["error"]) == (
        1, [{"rule": "regex_email", "rows": 1}], [], None,
    )  # fmt: skip
    assert ids(shop) == [1, 3]
    assert shop.rows(KEPT) == [("regex_email", "skip", "2")]
    again = replayed(shop)
    assert (again["replayed"], ids(shop)) == (0, [1, 3])
    assert shop.apply()["orders"]["chunks"]["done"] == 0
    shop.again("orders")
    assert (ids(shop), shop.rows(KEPT)) == ([1, 3], [("regex_email", "skip", "2")])


SRC = "CREATE SCHEMA src; CREATE TABLE src.orders (id bigint, at timestamptz, email text)"
ADD = """
INSERT INTO src.orders
SELECT id, '2026-01-01Z'::timestamptz + at * interval '1 day', email FROM (VALUES {}) AS v (id, at, email)
"""
ANY = EMAIL | {"pattern": "."}


def database(shop: ShopProject, *rules: dict[str, Any], **table: Any) -> ShopProject:
    shop.manifest(
        {
            "id": "shop",
            "source": {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}},
            "tables": [{"name": "orders", "row_level": list(rules)} | table],
        }
    )
    return shop


def add(shop: ShopProject, *rows: tuple[int, int, str]) -> None:
    shop.execute(ADD.format(", ".join(f"({i}, {at}, '{email}')" for i, at, email in rows)))


MODES: dict[str, dict[str, Any]] = {
    "append": {"load": {"mode": "append"}, "incremental": "at"},
    "upsert": {"load": {"mode": "upsert"}, "primary_key": ["id"], "incremental": "at"},
    "incremental_watermark": {"load": {"mode": "incremental_watermark", "watermark_column": "at"}},
    "scd2": {"load": {"mode": "scd2"}, "primary_key": ["id"], "incremental": "at"},
}


@pytest.fixture
def orders(shop: ShopProject) -> ShopProject:
    shop.execute(SRC)
    return shop


@pytest.mark.parametrize("mode", MODES)
def test_replayed_rows_are_replaced_with_their_chunk_and_never_doubled(orders: ShopProject, mode: str) -> None:
    table = MODES[mode] | {"backfill": {"window": "1mo"}}
    shop = database(orders, EMAIL, **table)
    add(shop, (1, 0, "a@b"), (2, 1, "x"), (3, 2, "a@b"), (4, 35, "a@b"), (5, 36, "y"))
    shop.apply()
    assert ids(shop) == [1, 3, 4]
    database(shop, ANY, **table)
    mark = (
        shop.rows("SELECT value, position FROM hakiri.pipeline_watermarks") if mode == "incremental_watermark" else []
    )
    before = states(shop)
    told = replayed(shop)
    assert (told["replayed"], told["left"], told["error"]) == (2, [], None)
    assert ids(shop) == [1, 2, 3, 4, 5]
    assert shop.rows("SELECT count(*) FROM hakiri.quarantine_shop_orders") == [(0,)]
    assert states(shop) == before  # nothing is owed, and nothing has moved
    if mark:
        assert shop.rows("SELECT value, position FROM hakiri.pipeline_watermarks") == mark
    shop.apply()
    assert ids(shop) == [1, 2, 3, 4, 5]
    add(shop, (6, 37, "a@b"))  # a slice from row 4 on, which replaces what was replayed behind it
    assert shop.apply()["orders"]["error"] is None
    assert ids(shop) == [1, 2, 3, 4, 5, 6]
    shop.execute("DELETE FROM src.orders WHERE id = 2")
    shop.again("orders", "2026-01")
    expected = [1, 3, 4, 5, 6] if mode in ("append", "incremental_watermark") else [1, 2, 3, 4, 5, 6]
    assert ids(shop) == expected
    assert replayed(shop)["replayed"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_a_later_slice_has_read_again_are_not_replayed_beside_themselves(
    orders: ShopProject, mode: str
) -> None:
    shop = database(orders, EMAIL, **MODES[mode])
    add(shop, (1, 1, "a@b"), (2, 2, "x"), (3, 3, "z"))
    shop.apply()
    add(shop, (4, 4, "a@b"))  # the slice begins at row 1: the two are quarantined again, in the place of the first time
    shop.apply()
    assert shop.rows("SELECT count(*) FROM hakiri.quarantine_shop_orders") == [(2,)]
    database(shop, ANY, **MODES[mode])
    told = replayed(shop)
    assert (told["replayed"], told["overtaken"]) == (2, 0)
    assert ids(shop) == [1, 2, 3, 4]
    assert shop.rows("SELECT count(*) FROM hakiri.quarantine_shop_orders") == [(0,)]


def test_a_changed_window_replaces_what_was_replayed_into_the_old_one(orders: ShopProject) -> None:
    shop = database(orders, EMAIL, **MODES["append"], backfill={"window": "1mo"})
    add(shop, (1, 0, "a@b"), (2, 1, "x"), (3, 40, "a@b"))
    shop.apply()
    database(shop, ANY, **MODES["append"], backfill={"window": "1d"})
    shop.apply()
    told = replayed(shop)
    assert (told["replayed"], told["error"], ids(shop)) == (1, None, [1, 2, 3])
    shop.again("orders", "2026-01-02")
    assert ids(shop) == [1, 2, 3]
    shop.execute("DELETE FROM src.orders WHERE id = 2")
    shop.again("orders", "2026-01-02")
    assert ids(shop) == [1, 3]


def test_a_row_of_a_history_comes_in_at_its_time(orders: ShopProject) -> None:
    shop = database(orders, EMAIL, **MODES["scd2"])
    add(shop, (1, 0, "a@b"), (1, 1, "middle"), (1, 2, "c@d"))
    shop.apply()
    database(shop, ANY, **MODES["scd2"])
    assert replayed(shop)["replayed"] == 1
    assert shop.rows(
        "SELECT email, extract(day FROM valid_from)::int, extract(day FROM valid_to)::int FROM raw.orders ORDER BY 2"
    ) == [("a@b", 1, 2), ("middle", 2, 3), ("c@d", 3, None)]


def test_an_upsert_without_a_cursor_does_not_bring_back_what_is_older_than_a_later_file(csv_shop: Declare) -> None:
    shop = csv_shop(path="data/orders/", primary_key=["id"], row_level=[EMAIL])
    shop.file("data/orders/a.csv", "id,email\n1,old\n2,x\n3,a@b\n")
    shop.apply()
    shop.file("data/orders/b.csv", "id,email\n1,new@b\n")
    shop.apply()
    csv_shop(path="data/orders/", primary_key=["id"], row_level=[ANY])
    assert replayed(shop)["error"] is None
    assert shop.rows("SELECT id, email FROM raw.orders ORDER BY 1") == [(1, "new@b"), (2, "x"), (3, "a@b")]
    assert shop.rows(KEPT) == []


def test_rows_of_files_bear_the_hash_of_their_file_and_go_with_its_next_contents(csv_shop: Declare) -> None:
    shop = csv_shop(path="data/orders/", row_level=[EMAIL])
    shop.file("data/orders/a.csv", "id,email\n1,a@b\n2,x\n")
    shop.file("data/orders/b.csv", "id,email\n3,a@b\n4,y\n")
    shop.apply()
    csv_shop(path="data/orders/", row_level=[ANY])
    assert replayed(shop)["replayed"] == 2
    assert shop.rows("SELECT array_agg(id ORDER BY id) FROM raw.orders GROUP BY _source_file_hash ORDER BY 1") == [
        ([1, 2],), ([3, 4],),
    ]  # fmt: skip
    assert shop.rows("SELECT count(*) FROM raw.orders WHERE _source_file_hash IS NULL") == [(0,)]
    shop.file("data/orders/a.csv", "id,email\n1,a@b\n5,x\n")
    shop.apply()
    assert ids(shop) == [1, 3, 4, 5]


@pytest.mark.parametrize("mode", ["truncate", "blue_green", "delete_missing", "scd2"])
def test_a_table_that_is_loaded_whole_is_refused_with_the_way_to_go(csv_shop: Declare, mode: str) -> None:
    table: dict[str, Any] = {"primary_key": ["id"], "load": {"mode": mode}}
    shop = csv_shop(row_level=[EMAIL], **table)
    shop.file("data/orders.csv", "id,email\n1,a@b\n2,x\n")
    shop.apply()
    csv_shop(row_level=[ANY], **table)
    told = replayed(shop)
    assert f"every load of mode {mode} reads all rows of the source" in (told["error"] or "")
    assert "`hakiri run shop --table orders`" in (told["error"] or "")
    assert ids(shop) == [1]
    shop.again("orders")
    assert ids(shop) == [1, 2]
    assert replayed(shop)["error"] is None


def test_rows_are_asked_all_rules_of_today_and_stay_for_the_reason_of_today(csv_shop: Declare) -> None:
    columns = {"age": "integer", "name": "varchar(5)"}
    shop = csv_shop(row_level=[EMAIL], columns=columns)
    shop.file("data/orders.csv", "id,email,age,name\n1,x,1,ann\n2,y,-1,ann\n3,z,1,annabelle\n4,x,1,bob\n5,a@b,1,ann\n")
    shop.apply()
    rules = [
        ANY,
        {"type": "range", "field": "age", "min": 0},
        {"type": "one_of", "field": "name", "values": ["ann", "annabelle"], "on_fail": "warn"},
    ]
    csv_shop(row_level=rules, columns=columns)
    told = replayed(shop)
    assert (told["replayed"], told["error"]) == (2, None)
    assert told["held"] == [{"rule": "range_age", "rows": 1}, {"rule": "too_long", "rows": 1}]
    assert ids(shop) == [1, 4, 5]
    assert shop.rows(KEPT) == [
        ("one_of_name", "warn", "4"), ("range_age", "skip", "2"), ("too_long", "skip", "3"),
    ]  # fmt: skip
    reason = "a rule only warns of them, and keeps none of them from the target"
    assert replayed(shop)["left"] == [{"reason": reason, "rows": 1}]


def test_a_row_that_was_mended_in_the_quarantine_is_loaded_as_it_is_there(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[EMAIL])
    shop.file("data/orders.csv", "id,email\n1,a@b\n2,nobody\n")
    shop.apply()
    shop.execute('UPDATE hakiri.quarantine_shop_orders SET "row" = jsonb_set("row", \'{email}\', \'"no@body"\')')
    assert replayed(shop)["replayed"] == 1
    assert shop.rows("SELECT id, email FROM raw.orders ORDER BY 1") == [(1, "a@b"), (2, "no@body")]


def test_what_cannot_be_replayed_is_left_alone_and_told_why(csv_shop: Declare) -> None:
    gate = {"type": "not_null", "field": "id"}
    shop = csv_shop(path="data/orders/", row_level=[EMAIL, gate], columns={"id": "integer"})
    shop.file("data/orders/a.csv", "id,email\n1,a@b\nfour,a@b\n2,a\\u0000b\n")
    shop.file("data/orders/b.csv", "id,email\n5,x\n,a@b\n")
    shop.apply()
    csv_shop(path="data/orders/", row_level=[ANY, gate], columns={"id": "integer"})
    told = replayed(shop)
    reasons = {left["reason"]: left["rows"] for left in told["left"]}
    assert sorted((reason[:40], rows) for reason, rows in reasons.items()) == [
        ("a rule has stopped the load of their chu", 1),
        ("email: it may have held U+0000, which JS", 1),
        ("the load that has set them aside was not", 1),
        ("they could not be read: mend the file, o", 1),
    ]
    assert (told["replayed"], told["error"], ids(shop)) == (0, None, [1])
    assert len(shop.rows(KEPT)) == 4


def test_only_the_chosen_rows_are_replayed(csv_shop: Declare) -> None:
    rules = [EMAIL, {"type": "range", "field": "id", "min": 0, "on_fail": "skip"}]
    shop = csv_shop(row_level=rules)
    shop.file("data/orders.csv", "id,email\n1,a@b\n2,x\n-3,a@b\n")
    shop.apply()
    csv_shop(row_level=[])
    assert replayed(shop, run_id="another")["replayed"] == 0
    assert replayed(shop, rule="range_id")["replayed"] == 1
    assert ids(shop) == [-3, 1]
    assert replayed(shop)["replayed"] == 1
    assert ids(shop) == [-3, 1, 2]


def test_the_replay_is_told_of_the_chunks_partition(orders: ShopProject) -> None:
    shop = database(orders, EMAIL, **MODES["append"])
    add(shop, (1, 0, "a@b"), (2, 1, "x"))
    shop.apply()
    database(shop, ANY, **MODES["append"])
    replayed(shop)
    key = dg.AssetKey(["shop", "orders"])
    (record,) = shop.instance.fetch_observations(key, limit=10).records
    observed = record.asset_observation
    assert observed is not None
    assert observed.partition == "2026-01"
    numbers = {name: value.value for name, value in observed.metadata.items()}
    assert (numbers["rows_replayed"], numbers["rows_still_held"], numbers["chunk"]) == (1, 0, "2026-01")
    assert len(shop.instance.fetch_materializations(key, limit=10).records) == 1


def test_a_chunk_that_a_run_works_on_is_left_to_it(orders: ShopProject) -> None:
    shop = database(orders, EMAIL, **MODES["append"])
    add(shop, (1, 0, "a@b"), (2, 1, "x"), (3, 40, "a@b"), (4, 41, "y"))
    shop.apply()
    database(shop, ANY, **MODES["append"])
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        of, holds = (table.pipeline_id, table.name), runtime.audit.holds
        holder = str(ProcessIdentity.current())
        held = holds.take(*of, ["2026-02"], holder=holder, ttl_seconds=60, holder_is_dead=is_dead)
        assert held.keys == ("2026-02",)
        told = replayed(shop)
        assert (told["replayed"], ids(shop)) == (1, [1, 2, 3])
        (left,) = told["left"]
        assert "another run holds their chunk" in left["reason"]
        add(shop, (5, 42, "a@b"))
        assert shop.apply()["orders"]["chunks"]["skipped"] == 1  # nor does a run take what a replay holds
        holds.let_go(*of, held.keys, holder=holder)
    shop.apply()
    assert (replayed(shop)["overtaken"], ids(shop)) == (0, [1, 2, 3, 4, 5]), "the run has read it again"


def test_two_replays_at_once_load_nothing_twice(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[EMAIL])
    shop.file("data/orders.csv", "id,email\n" + "".join(f"{n},x\n" for n in range(500)) + "900,a@b\n")
    shop.apply()
    csv_shop(row_level=[ANY])
    with ThreadPoolExecutor(2) as pool, dg.DagsterInstance.ephemeral() as other:
        first = pool.submit(replayed, shop)
        second = pool.submit(replayed, replace(shop, instance=other))
        assert first.result()["replayed"] + second.result()["replayed"] == 500
    assert ids(shop) == [*range(500), 900]


def test_rows_without_a_cursor_are_replayed_too(orders: ShopProject) -> None:
    shop = database(orders, EMAIL, **MODES["append"])
    shop.execute("INSERT INTO src.orders VALUES (1, '2026-01-01', 'a@b'), (2, NULL, 'x'), (3, NULL, 'a@b')")
    shop.apply()
    database(shop, ANY, **MODES["append"])
    assert replayed(shop)["replayed"] == 1
    assert ids(shop) == [1, 2, 3]
    shop.execute("INSERT INTO src.orders VALUES (4, NULL, 'z')")
    shop.apply()
    assert ids(shop) == [1, 2, 3, 4]


def test_values_of_every_kind_come_back_as_they_were(shop: ShopProject) -> None:
    shop.execute(
        """
        CREATE SCHEMA src;
        CREATE TABLE src.orders (
            id integer, big bigint, f double precision, r real, n numeric(30,10), u numeric, b bytea, d date,
            t timestamp, z timestamptz, j jsonb, a text[], i interval, g uuid, s text, email text);
        INSERT INTO src.orders VALUES
            (1, 9223372036854775807, 'nan', '-infinity', 1e-10, 1e40, '\\x00ff', '9999-12-31',
             '1999-12-31 23:59:59.123456', '2026-01-01 12:00:00+02', '{"a": 1.50}', '{a,NULL}', '1 day',
             gen_random_uuid(), E'a\\tb', 'x'),
            (2, -1, 1e300, 0.1, -12345678901234567890.5, 'nan', '', '0001-01-01', '0001-01-01',
             '0044-03-15 BC', 'null', '{}', '-3 months', gen_random_uuid(), '', 'y'),
            (3, 0, '-0', '-0', 0, 0, NULL, '0044-03-15 BC', '20000-12-31', NULL, '[]', NULL, NULL, NULL, NULL, 'z'),
            (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'a@b')
        """
    )
    database(shop, EMAIL, load={"mode": "append"}, incremental="id", backfill={"window": 1000})
    shop.apply()
    database(shop, ANY, load={"mode": "append"}, incremental="id", backfill={"window": 1000})
    told = replayed(shop)
    assert (told["replayed"], told["left"], told["error"]) == (3, [], None)
    columns = "id, big, f::text, r::text, n, u::text, b, d::text, t::text, z::text, j::text, a, i::text, g, s, email"
    query = f"SELECT {columns} FROM {{}} ORDER BY 1"
    assert shop.rows(query.format("raw.orders")) == shop.rows(query.format("src.orders"))


_DIES = """
import os, signal, sys
from pathlib import Path
from contextlib import nullcontext
import dagster as dg
from hakiri_dagster.cli.quarantine_commands import Filters
from hakiri_dagster.cli.replay_command import replay_tables
from hakiri_dagster.cli.tally import Tally
from hakiri_dagster.destinations.postgres.loading import OpenLoad
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.replay import Replayer
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.settings import Settings

def die(load, entry):
    if sys.argv[2] == "after":
        load.connection.commit()
    os.kill(os.getpid(), signal.SIGKILL)

OpenLoad._commit = die
tally = Tally()
with dg.DagsterInstance.ephemeral() as instance, Runtime(load_project(Path(sys.argv[1])), Settings(), tally) as runtime:
    replay_tables(runtime, runtime.project.tables, Filters(), tally, lambda: nullcontext(Replayer(runtime, instance)))
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_replay_that_is_killed_at_its_commit_leaves_nothing_undone_and_nothing_held(
    orders: ShopProject, moment: str
) -> None:
    shop = database(orders, EMAIL, **MODES["append"])
    add(shop, (1, 1, "a@b"), (2, 2, "x"))
    shop.apply()
    database(shop, ANY, **MODES["append"])
    before = states(shop)
    killed = subprocess.run([sys.executable, "-c", _DIES, str(shop.root), moment], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert ids(shop) == ([1, 2] if moment == "after" else [1])
    assert shop.apply()["orders"]["chunks"] == {"done": 0, "failed": 0, "skipped": 0, "pending": 0}
    told = replayed(shop)
    assert (told["replayed"], told["left"]) == (0 if moment == "after" else 1, [])
    assert (ids(shop), shop.rows(KEPT), states(shop)) == ([1, 2], [], before)
    assert list((shop.root / ".hakiri" / "candidates").glob("*/*/attempt-*")) == []
    add(shop, (3, 3, "a@b"))
    shop.apply()
    assert ids(shop) == [1, 2, 3]


def test_a_chunk_that_cannot_be_published_fails_and_the_others_go_on(csv_shop: Declare) -> None:
    table = {"path": "data/orders/", "primary_key": ["id"], "load": {"mode": "upsert", "on_duplicate_key": "reject"}}
    shop = csv_shop(row_level=[EMAIL], **table)
    shop.file("data/orders/a.csv", "id,email\n1,x\n2,a@b\n1,x\n")
    shop.file("data/orders/b.csv", "id,email\n3,y\n4,a@b\n")
    shop.apply()
    csv_shop(row_level=[ANY], **table)
    told = replayed(shop)
    assert (told["replayed"], told["chunks"], ids(shop)) == (1, {"done": 1, "failed": 1}, [2, 3, 4])
    assert "chunk a.csv-" in (told["error"] or "")
    assert shop.rows(KEPT) == [("regex_email", "skip", "1")] * 2
    csv_shop(row_level=[ANY], **(table | {"load": {"mode": "upsert"}}))
    assert (replayed(shop)["error"], ids(shop)) == (None, [1, 2, 3, 4])


def test_a_column_that_the_source_has_no_more_keeps_its_rows_and_a_renamed_one_does_not(orders: ShopProject) -> None:
    shop = database(orders, EMAIL, **MODES["append"])
    shop.execute("ALTER TABLE src.orders ADD note text, ADD old text")
    add(shop, (1, 1, "a@b"), (2, 2, "x"), (3, 3, "y"))
    shop.execute("UPDATE src.orders SET old = 'o'; UPDATE src.orders SET note = 'n' WHERE id = 2")
    shop.apply()
    shop.execute("ALTER TABLE src.orders DROP note; ALTER TABLE src.orders RENAME old TO new")
    database(shop, ANY, **MODES["append"], renamed={"new": "old"})
    told = replayed(shop)
    (left,) = told["left"]
    assert "note: the source has no such column today" in left["reason"]
    assert shop.rows("SELECT id, new FROM raw.orders ORDER BY 1") == [(1, "o"), (3, "o")]


def test_post_hooks_run_after_a_replay(csv_shop: Declare) -> None:
    load = {"post_hook": {"type": "sql", "statement": "ANALYZE {table}"}}
    shop = csv_shop(path="data/orders/", row_level=[EMAIL], load=load)
    shop.file("data/orders/a.csv", "id,email\n1,x\n2,a@b\n")
    shop.apply()
    csv_shop(path="data/orders/", row_level=[ANY], load=load)
    assert replayed(shop)["replayed"] == 1
    assert shop.rows("SELECT count(*) FROM hakiri.owed_hook") == [(0,)]
    assert shop.rows("SELECT reltuples FROM pg_class WHERE oid = 'raw.orders'::regclass") == [(2.0,)]


@pytest.mark.parametrize("settings", [{"provenance": "full"}, {"empty_as_null": False}])
def test_rows_go_the_way_of_other_rows_whatever_is_computed_on_it(
    orders: ShopProject, settings: dict[str, Any]
) -> None:
    table = {"incremental": "at", "load": {"mode": "append"} | settings}
    shop = database(orders, EMAIL, **table)
    add(shop, (1, 1, "a@b"), (2, 2, "x"))
    shop.apply()
    database(shop, ANY, **table)
    assert (replayed(shop)["replayed"], ids(shop)) == (1, [1, 2])
    if "provenance" in settings:
        hashes = "SELECT count(_hakiri_row_hash), count(_hakiri_ingested_at) FROM raw.orders"
        assert shop.rows(hashes) == [(2, 2)]


def test_columns_keep_their_names_whatever_these_hold(csv_shop: Declare) -> None:
    rule = {"type": "regex", "field": COLUMNS[1], "pattern": "z", "on_fail": "skip"}
    shop = csv_shop(row_level=[rule])
    lines = [quoted_csv(*[f"{letter}{i}" for i in range(len(COLUMNS))]) for letter in "vz"]
    shop.file("data/orders.csv", quoted_csv(*COLUMNS) + "".join(lines))
    shop.apply()
    csv_shop(row_level=[rule | {"pattern": "v"}])
    told = replayed(shop)
    assert (told["replayed"], told["error"]) == (1, None)
    shop.execute("DELETE FROM raw.orders WHERE \"select\" LIKE 'z%'")
    assert {name: shop.column("orders", name[:63]) for name in COLUMNS} == {n: [f"v{i}"] for i, n in enumerate(COLUMNS)}


def test_rows_of_another_projects_table_of_the_same_name_are_not_touched(csv_shop: Declare) -> None:
    shop = csv_shop(row_level=[EMAIL], quarantine={"table": "dlq.orders"})
    shop.file("data/orders.csv", "id,email\n1,x\n2,a@b\n")
    shop.apply()
    shop.execute(
        'INSERT INTO dlq.orders ("pipelineId", "runId", "nodeId", "ruleId", "row", "chunkKey", "loadId", target, '
        '"onFail") '
        'SELECT "pipelineId", "runId", "nodeId", "ruleId", "row", "chunkKey", "loadId", \'elsewhere.orders\', "onFail" '
        "FROM dlq.orders"
    )
    csv_shop(row_level=[ANY], quarantine={"table": "dlq.orders"})
    assert replayed(shop)["replayed"] == 1
    assert ids(shop) == [1, 2]
    assert shop.rows("SELECT target FROM dlq.orders") == [("elsewhere.orders",)]


def test_the_command_says_what_it_did_and_fails_where_it_was_refused(
    csv_shop: Declare, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = csv_shop(row_level=[EMAIL], load={"mode": "truncate"}, columns={"id": "integer"})
    shop.file("data/orders.csv", "id,email\n1,a@b\nx,a@b\n")
    shop.apply()
    capsys.readouterr()
    assert replay(shop.root, "shop", None, Filters(), as_json=False) == 0
    assert "left alone" in capsys.readouterr().out
    shop.file("data/orders.csv", "id,email\n1,a@b\n2,x\n")
    shop.apply()
    capsys.readouterr()
    assert replay(shop.root, "shop", None, Filters(), as_json=True) == 1
    (told,) = json.loads(capsys.readouterr().out)["tables"]
    assert (told["replayed"], told["quarantine_table"]) == (0, "hakiri.quarantine_shop_orders")
    assert "hakiri run shop --table orders" in told["error"]
    assert replay(shop.root, "shop", None, Filters(chunk="another"), as_json=False) == 0
    assert "nothing is kept" in capsys.readouterr().out
