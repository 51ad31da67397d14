"""What every load mode promises."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise

import psycopg
import pytest

from hakiri_dagster.destinations.contract import PreparedLoad
from hakiri_dagster.destinations.postgres.modes.registry import MODES
from hakiri_dagster.destinations.refusals_contract import EmptySource
from hakiri_dagster.errors import DestinationUnavailable, LeaseLost, NotYet, RowCountMismatch
from hakiri_dagster.manifest.load_spec import LoadMode
from hakiri_dagster.planning.columns import Column, SourceSchema
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import ORDERS, Shop, order, window

every_mode = pytest.mark.parametrize("mode", sorted(MODES))

FIRST = [order(1, "ann"), order(2, "bob")]
TIMED = SourceSchema((*ORDERS.columns[:-1], Column("updated_at", "timestamp")))
SECOND = [order(1, "ann"), order(2, "ben"), order(3, "cid")]


@every_mode
def test_the_same_slice_twice_leaves_the_same_rows(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.publish(FIRST)
    shop.publish(SECOND)
    shop.publish(SECOND)
    rows = shop.query(f"SELECT id, customer FROM {shop.now} ORDER BY id")
    assert rows == [(1, "ann"), (2, "ben"), (3, "cid")]


@every_mode
def test_nobody_sees_a_prepared_load_before_it_is_published(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.publish(FIRST)
    prepared = shop.prepare(SECOND)
    assert len(shop.destination.ledger(shop.table)) == 1
    entry = prepared.publish(7, 1000)
    assert (entry.rows, entry.bytes, entry.cursor_committed, entry.run_id) == (3, 1000, 7, "run-1")
    assert shop.destination.ledger(shop.table) == (entry,)
    assert shop.ids() == [1, 2, 3]


@every_mode
def test_undo_leaves_the_target_untouched_to_the_last_byte(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.publish(FIRST)
    before = shop.fingerprint()
    prepared = shop.prepare(SECOND)
    assert prepared.rows == 3
    prepared.undo()
    assert shop.fingerprint() == before
    assert len(shop.destination.ledger(shop.table)) == 1


@every_mode
def test_a_candidate_of_another_size_than_spark_reports_publishes_nothing(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.publish(FIRST)
    before = shop.fingerprint()
    load = shop.load()
    short = replace(shop.candidate(load, SECOND), rows=4)
    with pytest.raises(RowCountMismatch, match="reported 4 rows, PostgreSQL took 3"):
        shop.destination.prepare(load, short)
    assert shop.fingerprint() == before


@every_mode
def test_an_error_of_spark_in_the_middle_leaves_no_trace(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.publish(FIRST)
    before = shop.fingerprint()
    load = shop.load()
    candidate = shop.candidate(load, SECOND, blocks=3)

    def fail(index: int) -> None:
        if index == 2:
            raise RuntimeError("a task was lost")

    candidate.before_block = fail
    with pytest.raises(RuntimeError, match="a task was lost"):
        shop.destination.prepare(load, candidate)
    assert shop.fingerprint() == before


@every_mode
def test_a_worker_that_was_overtaken_before_it_prepares_publishes_nothing(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    load = shop.load()
    shop.claim(load.slice, "worker-2")
    with pytest.raises(LeaseLost, match="taken over"):
        shop.destination.prepare(load, shop.candidate(load, FIRST))


@every_mode
def test_a_worker_that_was_overtaken_while_its_load_is_open_publishes_nothing(
    make_shop: MakeShop, mode: LoadMode
) -> None:
    shop = make_shop(mode)
    shop.publish(FIRST)
    before = shop.fingerprint()
    prepared = shop.prepare(SECOND)
    shop.claim(shop.load().slice, "worker-2")
    with pytest.raises(LeaseLost):
        prepared.publish(None, 0)
    assert shop.fingerprint() == before


@every_mode
def test_the_winner_publishes_though_the_loser_still_holds_its_locks(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.publish(FIRST)
    shop.prepare(SECOND)  # its worker died: nobody will undo it
    shop.publish(SECOND)
    assert shop.ids() == [1, 2, 3]


@every_mode
@pytest.mark.parametrize("first_published", [0, 1])
def test_two_living_loads_of_different_slices_leave_the_rows_that_the_ledger_tells_of(
    make_shop: MakeShop, mode: LoadMode, first_published: int
) -> None:
    """One may wait for the other, or publish nothing, which is said."""
    shop = make_shop(mode, schema=TIMED, load={"close_missing": False}) if mode == "scd2" else make_shop(mode)
    shop.publish([order(0, updated_at=0)], window(-10, 0))
    slices = [(order(1, updated_at=5), window(0, 10)), (order(2, updated_at=15), window(10, 20))]

    def prepared(which: int) -> PreparedLoad:
        row, slice_ = slices[which]
        load = shop.load(slice_)
        return shop.destination.prepare(load, shop.candidate(load, [row]))

    def late() -> None:
        with suppress(DestinationUnavailable):
            prepared(1 - first_published).publish(15, 0)

    early = prepared(first_published)
    with ThreadPoolExecutor() as thread:
        other = thread.submit(late)
        wait([other], timeout=0.3)
        with suppress(DestinationUnavailable):
            early.publish(15, 0)
        other.result(30)
    live = {entry.chunk_key for entry in shop.destination.ledger(shop.table) if not entry.superseded}
    assert live & {"0..10", "10..20"}
    assert shop.ids() == [id_ for id_, key in enumerate(["-10..0", "0..10", "10..20"]) if key in live]


@every_mode
def test_many_blocks_are_one_load(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    load = shop.load()
    rows = [order(number, f"customer {number}") for number in range(5000)]
    prepared = shop.destination.prepare(load, shop.candidate(load, rows, blocks=7))
    prepared.publish(None, 0)
    assert shop.query("SELECT count(*), count(DISTINCT id), max(customer) FROM raw.orders") == [
        (5000, 5000, "customer 999")
    ]


@every_mode
def test_every_row_carries_the_load_that_wrote_it(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    entry = shop.publish(FIRST)
    assert shop.query("SELECT DISTINCT _hakiri_load_id FROM raw.orders") == [(entry.load_id,)]


HOSTILE_NAME = 'or"ders; DROP TABLE x --%s {} $1'
HOSTILE_VALUES = [
    "",
    "\\N",
    "\\.",
    "a\tb\nc\r",
    "'; DROP TABLE raw.orders; --",
    "\x01",
    "\x06\\",
    '"',
    "%s{}",
    None,
    "é😀",
]


@every_mode
@pytest.mark.parametrize("binary", [True, False])
def test_hostile_names_and_values_are_just_text(make_shop: MakeShop, mode: LoadMode, binary: bool) -> None:
    """A column of network addresses makes the whole table travel as text."""
    columns = [Column("select", "bigint"), Column(HOSTILE_NAME, "string"), Column("a.b c", "bigint")]
    if not binary:
        columns.insert(0, Column("from", "string", native_type="inet"))
    shop = make_shop(
        mode,
        schema=SourceSchema(tuple(columns)),
        target_name=HOSTILE_NAME,
        target_schema='s"x',
        upsert_key=("select",) if mode in ("upsert", "delete_missing", "scd2") else (),
        cursor="a.b c",
    )
    rows = [(index, value, index) for index, value in enumerate(HOSTILE_VALUES)]
    full = rows if binary else [("10.0.0.1", *row) for row in rows]
    shop.publish(full)
    shop.publish(full)
    assert shop.plan(shop.ensure()).binary is binary
    with psycopg.connect(shop.url) as connection:
        name, column = psycopg.sql.Identifier('s"x', HOSTILE_NAME), psycopg.sql.Identifier(HOSTILE_NAME)
        stored = connection.execute(psycopg.sql.SQL('SELECT {} FROM {} ORDER BY "select"').format(column, name))
        assert [row[0] for row in stored] == HOSTILE_VALUES


@every_mode
def test_readers_never_see_an_error_a_part_or_an_empty_table(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    many = [order(number) for number in range(2000)]
    changed = [order(number, "new", updated_at=2) for number in range(2000)]
    shop.publish(many)
    with watching(shop) as counts:
        for rows in (changed, many) * 3:
            shop.publish(rows)
    assert set(counts) == {2000}
    assert len(counts) > 10


@contextmanager
def watching(shop: Shop) -> Iterator[list[int]]:
    """Counts rows in a loop, all the while."""
    counts: list[int] = []
    failures: list[Exception] = []
    started, stop = threading.Event(), threading.Event()
    counting = f"SELECT count(*) FROM {shop.now}".encode()

    def read() -> None:
        with psycopg.connect(shop.url, autocommit=True) as connection:
            while not stop.is_set():
                try:
                    row = connection.execute(counting).fetchone()
                    assert row is not None
                    counts.append(row[0])
                except psycopg.Error as error:
                    failures.append(error)
                started.set()

    reader = threading.Thread(target=read)
    reader.start()
    started.wait(10)
    try:
        yield counts
    finally:
        stop.set()
        reader.join(10)
    assert failures == []


SEEN_BY_OLDER_SNAPSHOTS = {"truncate": [(1, "ann"), (2, "ben"), (3, "cid")], "blue_green": []}
"""The rows of `truncate` are frozen. What blue_green exchanged has rows that are younger than the snapshot only."""


@every_mode
def test_a_repeatable_read_that_began_before_sees_what_the_documents_say(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.publish(FIRST)
    now = f"SELECT id, customer FROM {shop.now} ORDER BY id".encode()
    with psycopg.connect(shop.url) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT 1")
        shop.publish(SECOND)
        seen = reader.execute(now).fetchall()
        assert seen == SEEN_BY_OLDER_SNAPSHOTS.get(mode, [(1, "ann"), (2, "bob")])
        reader.rollback()
        seen = reader.execute(now).fetchall()
        assert seen == [(1, "ann"), (2, "ben"), (3, "cid")]


@every_mode
def test_a_backend_that_is_lost_while_rows_are_fed_is_a_transient_error(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.publish(FIRST)
    before = shop.fingerprint()
    load = shop.load()
    candidate = shop.candidate(load, SECOND, blocks=3)

    def end_backend(index: int) -> None:
        if index == 2:
            shop.query(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE 'hakiri:%'"
            )

    candidate.before_block = end_backend
    with pytest.raises(DestinationUnavailable):
        shop.destination.prepare(load, candidate)
    assert shop.fingerprint() == before
    shop.publish(SECOND)
    assert shop.ids() == [1, 2, 3]


@every_mode
def test_a_load_that_was_published_unawares_is_not_published_twice(make_shop: MakeShop, mode: LoadMode) -> None:
    """Its answer was lost, and the destination could not be asked: so the worker tries again."""
    shop = make_shop(mode)
    load = shop.load()
    first = shop.destination.prepare(load, shop.candidate(load, FIRST)).publish(None, 0)
    before = shop.fingerprint()
    assert shop.destination.prepare(load, shop.candidate(load, FIRST)).publish(None, 0) == first
    assert shop.fingerprint() == before


@every_mode
def test_a_source_without_rows_empties_nothing(make_shop: MakeShop, mode: LoadMode) -> None:
    """Modes that would do so refuse; the others have nothing to do."""
    shop = make_shop(mode)
    shop.publish(FIRST, window(0, 10))
    before = shop.fingerprint()
    with suppress(EmptySource):
        shop.publish([], window(20, 30))
    assert shop.fingerprint() == before


@every_mode
def test_rows_that_were_set_aside_do_not_keep_the_others_from_being_published(
    make_shop: MakeShop, mode: LoadMode
) -> None:
    shop = make_shop(mode)
    load = shop.load()
    incomplete = replace(shop.candidate(load, FIRST), set_aside=2)
    assert shop.destination.prepare(load, incomplete).publish(None, 0).rows == 2
    assert shop.ids() == [1, 2]


def test_load_ids_rise_with_every_claim(make_shop: MakeShop) -> None:
    shop = make_shop()
    ids = [shop.publish(FIRST).load_id for _ in range(3)]
    assert all(one < other for one, other in pairwise(ids))


def test_a_mode_that_is_not_built_says_so(make_shop: MakeShop) -> None:
    shop = make_shop("cdc_mirror")
    with pytest.raises(NotYet, match="not yet: load mode cdc_mirror"):
        shop.ensure()
