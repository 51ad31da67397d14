"""scd2: a row of the target for every version of a row of the source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hakiri_dagster.destinations.refusals_contract import EmptySource
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.planning.columns import Column, SourceSchema
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.equality import EQUAL_OR_WITHOUT_EQUALITY, THEIR_TYPES
from tests.integration.destinations.postgres.scenario import Shop, order, window

VERSIONS = SourceSchema(
    (
        Column("id", "bigint"),
        Column("customer", "string"),
        Column("gone", "boolean"),
        Column("updated_at", "timestamp"),
    )
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Version = tuple[int, str | None, int, int | None]
"""Key, content, valid from and to, in seconds since 1970."""


def row(id_: int, customer: str | None, at: int, *, gone: bool = False) -> tuple[Any, ...]:
    return id_, customer, gone, EPOCH + timedelta(seconds=at)


def history(shop: Shop) -> list[Version]:
    kept = shop.query(
        "SELECT id, customer, extract(epoch FROM valid_from)::int, extract(epoch FROM valid_to)::int, is_current "
        "FROM raw.orders ORDER BY id, valid_from"
    )
    assert all(is_current == (until is None) for *_, until, is_current in kept)
    return [(id_, customer, since, until) for id_, customer, since, until, _ in kept]


@pytest.fixture
def shop(make_shop: MakeShop) -> Shop:
    """Chunked by its cursor."""
    return make_shop("scd2", schema=VERSIONS, load={"hard_delete": "gone", "close_missing": False})


@pytest.fixture
def whole(make_shop: MakeShop) -> Shop:
    """Without a cursor."""
    return make_shop("scd2", schema=VERSIONS, cursor=None, load={"hard_delete": "gone"})


def test_each_change_is_a_new_version_and_closes_the_one_before(shop: Shop) -> None:
    shop.publish([row(1, "ann", 1), row(2, "bob", 1)], window(0, 10))
    shop.publish([row(1, "anna", 11)], window(10, 20))
    assert history(shop) == [(1, "ann", 1, 11), (1, "anna", 11, None), (2, "bob", 1, None)]


def test_several_versions_in_one_slice_become_as_many_rows(shop: Shop) -> None:
    shop.publish([row(1, "c", 3), row(1, "a", 1), row(1, "b", 2), row(1, "b", 4)], window(0, 10))
    assert history(shop) == [(1, "a", 1, 2), (1, "b", 2, 3), (1, "c", 3, 4), (1, "b", 4, None)]


def test_a_late_row_is_put_in_its_place(shop: Shop) -> None:
    shop.publish([row(1, "a", 1), row(1, "c", 30)], window(0, 40))
    shop.publish([row(1, "b", 11)], window(10, 20))
    assert history(shop) == [(1, "a", 1, 11), (1, "b", 11, 30), (1, "c", 30, None)]


def test_a_late_row_equal_to_the_one_before_adds_nothing(shop: Shop) -> None:
    shop.publish([row(1, "a", 1), row(1, "c", 30)], window(0, 40))
    before = shop.fingerprint()
    shop.publish([row(1, "a", 11)], window(10, 20))
    assert shop.fingerprint() == before


def test_a_late_row_equal_to_the_one_after_makes_that_valid_earlier(shop: Shop) -> None:
    shop.publish([row(1, "a", 1), row(1, "c", 30)], window(0, 40))
    shop.publish([row(1, "c", 11)], window(10, 20))
    assert history(shop) == [(1, "a", 1, 11), (1, "c", 11, None)]


def test_what_a_row_said_again_is_known_when_another_comes_between(shop: Shop) -> None:
    """a at 1 and at 8; b at 5 comes last. Without a memory of 8, b would be current."""
    shop.publish([row(1, "a", 1), row(1, "a", 8)], window(0, 10))
    shop.publish([row(1, "b", 5)], window(0, 10))
    assert history(shop) == [(1, "a", 1, 5), (1, "b", 5, 8), (1, "a", 8, None)]


def test_a_row_that_said_nothing_new_and_is_a_delete_now_closes_what_comes_before_it(shop: Shop) -> None:
    shop.publish([row(1, "a", 1), row(1, "a", 8)], window(0, 10))
    shop.publish([row(1, None, 5, gone=True), row(1, None, 8, gone=True)], window(0, 10))
    shop.publish([row(1, "b", 7)], window(0, 10))
    assert history(shop) == [(1, "a", 1, 5), (1, "b", 7, 8)]


def test_what_somebody_took_away_does_not_come_back_without_its_values(shop: Shop) -> None:
    shop.publish([row(1, "a", 1), row(1, "a", 8)], window(0, 10))
    shop.query("DELETE FROM raw.orders")
    shop.publish([row(1, "b", 5)], window(0, 10))
    assert history(shop) == [(1, "b", 5, None)]


def test_of_one_key_and_one_time_the_last_row_counts(shop: Shop) -> None:
    shop.publish([row(1, "a", 1), row(1, "b", 1)], window(0, 10))
    assert history(shop) == [(1, "b", 1, None)]
    shop.publish([row(1, "c", 1)], window(0, 10))
    assert history(shop) == [(1, "c", 1, None)]


def test_two_rows_of_one_key_and_time_are_rejected_where_the_manifest_says_so(make_shop: MakeShop) -> None:
    shop = make_shop("scd2", schema=VERSIONS, load={"close_missing": False, "on_duplicate_key": "reject"})
    shop.publish([row(1, "a", 1), row(1, "b", 2)], window(0, 10))
    with pytest.raises(DestinationError, match=r"1 key\(s\) occur more than once.*\(id, updated_at\)"):
        shop.publish([row(1, "a", 5), row(1, "b", 5)], window(0, 10))


def test_a_flagged_row_closes_the_version_and_a_row_that_comes_back_opens_one(shop: Shop) -> None:
    shop.publish([row(1, "a", 1), row(1, None, 5, gone=True), row(2, None, 5, gone=True)], window(0, 10))
    assert history(shop) == [(1, "a", 1, 5)]
    shop.publish([row(1, "a", 15)], window(10, 20))
    assert history(shop) == [(1, "a", 1, 5), (1, "a", 15, None)]


def test_a_delete_is_known_when_the_row_that_it_closes_comes_later(shop: Shop) -> None:
    shop.publish([row(1, None, 15, gone=True)], window(10, 20))
    shop.publish([row(1, "a", 1)], window(0, 10))
    assert history(shop) == [(1, "a", 1, 15)]


def test_versions_that_are_the_same_are_not_written_again(shop: Shop) -> None:
    rows = [row(1, "a", 1), row(1, "b", 2), row(1, "b", 4), row(2, "x", 1), row(2, None, 3, gone=True)]
    shop.publish(rows, window(0, 10))
    before = shop.fingerprint()
    shop.publish(rows, window(0, 10))
    shop.publish(rows[2:], window(0, 10))
    assert shop.fingerprint() == before


def test_a_closed_version_keeps_the_load_that_wrote_it(shop: Shop) -> None:
    first = shop.publish([row(1, "a", 1)], window(0, 10))
    second = shop.publish([row(1, "b", 11)], window(10, 20))
    loads = shop.query("SELECT _hakiri_load_id FROM raw.orders ORDER BY valid_from")
    assert loads == [(first.load_id,), (second.load_id,)]


def now(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.query("SELECT id, customer FROM raw.orders WHERE is_current ORDER BY id")


def test_a_whole_source_closes_what_it_no_longer_holds_at_the_time_of_the_load(whole: Shop) -> None:
    whole.publish([row(1, "ann", 0), row(2, "bob", 0)])
    whole.publish([row(1, "ann", 0), row(3, "cid", 0)])
    assert now(whole) == [(1, "ann"), (3, "cid")]
    [(of_this_load, recent)] = whole.query(
        "SELECT valid_to = (SELECT max(valid_from) FROM raw.orders), valid_to > now() - interval '1 minute' "
        "FROM raw.orders WHERE id = 2"
    )
    assert (of_this_load, recent) == (True, True)
    before = whole.fingerprint()
    whole.publish([row(1, "ann", 0), row(3, "cid", 0)])
    assert whole.fingerprint() == before


def test_a_row_that_comes_back_to_a_whole_source_opens_a_version_after_a_gap(whole: Shop) -> None:
    for rows in ([row(1, "ann", 0), row(2, "bob", 0)], [row(2, "bob", 0)], [row(1, "ann", 0), row(2, "bob", 0)]):
        whole.publish(rows)
    assert now(whole) == [(1, "ann"), (2, "bob")]
    assert whole.query(
        "SELECT customer, valid_to < lead(valid_from) OVER (ORDER BY valid_from) FROM raw.orders WHERE id = 1"
    ) == [("ann", True), ("ann", None)]


def test_a_flagged_row_of_a_whole_source_closes_the_version(whole: Shop) -> None:
    whole.publish([row(1, "ann", 0), row(2, "bob", 0)])
    whole.publish([row(1, "ann", 0, gone=True), row(2, "bob", 0)])
    assert now(whole) == [(2, "bob")]


def test_nothing_is_closed_while_rows_of_the_source_are_set_aside(whole: Shop) -> None:
    whole.publish([row(1, "ann", 0), row(2, "bob", 0)])
    load = whole.load()
    incomplete = replace(whole.candidate(load, [row(1, "new", 0)]), set_aside=2)
    prepared = whole.destination.prepare(load, incomplete)
    assert "nothing was closed, because 2 row(s)" in prepared.notes[0]
    prepared.publish(None, 0)
    assert now(whole) == [(1, "new"), (2, "bob")]


def test_an_empty_source_is_refused_unless_it_may_be_empty(whole: Shop, make_shop: MakeShop) -> None:
    whole.publish([row(1, "ann", 0)])
    with pytest.raises(EmptySource, match="load mode scd2 would close every row of the target"):
        whole.prepare([])
    allowed = make_shop("scd2", schema=VERSIONS, cursor=None, load={"fail_on_empty_source": False})
    allowed.publish([])
    assert now(allowed) == []


def test_a_whole_source_with_a_cursor_is_right_though_the_cursor_went_back(make_shop: MakeShop) -> None:
    shop = make_shop("scd2", schema=VERSIONS)
    shop.publish([row(1, "new", 9), row(2, "bob", 1), row(3, "cid", 1)])
    shop.publish([row(1, "restored", 2), row(2, "bob", 5)])
    assert now(shop) == [(1, "restored"), (2, "bob")]
    assert history(shop)[:2] == [(1, "restored", 2, 9), (1, "new", 9, history(shop)[2][2])]
    before = shop.fingerprint()
    shop.publish([row(1, "restored", 2), row(2, "bob", 5)])
    assert shop.fingerprint() == before


def test_a_version_of_the_future_is_closed_after_it_began(make_shop: MakeShop) -> None:
    shop = make_shop("scd2", schema=VERSIONS)
    shop.publish([row(1, "later", 2_000_000_000), row(2, "bob", 1)])
    shop.publish([row(2, "bob", 1)])
    assert now(shop) == [(2, "bob")]
    assert shop.query("SELECT valid_to > valid_from FROM raw.orders WHERE id = 1") == [(True,)]
    before = shop.fingerprint()
    shop.publish([row(2, "bob", 1)])
    assert shop.fingerprint() == before


@pytest.mark.parametrize("kind", ["date", "timestamp_ntz"])
def test_dates_and_local_times_are_times_in_utc(make_shop: MakeShop, kind: str) -> None:
    schema = SourceSchema((Column("id", "bigint"), Column("customer", "string"), Column("updated_at", kind)))
    shop = make_shop("scd2", schema=schema, load={"close_missing": False})
    shop.publish([(1, "a", datetime(2026, 1, 1)), (1, "b", datetime(2026, 1, 2))])
    assert shop.query("SELECT customer, valid_from FROM raw.orders ORDER BY 2") == [
        ("a", datetime(2026, 1, 1, tzinfo=UTC)),
        ("b", datetime(2026, 1, 2, tzinfo=UTC)),
    ]


def test_a_number_as_cursor_tells_the_last_row_of_a_whole_source(make_shop: MakeShop) -> None:
    shop = make_shop("scd2")
    shop.publish([order(1, "b", updated_at=2), order(1, "c", updated_at=3), order(1, "a", updated_at=1)])
    assert now(shop) == [(1, "c")]


def refused(shop: Shop) -> list[str]:
    changes = shop.destination.planned_changes(shop.table, shop.schema)
    return [change.description for change in changes if change.refused]


def test_a_number_as_cursor_cannot_say_from_when_a_version_is_valid(make_shop: MakeShop) -> None:
    [message] = refused(make_shop("scd2", load={"close_missing": False}))
    assert message.startswith("the cursor updated_at is bigint, and scd2 takes from it from when a row is valid")


def test_null_keys_and_null_times_are_refused_row_by_row(shop: Shop) -> None:
    load = shop.load()
    plan = shop.plan(load.target)
    batch = shop.batch(plan.columns, load, [(None, "a", False, EPOCH), (1, "b", False, None), (1, "c", False, EPOCH)])
    _, refusals = plan.prepare(batch)
    assert [(r.mask.to_pylist(), r.rule, r.message) for r in refusals] == [
        ([True, False, False], "not_null", "id is NULL, and it is part of the key"),
        ([False, True, False], "not_null", "updated_at is NULL, and it says from when the row is valid"),
    ]


COLUMNS = "id bigint, customer text, gone boolean, updated_at timestamptz, valid_from {}, valid_to {}, is_current {}"


def test_a_target_that_has_the_columns_is_used_as_it_is(shop: Shop) -> None:
    columns = COLUMNS.format("timestamp NOT NULL", "timestamptz", "boolean")
    shop.query(
        f"CREATE SCHEMA raw; CREATE TABLE raw.orders (number serial PRIMARY KEY, {columns}, note text DEFAULT 'n')"
    )
    shop.publish([row(1, "a", 1)], window(0, 10))
    shop.query("UPDATE raw.orders SET note = 'called'")
    shop.publish([row(1, "b", 11)], window(10, 20))
    assert history(shop) == [(1, "a", 1, 11), (1, "b", 11, None)]
    assert shop.query("SELECT note FROM raw.orders ORDER BY valid_from") == [("called",), ("n",)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("id bigint, customer text", "the target exists and has no valid_from, valid_to, is_current; give the table"),
        (COLUMNS.format("timestamptz", "timestamptz", "boolean"), "valid_from may be NULL in the target"),
        (COLUMNS.format("date", "timestamptz", "boolean"), "valid_from is date in the target, and scd2 needs"),
        (COLUMNS.format("timestamptz", "timestamptz", "text"), "is_current is text in the target, and scd2 needs"),
        (
            COLUMNS.format("timestamptz", "timestamptz", "boolean GENERATED ALWAYS AS (valid_to IS NULL) STORED"),
            "is_current is generated by the target",
        ),
        (
            COLUMNS.format("timestamptz", "timestamptz", "boolean") + ", UNIQUE (id)",
            "the target's unique index on (id) allows one row a key, and scd2 keeps several",
        ),
        (
            COLUMNS.replace("updated_at timestamptz", "updated_at bigint").format("timestamptz", "timestamptz", "bool"),
            "the cursor updated_at is bigint, and scd2 takes",
        ),
    ],
)
def test_a_target_that_does_not_fit_is_refused_at_plan(shop: Shop, columns: str, message: str) -> None:
    shop.query(f"CREATE SCHEMA raw; CREATE TABLE raw.orders ({columns})")
    assert any(text.startswith(message) for text in refused(shop)), refused(shop)


def test_a_source_with_a_column_of_that_name_is_refused(make_shop: MakeShop) -> None:
    schema = SourceSchema((Column("id", "bigint"), Column("valid_to", "string")))
    assert refused(make_shop("scd2", schema=schema, cursor=None)) == [
        "the source has a column valid_to, which scd2 fills by itself; rename it at the source"
    ]


@pytest.mark.parametrize(("kind", "before", "after"), EQUAL_OR_WITHOUT_EQUALITY)
def test_a_value_that_is_stored_otherwise_is_a_version_and_one_that_is_not_is_none(
    make_shop: MakeShop, kind: str, before: str, after: str
) -> None:
    content = Column("content", "string", native_type=kind)
    schema = SourceSchema((Column("id", "bigint"), content, Column("at", "timestamp")))
    shop = make_shop("scd2", schema=schema, cursor="at", load={"close_missing": False})
    shop.query(THEIR_TYPES)
    said = [(1, value, EPOCH + timedelta(seconds=at)) for at, value in enumerate([before, before, after, after])]
    kept = "SELECT extract(epoch FROM valid_from)::int FROM raw.orders WHERE id = %s ORDER BY 1"
    for at, event in enumerate(said):
        shop.publish([event], window(at, at + 1))
    assert shop.query(kept, 1) == [(0,), (2,)], "one after the other"
    shop.publish([(2, *event) for _, *event in said], window(0, 9))
    assert shop.query(kept, 2) == [(0,), (2,)], "all at once"


def test_two_loads_of_one_target_at_once_add_to_the_history_one_after_the_other(make_shop: MakeShop) -> None:
    """Of different chunks, so that no fence keeps them apart."""
    one, other = (make_shop("scd2", schema=VERSIONS, load={"close_missing": False}) for _ in range(2))
    one.publish([row(1, "a", 1)], window(0, 10))
    first = one.prepare([row(1, "b", 11)], window(10, 20))
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(other.publish, [row(1, "c", 21)], window(20, 30))
        assert not wait([second], 0.5).done
        first.publish(None, 0)
        second.result(30)
    assert history(one) == [(1, "a", 1, 11), (1, "b", 11, 21), (1, "c", 21, None)]


@dataclass(frozen=True)
class Event:
    key: int
    at: int
    content: str | None
    gone: bool


def expected(events: Iterable[Event]) -> list[Version]:
    """The history that a set of events makes, in the plainest words."""
    kept: list[Version] = []
    for key, of_key in groupby(sorted(events, key=lambda e: (e.key, e.at)), lambda e: e.key):
        states: list[tuple[int, str | None, bool]] = [(-1, None, True)]
        for event in of_key:
            content = None if event.gone else event.content
            if (content, event.gone) != states[-1][1:]:
                states.append((event.at, content, event.gone))
        ends: Sequence[int | None] = [at for at, _, _ in states[1:]] + [None]
        kept += [(key, content, at, until) for (at, content, gone), until in zip(states, ends, strict=True) if not gone]
    return kept


EVENTS = st.lists(
    st.builds(
        Event,
        key=st.integers(1, 2),
        at=st.integers(0, 9),
        content=st.sampled_from(["a", "b", None]),
        gone=st.sampled_from([False, False, True]),
    ),
    unique_by=lambda event: (event.key, event.at),
    max_size=14,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS, cuts=st.lists(st.integers(0, 14), max_size=4), seed=st.randoms(use_true_random=False))
def test_slices_in_any_order_and_more_than_once_leave_one_history(
    shop: Shop, events: list[Event], cuts: list[int], seed: Any
) -> None:
    shop.query("DROP TABLE IF EXISTS raw.orders")
    seed.shuffle(events)
    edges = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    slices = [events[one:other] for one, other in pairwise(edges)]
    again = [*slices, *slices]
    seed.shuffle(again)
    for index, part in enumerate([*slices, *again]):
        shop.publish([row(e.key, e.content, e.at, gone=e.gone) for e in part], window(index, index + 1))
    if events:
        assert history(shop) == expected(events)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(loads=st.lists(EVENTS.filter(bool), min_size=1, max_size=5))
def test_what_a_later_load_says_of_a_time_counts(shop: Shop, loads: list[list[Event]]) -> None:
    shop.query("DROP TABLE IF EXISTS raw.orders")
    said: dict[tuple[int, int], Event] = {}
    for part in loads:
        shop.publish([row(e.key, e.content, e.at, gone=e.gone) for e in part], window(0, 10))
        said |= {(event.key, event.at): event for event in part}
    assert history(shop) == expected(said.values())
