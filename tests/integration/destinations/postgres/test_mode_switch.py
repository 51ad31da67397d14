"""A live target whose table changes its load mode: after one load in the new mode, it holds what that mode promises."""

from __future__ import annotations

from itertools import permutations

import pytest

from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.load_spec import WHOLE_TABLE_MODES, LoadMode
from hakiri_dagster.planning.chunks import Slice
from hakiri_dagster.planning.mode_switch import LastLoad
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import WHOLE, order, window

MODES: tuple[LoadMode, ...] = (
    "append", "truncate", "upsert", "blue_green", "delete_missing", "incremental_watermark",
)  # fmt: skip
FIRST = [order(1, "ann", updated_at=1), order(2, "bob", updated_at=2)]
SECOND = [order(1, "ann", updated_at=1), order(2, "ben", updated_at=2), order(3, "cid", updated_at=3)]
THIRD = [order(1, "ann", updated_at=1), order(2, "ben", updated_at=2), order(3, "dan", updated_at=3)]


def slice_of(mode: LoadMode) -> Slice:
    return WHOLE if mode in WHOLE_TABLE_MODES else window(0, 100)


@pytest.mark.parametrize(("before", "after"), list(permutations(MODES, 2)))
def test_one_load_in_the_new_mode_neither_loses_nor_doubles_rows(
    make_shop: MakeShop, before: LoadMode, after: LoadMode
) -> None:
    shop = make_shop(before)
    shop.publish(FIRST, slice_of(before))
    shop.publish(SECOND, slice_of(before))
    make_shop(after).publish(THIRD, slice_of(after))
    rows = shop.query("SELECT id, customer FROM raw.orders ORDER BY id")
    assert rows == [(1, "ann"), (2, "ben"), (3, "dan")]


@pytest.mark.parametrize("other", MODES)
def test_a_target_of_history_and_any_other_do_not_become_each_other(make_shop: MakeShop, other: LoadMode) -> None:
    make_shop("scd2", target_name="history").publish(FIRST)
    with pytest.raises(DestinationError, match="valid_from is NOT NULL without a default"):
        make_shop(other, target_name="history").ensure()
    make_shop(other).publish(FIRST, slice_of(other))
    with pytest.raises(DestinationError, match="has no valid_from, valid_to, is_current; give"):
        make_shop("scd2").ensure()


@pytest.mark.parametrize("between", ["upsert", "delete_missing"])
def test_rows_that_an_upsert_left_as_they_were_are_known_as_ours_afterwards(
    make_shop: MakeShop, between: LoadMode
) -> None:
    """They bear the id of the load that wrote them, which a later one superseded without touching them."""
    shop = make_shop("append")
    shop.publish(FIRST, window(0, 100))
    upserting = make_shop(between)
    upserting.publish(SECOND, slice_of(between))
    upserting.publish(SECOND, slice_of(between))
    shop.query("DROP INDEX raw.orders_id_idx")  # would refuse what it keeps from being doubled
    shop.publish(THIRD, window(0, 100))
    shop.publish(THIRD, window(0, 100))
    assert shop.ids() == [1, 2, 3]
    shop.query("INSERT INTO raw.orders (id, updated_at) VALUES (99, 5)")
    shop.publish([], window(0, 100))
    assert shop.ids() == [99]


def test_the_destination_remembers_how_the_rows_that_are_there_were_loaded(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", primary_key=("id",))
    assert shop.destination.last_load(shop.table) is None
    shop.publish(FIRST)
    assert shop.destination.last_load(shop.table) == LastLoad("upsert", ("id",), ("id",))
    make_shop("truncate").publish(FIRST)
    assert shop.destination.last_load(shop.table) == LastLoad("truncate", (), ())
    shop.query("UPDATE hakiri.ledger SET upsert_key = NULL, primary_key = NULL")
    assert shop.destination.last_load(shop.table) == LastLoad("truncate", None, None)


def test_duplicates_of_a_new_key_in_the_target_are_told_by_the_plan(make_shop: MakeShop) -> None:
    make_shop("append").publish([order(1), order(1, "ben"), order(2)], window(0, 100))
    shop = make_shop("upsert")
    (refused,) = [c for c in shop.destination.planned_changes(shop.table, shop.schema) if c.refused]
    assert "1 key(s) occur more than once in the target" in refused.description
    assert "(1) 2 times; remove the duplicates there" in refused.description
