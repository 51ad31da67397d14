"""What is in the way of a validator's SELECT, told before any row moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hakiri_dagster.quality.measures import Orphans, Probe, Unanswered, Violations
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order

READS = Probe("SELECT p.id FROM theirs.people p", 60)
REFERS = Orphans("id", "theirs", "people", "id")


@pytest.fixture
def limited(make_shop: MakeShop) -> Iterator[Shop]:
    """Loaded by a role that may do nothing with the tables of others."""
    shop = make_shop()
    shop.query("CREATE ROLE loader LOGIN PASSWORD 'secret'")
    try:
        database = shop.url.rpartition("/")[2]
        shop.query(f'GRANT CREATE ON DATABASE "{database}" TO loader')
        shop.query("CREATE SCHEMA theirs; CREATE TABLE theirs.people (id bigint)")
        at = shop.url.partition("@")[2]
        limited = Shop(f"postgresql://loader:secret@{at}", shop.table)
        limited.publish([order(1)])
        yield limited
        limited.close()
    finally:
        shop.query("DROP OWNED BY loader CASCADE; DROP ROLE loader")


def granted(make_shop: MakeShop, rights: str) -> None:
    make_shop().query(f"GRANT USAGE ON SCHEMA theirs TO loader; GRANT {rights} ON theirs.people TO loader")


def told(shop: Shop) -> list[str]:
    return [doubt.reason.partition(": ")[2] for doubt in shop.destination.doubts(shop.table, (READS,), None)]


def test_rights_that_a_select_needs_are_told(limited: Shop, make_shop: MakeShop) -> None:
    usage = "GRANT USAGE ON SCHEMA theirs TO loader"
    select, lock = (f"GRANT {right} ON TABLE theirs.people TO loader" for right in ("SELECT", "MAINTAIN"))
    assert told(limited) == [f"{usage}; {select}; {lock}"]
    granted(make_shop, "SELECT")
    assert told(limited) == [lock]
    assert isinstance(limited.destination.ask(limited.table, (READS,))[READS], Unanswered)
    granted(make_shop, "MAINTAIN")
    assert told(limited) == []
    assert limited.destination.ask(limited.table, (READS,))[READS] == Violations(0)


def test_a_column_may_refer_to_what_may_only_be_read(limited: Shop, make_shop: MakeShop) -> None:
    granted(make_shop, "SELECT")
    assert limited.destination.doubts(limited.table, (REFERS,), None) == ()
    assert limited.destination.ask(limited.table, (REFERS,))[REFERS] == Violations(1, ("1",))


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ("CREATE VIEW raw.other AS SELECT 1::bigint AS id", "it is no ordinary table"),
        ("CREATE TABLE raw.other (id bigint, PRIMARY KEY (id)); ALTER TABLE raw.other ENABLE ROW LEVEL SECURITY",
         "it has row-level security"),
    ],
)  # fmt: skip
def test_a_select_from_what_cannot_be_read_safely_is_refused(make_shop: MakeShop, made: str, why: str) -> None:
    shop = make_shop()
    shop.publish([order(1)])
    shop.query(made)
    measures = Probe("SELECT id FROM raw.other", 60), Orphans("id", None, "other", "id")
    doubts = shop.destination.doubts(shop.table, measures, None)
    said = f"a SELECT from raw.other is not allowed: {why}"
    assert [doubt.reason for doubt in doubts] == [
        f"the SELECT is refused: {said}",
        f"id cannot refer to raw.other: {said}",
    ]
    answers = shop.destination.ask(shop.table, measures)
    assert [answers[measure] for measure in measures] == [Unanswered(f"it is not asked: {said}")] * 2
