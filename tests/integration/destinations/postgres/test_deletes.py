"""`hard_delete` and `soft_delete`: rows of the source that say that their key is gone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from itertools import permutations
from typing import Any

import pytest

from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.load_spec import LoadMode
from hakiri_dagster.planning.columns import Column, SourceSchema
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order, window

FLAGGED = SourceSchema(
    (Column("id", "bigint"), Column("customer", "string"), Column("gone", "boolean"), Column("updated_at", "bigint"))
)
STAMPED = SourceSchema(
    (
        Column("id", "bigint"),
        Column("customer", "string"),
        Column("gone", "timestamp"),
        Column("updated_at", "bigint"),
    )
)
BOTH = pytest.mark.parametrize("mode", ["upsert", "delete_missing"])


def flagged_shop(make_shop: MakeShop, mode: LoadMode = "upsert", **changes: Any) -> Shop:
    load = {"hard_delete": "gone", **changes.pop("load", {})}
    return make_shop(mode, schema=FLAGGED, load=load, **changes)


def rows(shop: Shop, *columns: str) -> list[tuple[Any, ...]]:
    chosen = ", ".join(["id", "customer", *columns])
    return shop.query(f"SELECT {chosen} FROM raw.orders ORDER BY id")


@BOTH
def test_a_flagged_row_deletes_the_row_of_its_key(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = flagged_shop(make_shop, mode)
    shop.publish([(1, "ann", False, 1), (2, "bob", None, 1)], window(0, 10))
    shop.publish([(1, "ann", True, 2), (2, "bob", False, 1), (9, "never there", True, 2)], window(0, 10))
    assert rows(shop, "gone") == [(2, "bob", False)]


def test_any_value_of_another_type_than_boolean_deletes(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", schema=STAMPED, load={"hard_delete": "gone"})
    shop.publish([(1, "ann", None, 1), (2, "bob", None, 1)], window(0, 10))
    shop.publish([(1, "ann", 0, 2)], window(0, 10))
    assert rows(shop) == [(2, "bob")]


def test_the_last_row_of_a_key_in_the_slice_says_whether_it_is_deleted(make_shop: MakeShop) -> None:
    shop = flagged_shop(make_shop)
    shop.publish([(1, "a", True, 5), (1, "b", False, 6), (2, "a", True, 6), (2, "b", False, 5)], window(0, 10))
    assert rows(shop) == [(1, "b")]


def test_without_a_cursor_the_row_read_last_says_whether_it_is_deleted(make_shop: MakeShop) -> None:
    shop = flagged_shop(make_shop, cursor=None)
    shop.publish([(1, "a", True, 0), (1, "b", False, 0), (2, "a", False, 0), (2, "b", True, 0)])
    assert rows(shop) == [(1, "b")]


EVENTS = [
    [(1, "old", False, 5), (2, "bob", False, 5)],
    [(1, "old", True, 15), (3, "cid", True, 15)],
    [(2, "ben", False, 25), (3, "cid", False, 22)],
]


@pytest.mark.parametrize("sequence", list(permutations(range(3))), ids=str)
def test_slices_in_any_order_leave_the_same_rows(make_shop: MakeShop, sequence: tuple[int, ...]) -> None:
    """A row that is older than the delete of its key does not bring it back."""
    shop = flagged_shop(make_shop)
    for index in (*sequence, *sequence):
        shop.publish(EVENTS[index], window(index * 10, index * 10 + 10))
    assert rows(shop) == [(2, "ben"), (3, "cid")]


def test_what_was_deleted_is_forgotten_with_the_target(make_shop: MakeShop) -> None:
    shop = flagged_shop(make_shop)
    shop.publish([(1, "ann", True, 15)], window(10, 20))
    shop.query("DROP TABLE raw.orders")
    shop.publish([(1, "ann", False, 5)], window(0, 10))
    assert rows(shop) == [(1, "ann")]


def test_a_load_that_is_undone_leaves_no_memory_of_its_deletes(make_shop: MakeShop) -> None:
    shop = flagged_shop(make_shop)
    shop.prepare([(1, "ann", True, 15)], window(10, 20)).undo()
    assert shop.query("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'marks%'") == [(0,)]


def test_deletes_are_remembered_of_the_key_that_the_table_has_now(make_shop: MakeShop) -> None:
    flagged_shop(make_shop).publish([(1, "ann", True, 15)], window(10, 20))
    by_name = flagged_shop(make_shop, upsert_key=("customer",))
    by_name.publish([(1, "ann", False, 5), (2, "bob", True, 15)], window(0, 10))
    by_name.publish([(2, "bob", False, 6)], window(0, 10))
    assert rows(by_name) == [(1, "ann")]


def test_a_column_that_was_widened_is_remembered_in_its_new_type(make_shop: MakeShop) -> None:
    shop = flagged_shop(make_shop)
    shop.query(
        "CREATE SCHEMA raw; CREATE TABLE raw.orders (id int PRIMARY KEY, customer text, gone bool, updated_at bigint)"
    )
    shop.publish([(1, "ann", True, 15)], window(10, 20))
    shop.query("ALTER TABLE raw.orders ALTER id TYPE bigint")
    shop.publish([(2**40, "bob", True, 15)], window(10, 20))
    shop.publish([(1, "ann", False, 5), (2**40, "bob", False, 5)], window(0, 10))
    assert rows(shop) == []


def test_nothing_is_remembered_of_loads_that_have_all_rows(make_shop: MakeShop) -> None:
    shop = flagged_shop(make_shop, "delete_missing")
    shop.publish([(1, "ann", True, 9), (2, "bob", False, 9)])
    shop.publish([(1, "ann", False, 5), (2, "bob", False, 9)])
    assert rows(shop) == [(1, "ann"), (2, "bob")]


@BOTH
def test_soft_delete_marks_the_row_with_the_time_of_the_load_once(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = flagged_shop(make_shop, mode, load={"soft_delete": "deleted_at"})
    shop.publish([(1, "ann", False, 1), (2, "bob", False, 1)], window(0, 10))
    assert rows(shop, "deleted_at") == [(1, "ann", None), (2, "bob", None)]
    shop.publish([(1, "ann", True, 2), (2, "bob", False, 1)], window(0, 10))
    before = shop.fingerprint()
    [(recent,)] = shop.query("SELECT deleted_at > now() - interval '1 minute' FROM raw.orders WHERE id = 1")
    assert recent
    shop.publish([(1, "ann", True, 2), (2, "bob", False, 1)], window(0, 10))
    assert shop.fingerprint() == before


@BOTH
def test_a_marked_row_that_changes_keeps_the_time_at_which_it_was_deleted(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = flagged_shop(make_shop, mode, load={"soft_delete": "deleted_at"})
    shop.publish([(1, "ann", True, 2)], window(0, 10))
    marked = rows(shop, "deleted_at")
    shop.publish([(1, "anna", True, 3)], window(0, 10))
    assert rows(shop, "deleted_at") == [(1, "anna", marked[0][2])]


@BOTH
def test_a_row_that_comes_back_loses_its_mark(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = flagged_shop(make_shop, mode, load={"soft_delete": "deleted_at"})
    shop.publish([(1, "ann", True, 2), (2, "bob", False, 1)], window(0, 10))
    shop.publish([(1, "ann", False, 3), (2, "bob", False, 1)], window(0, 10))
    assert rows(shop, "deleted_at") == [(1, "ann", None), (2, "bob", None)]


@pytest.mark.parametrize("sequence", list(permutations(range(3))), ids=str)
def test_marked_slices_in_any_order_leave_the_same_rows(make_shop: MakeShop, sequence: tuple[int, ...]) -> None:
    shop = flagged_shop(make_shop, load={"soft_delete": "deleted_at"})
    for index in (*sequence, *sequence):
        shop.publish(EVENTS[index], window(index * 10, index * 10 + 10))
    assert rows(shop, "updated_at", "deleted_at IS NOT NULL") == [
        (1, "old", 15, True),
        (2, "ben", 25, False),
        (3, "cid", 22, False),
    ]


def test_what_is_missing_is_marked_and_left_alone_after_that(make_shop: MakeShop) -> None:
    shop = make_shop("delete_missing", load={"soft_delete": "deleted_at"})
    shop.publish([order(1, "ann"), order(2, "bob")])
    shop.publish([order(1, "ann")])
    assert rows(shop, "deleted_at IS NOT NULL") == [(1, "ann", False), (2, "bob", True)]
    before = shop.fingerprint()
    shop.publish([order(1, "ann")])
    assert shop.fingerprint() == before


def test_the_source_s_own_time_of_deletion_is_kept(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", schema=STAMPED, load={"hard_delete": "gone", "soft_delete": "gone"})
    shop.publish([(1, "ann", None, 1), (2, "bob", 1_000_000, 1)], window(0, 10))
    assert rows(shop, "extract(epoch FROM gone)::int") == [(1, "ann", None), (2, "bob", 1)]


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ({"hard_delete": "away"}, "hard_delete names away, which the source does not have"),
        ({"hard_delete": "gone", "soft_delete": "customer"}, "soft_delete names customer, which is a column of the"),
    ],
)
def test_columns_that_do_not_fit_are_refused_at_plan(make_shop: MakeShop, load: dict[str, str], message: str) -> None:
    shop = make_shop("upsert", schema=FLAGGED, load=load)
    changes = shop.destination.planned_changes(shop.table, shop.schema)
    assert any(change.refused and message in change.description for change in changes)


def test_a_mark_that_is_no_time_in_the_target_is_refused(make_shop: MakeShop) -> None:
    shop = flagged_shop(make_shop, load={"soft_delete": "deleted"})
    shop.query(
        "CREATE SCHEMA raw; "
        "CREATE TABLE raw.orders (id bigint, customer text, gone boolean, updated_at bigint, deleted boolean)"
    )
    with pytest.raises(DestinationError, match="soft_delete needs a time in the target, and deleted is none"):
        shop.ensure()


@pytest.mark.parametrize("first", [[], [(1, "ann", False, 1)]], ids=["unknown", "known"])
def test_an_older_row_waits_for_the_open_load_that_deletes_its_key(make_shop: MakeShop, first: Any) -> None:
    shop, other = flagged_shop(make_shop), flagged_shop(make_shop)
    shop.publish(first, window(0, 10))
    deleting = shop.prepare([(1, "ann", True, 25)], window(20, 30))
    with ThreadPoolExecutor() as thread:
        late = thread.submit(other.publish, [(1, "old", False, 15), (2, "bob", False, 15)], window(10, 20))
        wait([late], timeout=0.5)
        deleting.publish(25, 0)
        late.result(30)
    assert rows(shop) == [(2, "bob")]
