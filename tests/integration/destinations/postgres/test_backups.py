"""A target as it was before a load: kept with the load or not at all."""

from __future__ import annotations

import time
from dataclasses import replace

import psycopg
import pytest
from psycopg import sql

from hakiri_dagster.destinations.postgres.backups import backup_name
from hakiri_dagster.destinations.postgres.modes.registry import MODES
from hakiri_dagster.errors import DestinationError, RowCountMismatch
from hakiri_dagster.manifest.load_spec import ADDING_MODES, BackupSpec, LoadMode
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order, window

OVERWRITING = sorted(mode for mode, built in MODES.items() if built.overwrites)
overwriting_mode = pytest.mark.parametrize("mode", OVERWRITING)

FIRST = [order(1, "ann"), order(2, "bob")]
SECOND = [order(1, "ann"), order(2, "ben"), order(3, "cid")]


def keeping(make_shop: MakeShop, mode: LoadMode, keep: int = 1, **changes: object) -> Shop:
    return make_shop(mode, load={"backup_before_load": BackupSpec(keep=keep)}, **changes)


def kept(shop: Shop) -> list[list[tuple[object, ...]]]:
    """The rows of all backups, the newest first."""
    found = shop.destination.backups(shop.table)
    return [shop.query(f'SELECT id, customer FROM hakiri."{backup.relation}" ORDER BY id') for backup in found]


def relations(shop: Shop) -> list[tuple[object, ...]]:
    return shop.query("SELECT relname FROM pg_class WHERE relname LIKE 'backup\\_%' AND relkind = 'r' ORDER BY 1")


def test_what_the_manifest_calls_adding_is_what_overwrites_nothing() -> None:
    assert {mode for mode, built in MODES.items() if not built.overwrites} == ADDING_MODES & MODES.keys()


@overwriting_mode
def test_a_load_keeps_the_rows_as_they_were_to_the_last_column(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = keeping(make_shop, mode)
    shop.publish(FIRST, run_id="run-1")
    assert shop.destination.backups(shop.table) == (), "there was nothing to keep"
    before = shop.query("SELECT * FROM raw.orders ORDER BY id")
    second = shop.publish(SECOND, run_id="run-2")
    (backup,) = shop.destination.backups(shop.table)
    assert (backup.generation, backup.load_id, backup.run_id, backup.rows, backup.made_before) == (
        1, second.load_id, "run-2", 2, "load",
    )  # fmt: skip
    assert shop.query(f"SELECT * FROM hakiri.{backup.relation} ORDER BY id") == before


@pytest.mark.parametrize("mode", sorted(ADDING_MODES & MODES.keys()))
def test_a_mode_that_only_adds_keeps_nothing(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = keeping(make_shop, mode)
    shop.publish(FIRST, run_id="run-1")
    shop.publish(SECOND, run_id="run-2")
    assert relations(shop) == []


@overwriting_mode
def test_nothing_is_kept_where_nobody_asked(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.publish(FIRST, run_id="run-1")
    shop.publish(SECOND, run_id="run-2")
    assert relations(shop) == []


@overwriting_mode
def test_a_load_that_is_undone_or_fails_leaves_none_behind_and_takes_none_away(
    make_shop: MakeShop, mode: LoadMode
) -> None:
    shop = keeping(make_shop, mode)
    shop.publish(FIRST, run_id="run-1")
    shop.publish(SECOND, run_id="run-2")
    before = (relations(shop), kept(shop))
    prepared = shop.prepare(FIRST, run_id="run-3")
    assert (relations(shop), kept(shop)) == before
    prepared.undo()
    load = shop.load(run_id="run-3")
    with pytest.raises(RowCountMismatch):
        shop.destination.prepare(load, replace(shop.candidate(load, SECOND), rows=4))
    assert (relations(shop), kept(shop)) == before


@overwriting_mode
def test_of_a_worker_that_was_killed_nothing_is_left(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = keeping(make_shop, mode)
    shop.publish(FIRST, run_id="run-1")
    shop.prepare(SECOND, run_id="run-2")  # its worker died: nobody will undo it
    shop.publish(SECOND, run_id="run-3")
    assert len(relations(shop)) == len(shop.destination.backups(shop.table)) == 1
    assert kept(shop) == [[(1, "ann"), (2, "bob")]]


def test_as_many_are_kept_as_the_manifest_says(make_shop: MakeShop) -> None:
    shop = keeping(make_shop, "truncate", keep=2)
    for number in range(1, 6):
        shop.publish([order(number, "x")], run_id=f"run-{number}")
    assert kept(shop) == [[(4, "x")], [(3, "x")]]
    assert [backup.generation for backup in shop.destination.backups(shop.table)] == [1, 2]
    assert len(relations(shop)) == 2
    shop.table = replace(shop.table, load=shop.table.load.model_copy(update={"backup_before_load": None}))
    shop.publish([order(9, "x")], run_id="run-9")
    assert len(relations(shop)) == 2, "who keeps no more copies loses none"


def test_a_run_of_many_chunks_keeps_the_rows_as_they_were_before_the_first(make_shop: MakeShop) -> None:
    shop = keeping(make_shop, "upsert", keep=5)
    shop.publish(FIRST, window(0, 10), run_id="run-1")
    shop.publish([order(1, "al", updated_at=11)], window(10, 20), run_id="run-2")
    shop.publish([order(1, "abe", updated_at=21)], window(20, 30), run_id="run-2")
    assert kept(shop) == [[(1, "ann"), (2, "bob")]]
    shop.publish([order(1, "asa", updated_at=31)], window(30, 40), run_id="run-3")
    assert kept(shop) == [[(1, "abe"), (2, "bob")], [(1, "ann"), (2, "bob")]]


def test_a_load_that_was_published_unawares_is_tried_again_with_one_backup(make_shop: MakeShop) -> None:
    shop = keeping(make_shop, "truncate")
    shop.publish(FIRST, run_id="run-1")
    load = shop.load(run_id="run-2")
    first = shop.destination.prepare(load, shop.candidate(load, SECOND)).publish(None, 0)
    assert shop.destination.prepare(load, shop.candidate(load, SECOND)).publish(None, 0) == first
    assert kept(shop) == [[(1, "ann"), (2, "bob")]]


def test_who_reads_an_old_copy_holds_up_no_load_and_loses_it_at_the_next(make_shop: MakeShop) -> None:
    shop = keeping(make_shop, "truncate")
    shop.publish(FIRST, run_id="run-1")
    shop.publish(SECOND, run_id="run-2")
    (old,) = shop.destination.backups(shop.table)
    with psycopg.connect(shop.url) as reader:
        reader.execute(sql.SQL("SELECT * FROM hakiri.{}").format(sql.Identifier(old.relation)))
        started = time.monotonic()
        shop.publish(FIRST, run_id="run-3")
        assert time.monotonic() - started < 10
        assert len(kept(shop)) == 2
    shop.publish(SECOND, run_id="run-4")
    assert len(relations(shop)) == len(kept(shop)) == 1


def test_a_copy_that_somebody_dropped_is_not_listed_and_holds_up_nothing(make_shop: MakeShop) -> None:
    shop = keeping(make_shop, "truncate")
    shop.publish(FIRST, run_id="run-1")
    shop.publish(SECOND, run_id="run-2")
    (old,) = shop.destination.backups(shop.table)
    shop.query(f"DROP TABLE hakiri.{old.relation}")
    assert shop.destination.backups(shop.table) == ()
    shop.publish(FIRST, run_id="run-3")
    assert len(kept(shop)) == 1


@pytest.mark.parametrize("name", ['or"ders; DROP TABLE x --%s', "Ä" * 31 + "x", "n" * 63])
def test_hostile_and_long_names_have_backups_of_their_own(make_shop: MakeShop, name: str) -> None:
    shop = keeping(make_shop, "truncate", target_name=name, target_schema=name)
    shop.publish(FIRST, run_id="run-1")
    entry = shop.publish(SECOND, run_id="run-2")
    (backup,) = shop.destination.backups(shop.table)
    assert backup.relation == backup_name(name, name, entry.load_id)
    assert len(backup.relation.encode()) <= 63
    assert backup.relation.endswith(f"_{entry.load_id}")


def test_what_default_privileges_give_away_is_taken_back(make_shop: MakeShop) -> None:
    shop = keeping(make_shop, "truncate")
    shop.publish(FIRST, run_id="run-1")
    shop.query('CREATE ROLE "re""ader"')
    try:
        shop.query('ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC, "re""ader"')
        shop.publish(SECOND, run_id="run-2")
        (backup,) = shop.destination.backups(shop.table)
        owner = "hakiri=arwdDxtm/hakiri"
        assert shop.query(f"SELECT relacl::text[] FROM pg_class WHERE relname = '{backup.relation}'") == [([owner],)]
    finally:
        shop.query('DROP OWNED BY "re""ader"; DROP ROLE "re""ader"')


def test_rows_that_a_policy_hides_are_no_backup(make_shop: MakeShop) -> None:
    shop = keeping(make_shop, "upsert")
    shop.publish(FIRST, run_id="run-1")
    shop.query("CREATE ROLE loader LOGIN PASSWORD 'secret' NOSUPERUSER")
    try:
        shop.query("GRANT ALL ON SCHEMA raw, hakiri TO loader")
        shop.query("GRANT ALL ON ALL TABLES IN SCHEMA raw, hakiri TO loader")
        shop.query("GRANT ALL ON ALL SEQUENCES IN SCHEMA hakiri TO loader")
        shop.query("ALTER TABLE raw.orders OWNER TO loader")
        shop.query("ALTER TABLE raw.orders ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        shop.query("CREATE POLICY odd ON raw.orders USING (id > 1)")
        at = shop.url.partition("@")[2]
        limited = Shop(f"postgresql://loader:secret@{at}", shop.table)
        with pytest.raises(DestinationError, match="query would be affected by row-level security policy"):
            limited.publish([order(5)], run_id="run-2")
        assert relations(shop) == []
        limited.table = make_shop("upsert").table
        limited.publish([order(5)], run_id="run-3")  # the load alone would go through
        limited.close()
    finally:
        shop.query("ALTER TABLE raw.orders OWNER TO hakiri; DROP OWNED BY loader; DROP ROLE loader")


def test_a_destination_that_was_never_loaded_has_none(make_shop: MakeShop) -> None:
    assert make_shop("truncate").destination.backups(make_shop("truncate").table) == ()
