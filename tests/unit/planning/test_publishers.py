"""Which publisher of a target's rows is this project's own, and which stands in the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from hakiri_dagster.manifest.tables import ProjectKey, Publishes, Table
from hakiri_dagster.planning.publishers import (
    ProjectIdentity,
    PublishedBy,
    Publisher,
    identify_source,
    published_by,
    refuse_publisher,
)
from tests.integration.destinations.postgres.scenario import make_table

OURS = ProjectIdentity(None, "tea", "files/data/orders")
WITH_ID = replace(OURS, id="one")


def table(*, target: str = "orders", also: tuple[Publishes, ...] = ()) -> Table:
    mine = Publishes("shop", "orders", "raw", target)
    return make_table(
        "append", target_name=target, project=ProjectKey(None, "tea", Path("/srv/tea"), frozenset({mine, *also}))
    )


CASES: list[tuple[ProjectIdentity, ProjectIdentity | None, bool, PublishedBy]] = [
    (OURS, OURS, False, "this table"),
    (OURS, None, False, "this table"),
    (WITH_ID, replace(OURS, id="one", name="other", source="else"), False, "this table"),
    (WITH_ID, replace(OURS, id="two"), True, "another project"),
    (WITH_ID, OURS, False, "this table"),
    (OURS, WITH_ID, False, "this table"),
    (OURS, replace(OURS, name="other"), False, "another project"),
    (OURS, replace(OURS, name="other"), True, "this table"),
    (OURS, replace(OURS, source="files/exports/orders"), False, "another project"),
    (OURS, replace(OURS, source="files/exports/orders"), True, "this table"),
    (OURS, replace(OURS, source=None), False, "this table"),
]


@pytest.mark.parametrize(("ours", "recorded", "is_remembered", "expected"), CASES)
def test_a_project_is_known_by_its_id_then_its_runs_then_its_name_and_source(
    ours: ProjectIdentity, recorded: ProjectIdentity | None, is_remembered: bool, expected: PublishedBy
) -> None:
    publisher = Publisher("shop", "orders", 1, recorded, "run-1")
    known = frozenset({"run-1"} if is_remembered else {"run-2"})
    assert published_by(table(), publisher, ours, known) == expected


def test_only_what_is_declared_with_the_same_target_may_share_it() -> None:
    other = Publisher("tea", "orders", 1, OURS)
    for declared, expected in (
        ((), "an undeclared table"),
        ((Publishes("tea", "orders", "raw", "orders"),), "another table"),
        # it was given another target, and this table takes its place
        ((Publishes("tea", "orders", "raw", "old_orders"),), "an undeclared table"),
    ):
        assert published_by(table(also=declared), other, OURS, frozenset()) == expected


def test_the_way_out_names_the_command_for_what_has_changed() -> None:
    for publisher, command in (
        (Publisher("tea", "orders", 2), "hakiri pipeline rename tea shop"),
        (Publisher("shop", "sales", 2), "hakiri pipeline rename shop/sales shop/orders"),
        (Publisher("tea", "sales", 2), "hakiri pipeline rename tea/sales shop/orders"),
    ):
        assert f"`{command}`" in refuse_publisher(table(), publisher, "an undeclared table", OURS)


def test_a_pipeline_that_is_still_declared_is_renamed_by_the_table() -> None:
    tea = Publishes("tea", "items", "raw", "items")
    reason = refuse_publisher(table(also=(tea,)), Publisher("tea", "orders", 2), "an undeclared table", OURS)
    assert "`hakiri pipeline rename tea/orders shop/orders`" in reason


def test_a_table_that_is_still_declared_is_renamed_by_way_of_a_third_name() -> None:
    tea = Publishes("tea", "orders", "raw", "items")
    reason = refuse_publisher(table(also=(tea,)), Publisher("tea", "orders", 2), "an undeclared table", OURS)
    assert "if tea/orders, which is declared with another target, and shop/orders have exchanged their names" in reason
    assert "give one of the two a third name in between" in reason


def test_files_of_a_project_are_the_same_source_wherever_its_folder_is() -> None:
    here = identify_source(("files", "srv", "tea", "data", "orders"), PurePosixPath("/srv/tea"))
    there = identify_source(("files", "home", "ann", "tea", "data", "orders"), PurePosixPath("/home/ann/tea"))
    assert here == there == "files/data/orders"
    assert identify_source(("files", "mnt", "data", "orders"), PurePosixPath("/srv/tea")) == "files/mnt/data/orders"
