"""What the destination keeps by pipeline and table follows a rename; what runs under the old name publishes nothing."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from hakiri_dagster.destinations.contract import BadRow
from hakiri_dagster.destinations.quarantine_contract import KeptChoice
from hakiri_dagster.errors import DestinationError, LeaseLost
from hakiri_dagster.manifest.tables import ProjectKey, Publishes, Table
from hakiri_dagster.planning.hooks import HookName
from hakiri_dagster.planning.publishers import Move, ProjectClaim, ProjectIdentity
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order, window

HOOK = HookName("a" * 32, "webhook https://example.com")


def of_project(table: Table, id_: str | None = None) -> Table:
    mine = Publishes(table.pipeline_id, table.name, table.target_schema, table.target_name)
    return replace(table, project=ProjectKey(id_, "tea", Path("/srv"), frozenset({mine})))


def bad_row(id_: int) -> BadRow:
    return BadRow("malformed", "bad", json.dumps({"id": id_}), None)


def publish(shop: Shop, lower: int, *, quarantined: bool = True) -> int:
    load = shop.load(window(lower, lower + 10), run_id=f"run-{lower}")
    if quarantined:
        shop.destination.quarantine(load, iter([bad_row(lower)]))
    candidate = shop.candidate(load, [order(lower + 1, updated_at=lower + 1)])
    return shop.destination.prepare(load, candidate).publish(candidate.cursor_max, 0, [HOOK]).load_id


@pytest.mark.parametrize("new", [("shop", "sales"), ("coffee", "orders")])
def test_everything_stored_about_a_table_gets_its_new_name(make_shop: MakeShop, new: tuple[str, str]) -> None:
    backup = {"backup_before_load": True}
    shop = make_shop("incremental_watermark", load=backup)
    publish(shop, 0)
    publish(shop, 10)
    other = make_shop("append", target_name="others")  # another project's, of the same names
    publish(other, 0)
    destination, old = shop.destination, shop.table
    table = replace(old, pipeline_id=new[0], name=new[1])

    def known(table: Table) -> tuple[object, ...]:
        return (
            destination.ledger(table),
            destination.mark(table),
            destination.owed_hooks(table),
            destination.last_load(table),
            [
                replace(row, id=0) if hasattr(row, "id") else row
                for row in destination.kept_by_load(table, KeptChoice())
            ],
            destination.backups(table),
        )

    before, of_other = known(old), known(other.table)
    empty = known(table)
    (moved,) = destination.rename([Move(*_name(old), table)])
    assert (moved.loads, moved.quarantined, moved.elsewhere) == (2, 2, ("raw.others",))
    assert known(table) == before
    assert known(old) == empty
    assert known(other.table) == of_other
    assert destination.rename([Move(*_name(old), table)])[0].loads == 0
    assert known(table) == before


def _name(table: Table) -> tuple[str, str]:
    return table.pipeline_id, table.name


def test_a_quarantine_table_of_its_own_is_renamed_with_its_index(make_shop: MakeShop) -> None:
    shop = make_shop()
    publish(shop, 0)
    relations = (
        "SELECT relname FROM pg_class WHERE relname LIKE 'quarantine_%'"
        " AND relkind IN ('r', 'i') AND relname NOT LIKE '%pkey' ORDER BY 1"
    )
    assert shop.query(relations) == [("quarantine_shop_orders",), ("quarantine_shop_orders_pipeline_idx",)]
    shop.destination.rename([Move("shop", "orders", replace(shop.table, name="sales"))])
    assert shop.query(relations) == [("quarantine_shop_sales",), ("quarantine_shop_sales_pipeline_idx",)]


def test_an_attempt_under_the_old_name_publishes_nothing(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.table = of_project(shop.table)
    publish(shop, 0)
    load = shop.load(window(10, 20))
    claimed_before = shop.destination.prepare(load, shop.candidate(load, [order(11, updated_at=11)]))
    table = of_project(replace(shop.table, pipeline_id="tea"))
    shop.destination.rename([Move("shop", "orders", table)])
    with pytest.raises(LeaseLost):
        claimed_before.publish(None, 0)
    load = shop.load(window(20, 30))  # it had looked at the ledger before the rename, and claims after it
    claimed_after = shop.destination.prepare(load, shop.candidate(load, [order(21, updated_at=21)]))
    with pytest.raises(DestinationError, match="tea/orders has published to the target meanwhile"):
        claimed_after.publish(None, 0)
    assert shop.ids() == [1]


def test_of_two_projects_that_load_at_once_one_publishes(make_shop: MakeShop) -> None:
    first, second = make_shop(), make_shop()
    first.table, second.table = of_project(first.table, "one"), of_project(second.table, "two")
    ours, theirs = ProjectIdentity("one", "tea"), ProjectIdentity("two", "tea")
    first.ensure()
    for shop, identity in ((first, ours), (second, theirs)):
        assert shop.destination.publishers(shop.table, identity).doubtful == ()

    def claim(shop: Shop, identity: ProjectIdentity, seen: ProjectIdentity | None) -> None:
        shop.destination.claim(shop.table, ["0..10"], "worker", ProjectClaim(identity, seen, rows_seen=False))

    claim(first, ours, None)
    with pytest.raises(DestinationError, match="another project has claimed the target meanwhile"):
        claim(second, theirs, None)
    claim(second, theirs, ours)  # it has looked again, and nothing is published yet
    with pytest.raises(DestinationError, match=r"the project `tea` \(id two\) has claimed the target meanwhile"):
        publish(first, 0, quarantined=False)
    publish(second, 0, quarantined=False)
    with pytest.raises(DestinationError, match=r"the project `tea` \(id two\) has published to the target meanwhile"):
        claim(first, ours, theirs)
    assert first.ids() == [1]


def test_a_chunk_that_was_loaded_in_stretches_counts_once(make_shop: MakeShop) -> None:
    """The entries of both stay in the ledger, though the second has read the rows of the first again."""
    shop = make_shop()
    for lower in (0, 1):
        load = shop.load(replace(window(0, 10), bounds=window(lower, lower + 2).bounds), run_id=f"run-{lower}")
        candidate = shop.candidate(load, [order(1, updated_at=1)])
        shop.destination.prepare(load, candidate).publish(candidate.cursor_max, 0)
    assert shop.query("SELECT sum(rows)::int FROM hakiri.ledger WHERE superseded_by IS NULL") == [(2,)]
    assert shop.ids() == [1]
    found = shop.destination.publishers(replace(shop.table, pipeline_id="tea"), ProjectIdentity(None, "tea"))
    assert [(one.label, one.chunks, one.newest_run) for one in found.doubtful] == [("shop/orders", 1, "run-1")]


def test_a_rename_waits_for_a_publish_that_is_under_way(make_shop: MakeShop) -> None:
    shop = make_shop()
    table = replace(shop.table, pipeline_id="tea")
    publish(shop, 0)
    with psycopg.connect(shop.url) as publishing:  # it holds its fence, and has not committed
        publishing.execute("SELECT FROM hakiri.fence FOR UPDATE")
        publishing.execute("SET LOCAL lock_timeout = 0")
        publishing.execute(
            """
            INSERT INTO hakiri.ledger
                   (pipeline_id, table_name, target, chunk_key, bounds, rows, bytes, run_id, attempt, mode)
            SELECT pipeline_id, table_name, target, '10..20', bounds, rows, bytes, run_id, attempt, mode
            FROM hakiri.ledger
            """
        )
        with psycopg.connect(shop.url, autocommit=True) as watching, ThreadPoolExecutor(1) as pool:
            renaming = pool.submit(shop.destination.rename, [Move("shop", "orders", table)])
            waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            while watching.execute(waits).fetchone() is None:
                assert not renaming.done()
            publishing.commit()
            assert renaming.result()[0].loads == 2


def test_another_projects_loads_are_not_renamed(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.table = of_project(shop.table, "one")
    shop.ensure()
    shop.destination.claim(
        shop.table, ["0..10"], "w", ProjectClaim(ProjectIdentity("one", "tea"), None, rows_seen=False)
    )
    publish(shop, 0, quarantined=False)
    table = of_project(replace(shop.table, pipeline_id="tea"), "two")
    with pytest.raises(DestinationError, match=r"the project `tea` \(id one\) has published as shop/orders"):
        shop.destination.rename([Move("shop", "orders", table)])
