"""`hakiri profile`: what the columns of a target hold, and what Dagster shows of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from hakiri_dagster.cli.profile_command import _document
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.orchestration.apply import Applier
from hakiri_dagster.orchestration.profile_events import MOST_PLOTTED
from hakiri_dagster.quality.profile import TableProfile
from tests.integration.orchestration.conftest import ShopProject
from tests.integration.orchestration.test_quarantine_replay import ANY, EMAIL, MODES, SRC, add, database, ids, replayed

Declare = Callable[..., ShopProject]

EVERY_KIND = """
    CREATE SCHEMA raw;
    CREATE TABLE raw.orders (
        id bigint PRIMARY KEY, amount numeric(10,2), price numeric, weight real, note text, code varchar(5),
        flag boolean, day date, at timestamptz, hour time, lasts interval, key uuid, doc jsonb, tags text[], raw bytea,
        "ein ""Name`.\n" text, void text, _hakiri_load_id bigint
    );
    INSERT INTO raw.orders
    SELECT i, i / 10.0, i * 1.5, CASE WHEN i = 1 THEN 'NaN'::real ELSE i END, 'note ' || i, 'c' || i % 3, i % 2 = 0,
        date '2024-01-01' + i, timestamptz '2024-01-01 00:00Z' + i * interval '1 hour', time '10:00', interval '1 day',
        gen_random_uuid(), '{"a": 1}', ARRAY['x'], '\\x00ff', CASE WHEN i > 25 THEN 'é' END, NULL, 1
    FROM generate_series(1, 100) AS i
"""


def profile(shop: ShopProject) -> TableProfile:
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
        return Applier(runtime, shop.instance).profile(table)


def document(shop: ShopProject, found: TableProfile) -> dict[str, Any]:
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
    return {column["column"]: column for column in _document(table, found, None)["columns"]}


def observed(shop: ShopProject) -> dict[str, Any]:
    records = shop.instance.fetch_observations(dg.AssetKey(["shop", "orders"]), limit=1).records
    observation = records[0].asset_observation
    assert observation is not None
    return {name: value.value for name, value in observation.metadata.items()}


def test_columns_of_every_type_are_told_of_in_one_pass(csv_shop: Declare) -> None:
    shop = csv_shop()
    shop.execute(EVERY_KIND)
    found = profile(shop)
    told = document(shop, found)
    assert found.rows == 100
    assert "_hakiri_load_id" not in told
    brief = {name: (c["nulls"], c["distinct"], c["min"], c["max"], c["mean"]) for name, c in told.items()}
    assert brief == {
        "id": (0, 100, 1, 100, 50.5),
        "amount": (0, 100, 0.1, 10.0, pytest.approx(5.05)),
        "price": (0, 100, 1.5, 150.0, 75.75),
        "weight": (0, 100, 2.0, "nan", None),
        "note": (0, 100, "note 1", "note 99", None),
        "code": (0, 3, "c0", "c2", None),
        "flag": (0, 2, None, None, None),
        "day": (0, 100, "2024-01-02T00:00:00Z", "2024-04-10T00:00:00Z", None),
        "at": (0, 100, "2024-01-01T01:00:00Z", "2024-01-05T04:00:00Z", None),
        "hour": (0, 1, None, None, None),
        "lasts": (0, 1, None, None, None),
        "key": (0, 100, None, None, None),
        "doc": (0, None, None, None, None),
        "tags": (0, None, None, None, None),
        "raw": (0, 1, None, None, None),
        'ein "Name`.\n': (25, 1, "é", "é", None),
        "void": (100, 0, None, None, None),
    }
    assert told["code"]["values"] == [
        {"value": "c1", "rows": 34}, {"value": "c0", "rows": 33}, {"value": "c2", "rows": 33}
    ]  # fmt: skip
    assert (told["code"]["readable_as"], told["id"]["readable_as"]) == ([], None)
    assert (told["note"]["shortest"], told["note"]["longest"], told["note"]["values"]) == (6, 8, None)


def test_the_asset_shows_the_profile_and_its_numbers(csv_shop: Declare) -> None:
    shop = csv_shop()
    shop.execute(EVERY_KIND)
    profile(shop)
    shown = observed(shop)
    assert shown["profile/rows"] == 100
    assert shown["profile/id/mean"] == 50.5
    assert shown['profile/ein "Name`.\n/null_ratio'] == 0.25
    assert shown["profile/note/longest"] == 8
    assert "profile/at/min" not in shown
    rows = {record.data["column"]: record.data for record in shown["profile"].records}
    assert rows["code"]["values"] == "c1 (34), c0 (33), c2 (33)"
    assert not shop.instance.fetch_materializations(dg.AssetKey(["shop", "orders"]), limit=1).records


def test_a_table_of_many_columns_plots_the_first_of_them_and_says_so(csv_shop: Declare) -> None:
    shop = csv_shop()
    columns = ", ".join(f"c{place} integer" for place in range(300))
    shop.execute(f"CREATE SCHEMA raw; CREATE TABLE raw.orders ({columns}); INSERT INTO raw.orders DEFAULT VALUES")
    assert len(profile(shop).columns) == 300
    shown = observed(shop)
    assert sum(name.endswith("/null_ratio") for name in shown) == MOST_PLOTTED
    assert shown["profile/left_out"] == "numbers of the first 50 of 300 columns; the table shows the first 200"


def test_what_no_type_of_spark_s_holds_is_told_as_text(csv_shop: Declare) -> None:
    shop = csv_shop()
    shop.execute(
        "CREATE SCHEMA raw; CREATE TABLE raw.orders (id integer, day date, at timestamptz, amount numeric(9,2))"
    )
    shop.execute("INSERT INTO raw.orders VALUES (1, 'infinity', now(), 'NaN'), (2, '2024-01-01', '-infinity', 2.5)")
    told = document(shop, profile(shop))
    assert [(told[name]["distinct"], told[name]["max"]) for name in ("id", "day", "at")] == [
        (2, 2),
        (2, None),
        (2, None),
    ]
    assert [one["value"] for one in told["day"]["values"]] == ["2024-01-01", "infinity"]
    assert (told["amount"]["min"], told["amount"]["max"]) == (2.5, "nan")


def test_an_empty_target_has_a_profile(csv_shop: Declare) -> None:
    shop = csv_shop()
    shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.orders (id integer, name text)")
    found = profile(shop)
    assert [(c.rows, c.nulls, c.distinct) for c in found.columns] == [(0, 0, 0)] * 2


def test_a_target_that_is_not_there_yet_is_to_be_loaded_first(csv_shop: Declare) -> None:
    shop = csv_shop()
    with pytest.raises(HakiriError, match=r"no target raw\.orders yet") as told:
        profile(shop)
    assert told.value.hint == "load it first: `hakiri apply shop`"


def materialized(shop: ShopProject) -> dict[str | None, dict[str, Any]]:
    """Metadata by partition."""
    records = shop.instance.fetch_materializations(dg.AssetKey(["shop", "orders"]), limit=20).records
    events = [record.asset_materialization for record in records]
    return {e.partition: {name: value.value for name, value in e.metadata.items()} for e in events if e is not None}


def test_a_load_is_profiled_in_passing_where_the_manifest_asks(csv_shop: Declare) -> None:
    validators = {"cardinality": {"column": "id", "max_distinct": 9}, "null_ratio": {"column": "name", "max": 0.5}}
    rule = {"type": "range", "field": "id", "max": 100, "on_fail": "skip"}
    shop = csv_shop(validate={"profile": True, "dataset_level": validators, "row_level": [rule]})
    shop.file("data/orders.csv", "id,name\n1,ann\n2,\n3,ann\n1000,eve\n")
    assert shop.apply()["orders"]["error"] is None
    (told,) = materialized(shop).values()
    numbers = {name: value for name, value in told.items() if name.startswith("load_profile/")}
    assert numbers == {
        "load_profile/id/null_ratio": 0.0,
        "load_profile/id/distinct": 3,
        "load_profile/id/min": 1,
        "load_profile/id/max": 3,
        "load_profile/id/mean": 2.0,
        "load_profile/name/null_ratio": pytest.approx(1 / 3),
        "load_profile/name/distinct": 1,
        "load_profile/name/shortest": 3,
        "load_profile/name/longest": 3,
    }
    rows = {record.data["column"]: record.data for record in told["load_profile"].records}
    assert (rows["id"]["type"], rows["name"]["values"]) == ("bigint", "ann (2)")
    assert {"cardinality_id", "null_ratio_name", "range_id"} <= set(shop.checks)


def test_each_slice_speaks_of_its_own_rows(csv_shop: Declare) -> None:
    shop = csv_shop(validate={"profile": True}, incremental="id", backfill={"window": 10})
    shop.file("data/orders.csv", "id,name\n1,ann\n12,bob\n2,\n13,\n14,\n,zoe\n")
    assert shop.apply()["orders"]["error"] is None
    told = materialized(shop)
    assert {key: (e.get("load_profile/id/max"), e["load_profile/name/distinct"]) for key, e in told.items()} == {
        "id-0000000000..0000000010": (2, 1),
        "id-0000000010..0000000020": (14, 1),
        "null": (None, 1),
    }


def test_nobody_who_does_not_ask_pays_for_a_profile(csv_shop: Declare) -> None:
    shop = csv_shop()
    shop.file("data/orders.csv", "id,name\n1,ann\n")
    assert shop.apply()["orders"]["error"] is None
    (told,) = materialized(shop).values()
    assert not [name for name in told if name.startswith("load_profile")]


def test_a_table_takes_the_profile_that_its_pipeline_asks_for_or_not(shop: ShopProject) -> None:
    source = {"connector": "files", "config": {"path": "data", "format": "csv"}}
    tables = ["a", {"name": "b", "validate": {"profile": False}}]
    shop.manifest({"id": "p", "source": source, "tables": tables, "validate": {"profile": True}})
    with shop.runtime() as runtime:
        assert [table.validation.profile for table in runtime.project.tables] == [True, False]


def test_the_rows_of_an_empty_chunk_have_a_profile_too(csv_shop: Declare) -> None:
    settings = {"validate": {"profile": True}, "load": {"mode": "truncate", "fail_on_empty_source": False}}
    shop = csv_shop(columns={"id": "integer"}, **settings)
    shop.file("data/orders.csv", "id\n")
    assert shop.apply()["orders"]["error"] is None
    (told,) = materialized(shop).values()
    assert (told["load_profile/id/null_ratio"], told["load_profile/id/distinct"]) == (0.0, 0)


def test_a_load_from_postgresql_is_profiled_by_the_types_of_its_target(shop: ShopProject) -> None:
    shop.execute("""
        CREATE SCHEMA src;
        CREATE TABLE src.orders (id bigint, price numeric, doc jsonb, key uuid, tags text[], at timestamptz);
        INSERT INTO src.orders
        SELECT i, i / 4.0, '{}', gen_random_uuid(), '{a}', now() FROM generate_series(1, 40) AS i;
        INSERT INTO src.orders VALUES (41, 'NaN', NULL, NULL, NULL, NULL)
    """)
    source = {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}}
    shop.manifest({"id": "shop", "source": source, "tables": ["orders"], "validate": {"profile": True}})
    assert shop.apply()["orders"]["error"] is None
    (told,) = materialized(shop).values()
    rows = {record.data["column"]: record.data for record in told["load_profile"].records}
    assert {name: (row["type"], row["nulls"], row["distinct"], row["max"]) for name, row in rows.items()} == {
        "id": ("bigint", 0, "41", "41"),
        "price": ("numeric", 0, "41", "NaN"),
        "doc": ("jsonb", 1, None, None),
        "key": ("uuid", 1, "40", None),
        "tags": ("text[]", 1, None, None),
        "at": ("timestamp with time zone", 1, "1", rows["at"]["max"]),
    }
    assert told["load_profile/price/min"] == 0.25


def test_the_first_columns_of_a_wide_load_are_profiled(csv_shop: Declare) -> None:
    shop = csv_shop(validate={"profile": True})
    shop.file("data/orders.csv", ",".join(f"c{place}" for place in range(210)) + "\n" + ",".join("1" * 210) + "\n")
    assert shop.apply()["orders"]["error"] is None
    (told,) = materialized(shop).values()
    assert len(told["load_profile"].records) == 200
    assert told["load_profile/left_out"] == "numbers of the first 50 of 210 columns; the table shows the first 200"


def test_rows_come_back_from_the_quarantine_of_a_table_that_is_profiled(shop: ShopProject) -> None:
    shop.execute(SRC)
    database(shop, EMAIL, validate={"profile": True}, **MODES["append"])
    add(shop, (1, 0, "a@b"), (2, 1, "x"))
    assert shop.apply()["orders"]["error"] is None
    database(shop, ANY, validate={"profile": True}, **MODES["append"])
    assert replayed(shop)["replayed"] == 1
    assert ids(shop) == [1, 2]
