from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from hakiri_dagster.destinations.contract import BadRow, Fence, Load
from hakiri_dagster.errors import DestinationUnavailable, LeaseLost
from hakiri_dagster.manifest.spec import QuarantineSpec, ValidateSpec
from hakiri_dagster.planning.chunks import Chunk, CursorRange, Interval, Segment, Slice
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, file_slice, order, window


@pytest.fixture
def shop(make_shop: MakeShop) -> Shop:
    return make_shop(validation=ValidateSpec(quarantine=QuarantineSpec(table="dlq.bad orders")))


def bad(*ids: int) -> Iterator[BadRow]:
    for id_ in ids:
        yield BadRow("malformed", "message\0", json.dumps({"id": id_, "t": "a\tb\\N\n"}), "a.csv")


def segment(number: int) -> Slice:
    bounds = Segment(number, None if number == 1 else f"/orders?page={number}")
    return Slice(Chunk(f"segment-{number:06d}", bounds), bounds)


def kept(shop: Shop) -> list[int]:
    return [row[0] for row in shop.query("""SELECT ("row"->>'id')::int AS id FROM dlq."bad orders" ORDER BY 1""")]


def publish(shop: Shop, load: Load) -> None:
    candidate = shop.candidate(load, [order(1)])
    shop.destination.prepare(load, candidate).publish(None, 0)


def test_a_row_is_kept_with_all_that_is_known_about_it(shop: Shop) -> None:
    load = shop.load(window(0, 10))
    assert shop.destination.quarantine(load, bad(7)) == 1
    columns = '"pipelineId", "runId", "nodeId", "ruleId", "row", message, "sourceFile", "chunkKey", "loadId", attempt,'
    columns += " target"
    assert shop.query(f'SELECT {columns} FROM dlq."bad orders"') == [
        (
            "shop", "run-1", "orders", "malformed", {"id": 7, "t": "a\tb\\N\n"}, "message\\u0000", "a.csv", "0..10",
            load.fence.load_id, 1, "raw.orders",
        )
    ]  # fmt: skip
    assert shop.query("SELECT indexname FROM pg_indexes WHERE indexname LIKE '%pipeline_idx'") == [
        ("bad orders_pipeline_idx",)
    ]


def test_reasons_and_rows_are_kept_as_they_are_whatever_characters_they_have(shop: Shop) -> None:
    hostile = ["\\N", "\\.", "tab\there", "line\nline\r", "back\\slash", "ä€😀", "", "null"]
    rows = [
        BadRow(rule, f"of {rule}", json.dumps({"v": value}), file, 7 if file else None, "warn")
        for rule in hostile
        for value in hostile
        for file in (None, rule)
    ]
    assert shop.destination.quarantine(shop.load(window(0, 10)), iter(rows)) == len(rows)
    stored = shop.query(
        """SELECT "ruleId", message, "row"->>'v', "sourceFile", "sourceLine", "onFail"
        FROM dlq."bad orders" ORDER BY id"""
    )
    assert stored == [
        (row.rule, row.message, json.loads(row.row)["v"], row.source_file, row.source_line, row.on_fail) for row in rows
    ]


def test_more_rows_than_are_written_at_once_are_kept(shop: Shop) -> None:
    rows = (BadRow("malformed", "wide", json.dumps({"id": id_, "t": "x" * 1000}), None) for id_ in range(700))
    assert shop.destination.quarantine(shop.load(window(0, 10)), rows) == 700
    assert kept(shop) == list(range(700))


def test_the_table_is_made_when_the_first_row_comes(shop: Shop) -> None:
    assert shop.destination.quarantine(shop.load(window(0, 10)), bad()) == 0
    assert shop.query("""SELECT to_regclass('dlq."bad orders"')""") == [(None,)]


def test_a_second_try_replaces_what_the_first_kept(shop: Shop) -> None:
    shop.destination.quarantine(shop.load(window(0, 10)), bad(1, 2))
    shop.destination.quarantine(shop.load(window(10, 20)), bad(9))
    shop.destination.quarantine(shop.load(window(0, 10)), bad(2, 3))
    assert kept(shop) == [2, 3, 9]
    shop.destination.quarantine(shop.load(window(0, 10)), bad())
    assert kept(shop) == [9]


def test_rows_of_an_open_chunks_earlier_slices_stay(shop: Shop) -> None:
    chunk = Chunk("2024", CursorRange(Interval(0, 100)))
    first = shop.load(Slice(chunk, CursorRange(Interval(0, 100))))
    shop.destination.quarantine(first, bad(1))
    publish(shop, first)
    second = shop.load(Slice(chunk, CursorRange(Interval(50, 100))))
    shop.destination.quarantine(second, bad(2))
    publish(shop, second)
    assert kept(shop) == [1, 2]
    shop.destination.quarantine(shop.load(Slice(chunk, CursorRange(Interval(0, 100)))), bad(3))
    assert kept(shop) == [3]


def test_two_projects_with_the_same_ids_keep_their_rows_side_by_side(make_shop: MakeShop) -> None:
    dev, prod = make_shop(target_schema="raw_dev"), make_shop(target_schema="raw_prod")
    prod.destination.quarantine(prod.load(window(0, 10)), bad(1))
    dev.destination.quarantine(dev.load(window(0, 10)), bad(2))
    rows = dev.query("""SELECT target, "row"->>'id' FROM hakiri.quarantine_shop_orders ORDER BY 1""")
    assert rows == [("raw_dev.orders", "2"), ("raw_prod.orders", "1")]


def test_a_rewritten_files_rows_give_way(shop: Shop) -> None:
    first = shop.load(file_slice("a.csv", "aa" * 16))
    shop.destination.quarantine(first, bad(1))
    publish(shop, first)
    second = shop.load(file_slice("a.csv", "bb" * 16), supersedes=("aa" * 16,))
    shop.destination.quarantine(second, bad(2))
    assert kept(shop) == [1, 2], "the rows of the old file are published until those of the new one are"
    publish(shop, second)
    assert kept(shop) == [2]


def test_a_refused_load_costs_no_rows_of_the_chunks_that_it_would_have_replaced(shop: Shop) -> None:
    """Whoever walks the first segment again replaces those behind it, which are walked anew when it is published."""
    later = ("segment-000002", "segment-000003")
    for number in (1, 2, 3):
        load = shop.load(segment(number))
        shop.destination.quarantine(load, bad(number))
        publish(shop, load)
    refused = shop.load(segment(1), supersedes=later)
    prepared = shop.destination.prepare(refused, shop.candidate(refused, [order(1)]))
    shop.destination.quarantine(refused, bad(11))
    prepared.undo()
    assert kept(shop) == [2, 3, 11]

    again = shop.load(segment(1), supersedes=later)
    shop.destination.quarantine(again, bad(12))
    publish(shop, again)
    assert kept(shop) == [12]


def test_a_quarantine_in_another_shape_does_not_hinder_a_publish(shop: Shop) -> None:
    first = shop.load(window(0, 10))
    shop.destination.quarantine(first, bad(1))
    publish(shop, first)
    shop.query('ALTER TABLE dlq."bad orders" DROP COLUMN "chunkKey"')
    publish(shop, shop.load(window(0, 20)))
    assert len(kept(shop)) == 1


def test_a_table_in_the_seeds_own_shape_gets_what_it_lacks(shop: Shop) -> None:
    """All that a new one has."""
    load = shop.load(window(0, 10))
    shop.destination.quarantine(load, bad(1))
    of_a_new_one, whole = columns(shop), everything(shop)
    shop.query(
        'DROP TABLE dlq."bad orders"; CREATE TABLE dlq."bad orders" (id bigserial PRIMARY KEY, "pipelineId" text'
        ' NOT NULL, "runId" text NOT NULL, "nodeId" text NOT NULL, "ruleId" text NOT NULL, "row" jsonb NOT NULL,'
        ' "createdAt" timestamptz NOT NULL DEFAULT now())'
    )
    shop.destination.quarantine(load, bad(1))
    assert columns(shop) == of_a_new_one
    assert everything(shop) == whole


def columns(shop: Shop) -> dict[str, str]:
    return dict(
        shop.query("SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
                   """WHERE attrelid = 'dlq."bad orders"'::regclass AND attnum > 0""")
    )  # fmt: skip


def everything(shop: Shop) -> object:
    """Of the rows that are kept, but for when."""
    return shop.query("""SELECT to_jsonb(kept) - 'createdAt' FROM dlq."bad orders" AS kept""")


def test_rows_outlive_a_load_that_is_undone(shop: Shop) -> None:
    load = shop.load(window(0, 10))
    prepared = shop.destination.prepare(load, shop.candidate(load, [order(1)]))
    shop.destination.quarantine(load, bad(5))
    prepared.undo()
    assert kept(shop) == [5]
    assert shop.ids() == []


def test_an_attempt_that_was_overtaken_leaves_its_successors_rows_alone(shop: Shop) -> None:
    late = shop.load(window(0, 10))
    successor = shop.load(window(0, 10))
    shop.destination.quarantine(successor, bad(1))
    with pytest.raises(LeaseLost):
        shop.destination.quarantine(late, bad(2))
    assert kept(shop) == [1]


def test_a_claim_goes_through_though_an_attempt_hangs_while_it_sets_rows_aside(shop: Shop) -> None:
    successors: list[Fence] = []

    def hanging() -> Iterator[BadRow]:
        yield from bad(1)
        successors.append(shop.claim(window(0, 10), "worker-2"))
        yield from bad(2)

    load = shop.load(window(0, 10))
    with pytest.raises(DestinationUnavailable):
        shop.destination.quarantine(load, hanging())
    assert len(successors) == 1
    assert shop.query("""SELECT to_regclass('dlq."bad orders"')""") == [(None,)]


def test_a_table_without_a_name_of_its_own_lies_in_our_schema(make_shop: MakeShop) -> None:
    shop = make_shop()
    shop.destination.quarantine(shop.load(window(0, 10)), bad(1))
    assert shop.query("SELECT count(*) FROM hakiri.quarantine_shop_orders") == [(1,)]
