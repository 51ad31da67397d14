"""Rows that pass the encoder and that PostgreSQL refuses: they are found, and the others are loaded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import psycopg
import pytest

from hakiri_dagster.destinations.contract import PreparedLoad
from hakiri_dagster.destinations.postgres import refused_rows
from hakiri_dagster.destinations.refusals_contract import TooManyRowsRefused
from hakiri_dagster.errors import DestinationError, DestinationUnavailable
from hakiri_dagster.manifest.load_spec import LoadMode
from hakiri_dagster.planning.chunks import Slice
from hakiri_dagster.planning.columns import Column, SourceSchema
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import WHOLE, Shop, order, window
from tests.integration.destinations.postgres.test_killed_at_each_statement import (
    killed_at,
    publish_after_a_kill,
    rows_of,
)
from tests.integration.destinations.postgres.test_scd2 import VERSIONS, row

MODES: tuple[LoadMode, ...] = (
    "append", "truncate", "blue_green", "incremental_watermark", "upsert", "delete_missing", "scd2",
)  # fmt: skip
every_mode = pytest.mark.parametrize("mode", MODES)
keyed_mode = pytest.mark.parametrize("mode", ["append", "truncate", "upsert", "delete_missing", "scd2"])

RAISING = """
CREATE FUNCTION raw.judge() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.amount > 100 THEN RAISE EXCEPTION 'too dear: %', new.amount USING ERRCODE = 'SH001'; END IF;
    RETURN new;
END $$;
CREATE TRIGGER judge BEFORE INSERT OR UPDATE ON raw.orders FOR EACH ROW EXECUTE FUNCTION raw.judge()
"""


def loaded(shop: Shop, rows: Sequence[Sequence[Any]], slice_: Slice = WHOLE, blocks: int = 1) -> PreparedLoad:
    """Published."""
    load = shop.load(slice_)
    candidate = shop.candidate(load, rows, blocks=blocks)
    prepared = shop.destination.prepare(load, candidate)
    entry = prepared.publish(candidate.cursor_max, candidate.bytes)
    assert entry.rows + prepared.refused.rows == len(rows)
    return prepared


def told(prepared: PreparedLoad) -> list[tuple[int, str]]:
    kept = [(json.loads(row.row)["id"], row.message) for row in prepared.refused]
    assert len(kept) == prepared.refused.rows
    return sorted(kept)


def refused_ids(prepared: PreparedLoad) -> list[int]:
    return [id_ for id_, _ in told(prepared)]


@every_mode
def test_rows_that_a_check_refuses_are_found_and_the_others_are_loaded(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.publish([order(1), order(2)], window(0, 10) if mode == "incremental_watermark" else WHOLE)
    shop.query("ALTER TABLE raw.orders ADD CONSTRAINT cheap CHECK (amount < 100)")
    rows = [order(number, amount="999" if number in (3, 40, 77) else "1") for number in range(1, 101)]
    prepared = loaded(shop, rows, window(0, 10) if mode == "incremental_watermark" else WHOLE, blocks=3)
    assert refused_ids(prepared) == [3, 40, 77]
    assert 'violates check constraint "cheap"' in (prepared.refused.first or "")
    assert "Failing row contains" not in (prepared.refused.first or "")
    assert shop.ids() == [number for number in range(1, 101) if number not in (3, 40, 77)]


REFUSALS: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "a trigger that raises": (RAISING, order(50, amount="999"), "too dear: 999.00"),
    "a foreign key": (
        "CREATE TABLE raw.customers (name text PRIMARY KEY); INSERT INTO raw.customers VALUES ('ann');"
        "ALTER TABLE raw.orders ADD CONSTRAINT known FOREIGN KEY (customer) REFERENCES raw.customers",
        order(50, "nobody"),
        'violates foreign key constraint "known" · Key (customer)=(nobody)',
    ),
    "a foreign key that is checked at the commit": (
        "CREATE TABLE raw.customers (name text PRIMARY KEY); INSERT INTO raw.customers VALUES ('ann');"
        "ALTER TABLE raw.orders ADD CONSTRAINT known FOREIGN KEY (customer) REFERENCES raw.customers"
        " DEFERRABLE INITIALLY DEFERRED",
        order(50, "nobody"),
        'violates foreign key constraint "known"',
    ),
    "a generated column that overflows": (
        "ALTER TABLE raw.orders ADD COLUMN cents smallint GENERATED ALWAYS AS (amount * 100) STORED",
        order(50, amount="999999"),
        "smallint out of range",
    ),
    "a value that an index cannot hold": (
        "CREATE INDEX ON raw.orders (customer)",
        order(50, "".join(sha256(b"%d" % number).hexdigest() for number in range(500))),
        "index row ",
    ),
    "an expression index that divides by it": (
        "CREATE INDEX ON raw.orders ((1 / (amount - 7)))",
        order(50, amount="7"),
        "division by zero",
    ),
    "an exclusion constraint": (
        "ALTER TABLE raw.orders ADD CONSTRAINT apart EXCLUDE USING gist (box(point(amount, 0), point(amount, 0))"
        " WITH &&) WHERE (amount > 10)",
        order(50, amount="77"),
        'violates exclusion constraint "apart"',
    ),
    "a unique index that another row of it is in": (
        "CREATE UNIQUE INDEX one_each ON raw.orders (amount) WHERE amount > 10",
        order(50, amount="77"),
        'violates unique constraint "one_each" · Key (amount)=(77.00) already exists.',
    ),
}


@keyed_mode
@pytest.mark.parametrize("kind", REFUSALS)
def test_whatever_refuses_a_row_the_others_are_loaded(make_shop: MakeShop, mode: LoadMode, kind: str) -> None:
    statement, bad, message = REFUSALS[kind]
    shop = make_shop(mode)
    shop.ensure()
    shop.query(statement)
    rows = [order(number, amount="77" if number == 9 else "1") for number in range(1, 100) if number != 50]
    prepared = loaded(shop, [*rows, bad, order(100)], blocks=2)
    ((id_, text),) = told(prepared)
    assert (id_, message in text) == (50, True), text
    assert shop.ids() == [number for number in range(1, 101) if number != 50]


@every_mode
def test_a_domain_refuses_what_its_base_type_takes(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.query(
        "CREATE SCHEMA raw; CREATE DOMAIN raw.price AS numeric(10,2) CHECK (VALUE < 100);"
        "CREATE DOMAIN raw.low AS raw.price CHECK (VALUE >= 0)"
    )
    shop.query(
        "CREATE TABLE raw.orders (id bigint NOT NULL, customer text, amount raw.low, updated_at bigint"
        f"{', valid_from timestamptz NOT NULL, valid_to timestamptz, is_current boolean' if mode == 'scd2' else ''})"
    )
    prepared = loaded(shop, [order(1), order(2, amount="100"), order(3, amount="-1"), order(4)])
    assert refused_ids(prepared) == [2, 3]
    (kept, _) = (json.loads(row.row) for row in prepared.refused)
    assert kept == {"id": 2, "customer": "ann", "amount": "100.00", "updated_at": 1}
    assert shop.ids() == [1, 4]


def test_a_value_that_only_the_server_can_judge_is_shown_as_it_travelled(make_shop: MakeShop) -> None:
    columns = tuple(
        replace(column, native_type="interval") if column.name == "customer" else column
        for column in make_shop().schema.columns
    )
    shop = make_shop(schema=SourceSchema(columns))
    prepared = loaded(shop, [order(1, "1 day"), order(2, "soon\t\\N"), order(3, None)])
    (row,) = prepared.refused
    assert json.loads(row.row) == {"id": "2", "customer": "soon\t\\N", "amount": "1.50", "updated_at": "1"}
    assert 'invalid input syntax for type interval: "soon' in row.message
    assert row.rule == "refused_by_destination"
    assert shop.ids() == [1, 3]


def test_a_not_null_column_that_came_during_the_load_refuses_every_row(make_shop: MakeShop) -> None:
    shop = make_shop()
    load = shop.load()
    candidate = shop.candidate(load, [order(1)])
    shop.query("ALTER TABLE raw.orders ADD COLUMN must text NOT NULL")
    prepared = shop.destination.prepare(load, candidate)
    assert told(prepared) == [(1, 'null value in column "must" of relation "orders" violates not-null constraint')]
    assert prepared.rows == 0
    prepared.undo()


HOSTILE = [
    "", "\\N", "\\.", "a\tb\nc\r\n", "'; DROP TABLE raw.orders; --", "\x01", "\x06\\", '"', "%s{}", None, "é😀", "x\n",
]  # fmt: skip


@every_mode
@pytest.mark.parametrize("binary", [True, False])
def test_hostile_values_are_told_apart_and_kept_as_they_are(make_shop: MakeShop, mode: LoadMode, binary: bool) -> None:
    columns = [Column("id", "bigint"), Column('a"b %s', "string"), Column("bad", "boolean"), Column("at", "bigint")]
    if not binary:
        columns.insert(0, Column("from", "string", native_type="inet"))
    shop = make_shop(mode, schema=SourceSchema(tuple(columns)), cursor="at")
    shop.ensure()
    shop.query('ALTER TABLE raw.orders ADD CONSTRAINT "so\'so" CHECK (NOT bad)')
    rows = [(index, value, index % 2 == 0, index) for index, value in enumerate(HOSTILE * 2)]
    full = rows if binary else [("10.0.0.1", *row) for row in rows]
    prepared = loaded(shop, full, blocks=2)
    assert shop.plan(shop.ensure()).binary is binary
    kept = {json.loads(row.row)["id"]: json.loads(row.row)['a"b %s'] for row in prepared.refused}
    assert kept == {index: value for index, value, bad, _ in rows if bad}
    stored = dict(shop.query('SELECT id, "a""b %%s" FROM raw.orders'.replace("%%", "%")))
    assert stored == {index: value for index, value, bad, _ in rows if not bad}


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_json_that_jsonb_does_not_take_is_kept_as_text(make_shop: MakeShop, mode: LoadMode) -> None:
    columns = (Column("id", "bigint"), Column("j", "string", native_type="json"), Column("updated_at", "bigint"))
    shop = make_shop(mode, schema=SourceSchema(columns))
    shop.ensure()
    shop.query("ALTER TABLE raw.orders ADD CONSTRAINT small CHECK (id < 100)")
    (kept,) = loaded(shop, [(1, "{}", 1), (200, r'{"a": "\u0000"}', 1)]).refused
    assert "small" in kept.message
    assert json.loads(kept.row) != {}
    assert shop.ids() == [1]


@every_mode
def test_many_bad_rows_among_many_are_all_found(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.ensure()
    shop.query("ALTER TABLE raw.orders ADD CONSTRAINT odd CHECK (id % 50 <> 7)")
    rows = [order(number, f"customer {number}") for number in range(5000)]
    prepared = loaded(shop, rows, blocks=3)
    assert refused_ids(prepared) == [number for number in range(5000) if number % 50 == 7]
    assert shop.query("SELECT count(*), count(DISTINCT id) FROM raw.orders") == [(4900, 4900)]


@every_mode
def test_a_load_of_which_every_row_is_refused_leaves_none(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.ensure()
    shop.query("ALTER TABLE raw.orders ADD CONSTRAINT none CHECK (id < 0)")
    load = shop.load()
    prepared = shop.destination.prepare(load, shop.candidate(load, [order(number) for number in range(20)], blocks=2))
    assert (prepared.rows, prepared.refused.rows) == (0, 20)
    prepared.undo()
    assert shop.ids() == []


def test_rows_that_refer_to_each_other_are_loaded_whatever_their_order(make_shop: MakeShop) -> None:
    schema = SourceSchema((Column("id", "bigint"), Column("parent", "bigint"), Column("updated_at", "bigint")))
    for mode in ("append", "upsert"):
        shop = make_shop(mode, schema=schema, primary_key=("id",), target_name=mode)
        shop.ensure()
        shop.query(f"ALTER TABLE raw.{mode} ADD FOREIGN KEY (parent) REFERENCES raw.{mode} (id)")
        rows = [(3, 2, 1), (2, 1, 1), (9, 8, 1), (1, None, 1), (8, 77, 1), (5, 3, 1)]
        prepared = loaded(shop, rows, blocks=3)
        assert refused_ids(prepared) == [8, 9]
        assert shop.query(f"SELECT id FROM raw.{mode} ORDER BY 1") == [(1,), (2,), (3,), (5,)]


def test_a_delete_that_the_target_refuses_is_set_aside(make_shop: MakeShop) -> None:
    shop = make_shop("upsert", schema=VERSIONS, load={"hard_delete": "gone"})
    shop.publish([row(1, "ann", 1), row(2, "bob", 1), row(3, "cid", 1)], window(0, 10))
    shop.query("CREATE TABLE raw.lines (order_id bigint REFERENCES raw.orders (id)); INSERT INTO raw.lines VALUES (2)")
    rows = [row(1, "ann", 11, gone=True), row(2, "bob", 11, gone=True), row(3, "cyd", 11)]
    prepared = loaded(shop, rows, window(10, 20))
    ((id_, text),) = told(prepared)
    assert (id_, "is still referenced from table" in text) == (2, True)
    assert shop.query("SELECT id, customer FROM raw.orders ORDER BY 1") == [(2, "bob"), (3, "cyd")]


def test_rows_that_stand_beside_those_of_others_are_told_apart(make_shop: MakeShop) -> None:
    shop = make_shop("incremental_watermark")
    shop.query(
        "CREATE SCHEMA raw;"
        "CREATE TABLE raw.orders (id bigint, customer text, amount numeric(10,2), updated_at bigint);"
        "INSERT INTO raw.orders VALUES (1, 'ann', 1.5, 5);"
        "ALTER TABLE raw.orders ADD CONSTRAINT cheap CHECK (amount < 100)"
    )
    rows = [
        order(1, updated_at=5),
        order(2, updated_at=9),
        order(3, amount="200", updated_at=9),
        order(4, updated_at=9),
    ]
    prepared = loaded(shop, rows, window(5, 20))
    assert refused_ids(prepared) == [3]
    assert prepared.notes == (
        "chunk 5..20: 1 row(s) not loaded, for they were in the target before our first load, or are not above 5, "
        "the highest updated_at that it had; set `lag` to have those compared",
    )
    assert shop.ids() == [1, 2, 4]


def test_a_merge_finds_the_rows_that_are_left_of_each_key(make_shop: MakeShop) -> None:
    """The last row of a key counts, be it refused."""
    shop = make_shop("upsert")
    shop.publish([order(1, "old"), order(2, "old")])
    shop.query("ALTER TABLE raw.orders ADD CONSTRAINT cheap CHECK (amount < 100)")
    rows = [order(1, "a", updated_at=2), order(1, "b", amount="200", updated_at=3), order(2, "c", updated_at=2)]
    assert refused_ids(loaded(shop, rows)) == [1]
    assert shop.query("SELECT customer FROM raw.orders ORDER BY id") == [("old",), ("c",)]


def test_versions_that_are_refused_leave_the_others_of_their_row(make_shop: MakeShop) -> None:
    shop = make_shop("scd2", schema=VERSIONS, load={"close_missing": False})
    shop.ensure()
    shop.query("ALTER TABLE raw.orders ADD CONSTRAINT no_bob CHECK (customer <> 'bob')")
    rows = [row(1, "ann", 1), row(1, "bob", 2), row(1, "cid", 3), row(2, "dan", 1)]
    prepared = loaded(shop, rows, window(0, 10))
    assert refused_ids(prepared) == [1]
    assert shop.query("SELECT id, customer, is_current FROM raw.orders ORDER BY 1, valid_from") == [
        (1, "ann", False),
        (1, "cid", True),
        (2, "dan", True),
    ]


def test_snapshots_that_are_older_than_a_truncate_see_its_rows_also_if_some_were_refused(make_shop: MakeShop) -> None:
    shop = make_shop("truncate")
    shop.publish([order(1)])
    shop.query("ALTER TABLE raw.orders ADD CONSTRAINT cheap CHECK (amount < 100)")
    with psycopg.connect(shop.url) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT 1")
        assert refused_ids(loaded(shop, [order(2), order(3, amount="200")])) == [3]
        assert reader.execute("SELECT id FROM raw.orders").fetchall() == [(2,)]


def test_rows_are_not_refused_for_being_published_already(make_shop: MakeShop) -> None:
    """By an earlier try, whose answer was lost."""
    shop = make_shop("append")
    shop.ensure()
    shop.query("CREATE UNIQUE INDEX ON raw.orders (id)")
    load = shop.load()
    shop.destination.prepare(load, shop.candidate(load, [order(1)])).publish(None, 0)
    with pytest.raises(DestinationError, match="duplicate key"):
        shop.destination.prepare(load, shop.candidate(load, [order(1)]))
    assert shop.ids() == [1]


@every_mode
def test_a_backend_that_is_lost_during_the_search_is_a_transient_error(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.ensure()
    shop.query("ALTER TABLE raw.orders ADD CONSTRAINT cheap CHECK (amount < 100)")
    load = shop.load()
    rows = [order(number, amount="200" if number == 3 else "1") for number in range(9)]
    candidate = shop.candidate(load, rows, blocks=3)
    given: list[int] = []

    def end_backend(index: int) -> None:
        given.append(index)
        if given.count(2) == 2:  # the first time is the load's as always, or its search
            shop.query(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE 'hakiri:%'"
            )

    candidate.before_block = end_backend
    with pytest.raises(DestinationUnavailable):
        shop.destination.prepare(load, candidate)
    candidate.before_block = None
    assert refused_ids(shop.destination.prepare(load, candidate)) == [3]


def test_a_search_that_takes_too_long_is_given_up_with_what_was_found(
    make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused_rows, "MOST_SECONDS", 0.0)
    shop = make_shop()
    shop.ensure()
    shop.query("ALTER TABLE raw.orders ADD CONSTRAINT cheap CHECK (amount < 100)")
    with pytest.raises(TooManyRowsRefused, match="refuses 0 rows of the load, found in 0 s, and the search"):
        shop.publish([order(1), order(2, amount="200")])
    assert shop.ids() == []


def test_a_load_that_is_killed_during_the_search_is_made_good_by_the_next(make_shop: MakeShop) -> None:
    shop = make_shop("upsert")
    old, new = [order(1, "ann"), order(2, "bob")], [order(1, "ann"), order(2, "ben"), order(3, "bad")]
    shop.publish(old)
    shop.query("ALTER TABLE raw.orders ADD CONSTRAINT good CHECK (customer <> 'bad')")
    seen = [(1, "ann"), (2, "ben")]
    statement = 1
    while (place := killed_at(shop, statement, new)) is not None:
        assert rows_of(shop, shop.now) in ([(1, "ann"), (2, "bob")], seen), place
        publish_after_a_kill(shop, new)
        assert rows_of(shop, shop.now) == seen, place
        publish_after_a_kill(shop, old)
        statement += 1
    assert statement > 10
