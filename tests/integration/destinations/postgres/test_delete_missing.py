from __future__ import annotations

from dataclasses import replace

import pytest

from hakiri_dagster.errors import DestinationError
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order


@pytest.fixture
def shop(make_shop: MakeShop) -> Shop:
    shop = make_shop("delete_missing")
    shop.publish([order(1, "ann"), order(2, "bob"), order(3, "cid")])
    return shop


def test_what_the_source_no_longer_holds_is_deleted_and_what_is_the_same_is_left_alone(shop: Shop) -> None:
    untouched = shop.query("SELECT ctid::text, xmin::text FROM raw.orders WHERE id = 1")
    shop.publish([order(1, "ann"), order(2, "ben"), order(4, "dan")])
    assert shop.query("SELECT id, customer FROM raw.orders ORDER BY id") == [(1, "ann"), (2, "ben"), (4, "dan")]
    assert shop.query("SELECT ctid::text, xmin::text FROM raw.orders WHERE id = 1") == untouched


def test_rows_of_somebody_else_s_are_not_in_the_source_either(shop: Shop) -> None:
    shop.query("INSERT INTO raw.orders (id) VALUES (99)")
    shop.publish([order(1)])
    assert shop.ids() == [1]


def test_the_source_is_right_though_its_cursor_went_back(shop: Shop) -> None:
    shop.publish([order(1, "new", updated_at=9)])
    shop.publish([order(1, "restored", updated_at=2)])
    assert shop.query("SELECT customer FROM raw.orders") == [("restored",)]


def test_nothing_is_deleted_while_rows_of_the_source_are_set_aside(shop: Shop) -> None:
    load = shop.load()
    incomplete = replace(shop.candidate(load, [order(1, "new")]), set_aside=2)
    prepared = shop.destination.prepare(load, incomplete)
    assert "2 row(s) of the source were set aside" in prepared.notes[0]
    prepared.publish(None, 0)
    assert shop.query("SELECT id, customer FROM raw.orders ORDER BY id") == [(1, "new"), (2, "bob"), (3, "cid")]


def test_an_empty_source_is_refused_unless_it_may_be_empty(shop: Shop, make_shop: MakeShop) -> None:
    with pytest.raises(DestinationError, match="load mode delete_missing would leave the target empty"):
        shop.prepare([])
    assert shop.ids() == [1, 2, 3]
    allowed = make_shop("delete_missing", load={"fail_on_empty_source": False})
    allowed.publish([])
    assert allowed.ids() == []


def test_it_needs_a_key(make_shop: MakeShop) -> None:
    with pytest.raises(DestinationError, match="mode delete_missing needs an upsert_key or a primary_key"):
        make_shop("delete_missing", upsert_key=()).ensure()
