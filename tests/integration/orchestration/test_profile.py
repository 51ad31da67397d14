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
