"""Columns that the manifest says were renamed at the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hakiri_dagster.destinations.postgres import catalog
from hakiri_dagster.destinations.postgres.catalog import BaseType
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.load_spec import LoadMode
from hakiri_dagster.planning.columns import Column, SourceSchema
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, five_at_once

HOSTILE = 'am"ount; DROP TABLE x --%s {} $1.ü'


def schema_of(*names: str) -> SourceSchema:
    return SourceSchema(tuple(Column(name, "bigint") for name in names))


def renaming_shop(make_shop: MakeShop, new: str = "amount", mode: LoadMode = "upsert", **changes: Any) -> Shop:
    """Its target was made when `new` was still called `v`."""
    settings = {"cursor": None, "upsert_key": ("id",), **changes}
    before = make_shop(mode, schema=schema_of("id", "v"), **settings)
    before.publish([(1, 7)])
    return make_shop(mode, schema=schema_of("id", new), renamed={new: "v"}, **settings)


def planned(shop: Shop) -> list[str]:
    return [change.description for change in shop.destination.planned_changes(shop.table, shop.schema)]


@pytest.mark.parametrize("mode", ["append", "truncate", "upsert", "blue_green", "delete_missing"])
@pytest.mark.parametrize("new", ["amount", HOSTILE])
def test_the_targets_column_is_renamed_once(make_shop: MakeShop, mode: LoadMode, new: str) -> None:
    shop = renaming_shop(make_shop, new, mode)
    shop.query("CREATE VIEW raw.seen AS SELECT v FROM raw.orders; CREATE INDEX by_v ON raw.orders (v)")
    assert planned(shop) == [f"rename column v of raw.orders to {new}"]
    shop.publish([(1, 8)])
    assert planned(shop) == []
    shop.publish([(1, 9)])
    quoted = '"' + new.replace('"', '""') + '"'
    assert shop.query(f"SELECT id, {quoted} FROM raw.orders") == [(1, 9)]
    assert shop.query("SELECT v FROM raw.seen") == [(9,)]
    target = shop.destination.describe(shop.table)
    assert target is not None
    assert [column.name for column in target.columns] == ["id", new, "_hakiri_load_id"]


def test_a_renamed_key_is_still_the_key(make_shop: MakeShop) -> None:
    before = make_shop("upsert", schema=schema_of("id", "v"), cursor=None)
    before.publish([(1, 7)])
    shop = make_shop("upsert", schema=schema_of("nr", "v"), cursor=None, upsert_key=("nr",), renamed={"nr": "id"})
    assert planned(shop) == ["rename column id of raw.orders to nr"]
    shop.publish([(1, 8), (2, 9)])
    assert shop.query("SELECT nr, v FROM raw.orders ORDER BY nr") == [(1, 8), (2, 9)]


def test_deleted_keys_are_remembered_under_the_new_name(make_shop: MakeShop) -> None:
    columns = (Column("v", "bigint"), Column("gone", "boolean"), Column("updated_at", "bigint"))
    before = make_shop("upsert", schema=SourceSchema((Column("id", "bigint"), *columns)), load={"hard_delete": "gone"})
    before.publish([(1, 7, True, 20)])
    shop = make_shop(
        "upsert",
        schema=SourceSchema((Column("nr", "bigint"), *columns)),
        load={"hard_delete": "gone"},
        upsert_key=("nr",),
        renamed={"nr": "id"},
    )
    assert "rename column id of its marks to nr" in planned(shop)
    shop.publish([(1, 7, False, 10)])
    assert shop.query("SELECT * FROM raw.orders") == [], "an older row does not bring it back"


def test_a_column_that_differs_in_case_only_may_be_renamed(make_shop: MakeShop) -> None:
    shop = renaming_shop(make_shop, "V")
    assert planned(shop) == ["rename column v of raw.orders to V"]
    shop.publish([(1, 8)])
    assert shop.query('SELECT "V" FROM raw.orders') == [(8,)]


def test_a_source_that_has_both_is_told(make_shop: MakeShop) -> None:
    shop = renaming_shop(make_shop)
    shop.schema = schema_of("id", "v", "amount")
    assert planned(shop) == ["`renamed` says that v is called amount now, and the source has both; take it out there"]


def test_a_target_that_has_both_is_told(make_shop: MakeShop) -> None:
    shop = renaming_shop(make_shop)
    shop.query("ALTER TABLE raw.orders ADD amount bigint")
    with pytest.raises(DestinationError, match="the target has both: move what v holds to amount and drop v"):
        shop.ensure()
    shop.query("UPDATE raw.orders SET amount = v; ALTER TABLE raw.orders DROP v")
    shop.publish([(2, 8)])
    assert shop.query("SELECT id, amount FROM raw.orders ORDER BY id") == [(1, 7), (2, 8)]


def test_a_source_that_has_not_renamed_it_yet_is_waited_for(make_shop: MakeShop) -> None:
    shop = renaming_shop(make_shop)
    shop.schema = schema_of("id", "v")
    assert planned(shop) == []


def test_a_rename_while_one_looks_is_not_seen_by_half(make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = renaming_shop(make_shop)
    asked = catalog.base_types

    def asked_after_the_rename(connection: Connection, oid: int) -> Mapping[str, BaseType]:
        monkeypatch.setattr(catalog, "base_types", asked)
        shop.query("ALTER TABLE raw.orders RENAME v TO amount")
        return asked(connection, oid)

    monkeypatch.setattr(catalog, "base_types", asked_after_the_rename)
    assert planned(shop) == ["rename column v of raw.orders to amount"]
    assert planned(shop) == []


def test_two_processes_may_rename_at_once(make_shop: MakeShop) -> None:
    shop = renaming_shop(make_shop)
    five_at_once(shop.ensure)
    assert shop.query("SELECT amount FROM raw.orders") == [(7,)]
