"""What validators ask of rows in PostgreSQL: of a candidate, of the table that it leaves, of the target as it is."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from hakiri_dagster.destinations.contract import PreparedLoad
from hakiri_dagster.destinations.postgres.modes.registry import MODES
from hakiri_dagster.manifest.load_spec import LoadMode
from hakiri_dagster.manifest.validator_spec import DatasetLevelSpec
from hakiri_dagster.planning.arrow_types import arrow_type
from hakiri_dagster.planning.columns import Column, SourceSchema
from hakiri_dagster.quality.measures import (
    Answer,
    ColumnsFound,
    ColumnTypes,
    Distinct,
    Duplicates,
    Highest,
    InPassing,
    Lowest,
    Measure,
    Nulls,
    Orphans,
    Probe,
    Rows,
    Strangers,
    Total,
    Unanswered,
    Violations,
)
from hakiri_dagster.quality.tallies import tally
from hakiri_dagster.quality.validators.registry import Asked
from tests.integration.destinations.postgres.conftest import MakeShop
from tests.integration.destinations.postgres.scenario import Shop, order

every_mode = pytest.mark.parametrize("mode", sorted(MODES))

KEY = Duplicates(("customer",))
CHEAP = Probe("SELECT id FROM {table} WHERE amount < 2 ORDER BY id", 60)


def prepared(shop: Shop, rows: list[tuple[Any, ...]], **asked: tuple[Any, ...]) -> PreparedLoad:
    load = replace(shop.load(), asked=Asked(**asked))
    return shop.destination.prepare(load, shop.candidate(load, rows))


@every_mode
def test_a_candidate_is_asked_alone_and_as_it_was_read(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    shop.publish([order(1, "ann"), order(9, "zoe", "1.00")])
    load = prepared(shop, [order(1, "ann", "5.00"), order(2, "ann", "1.00")], of_candidate=(KEY, CHEAP))
    assert load.answers.of_candidate == {
        KEY: Violations(2, ("(ann) 2 times",)),
        CHEAP: Violations(1, ("2",)),
    }
    load.undo()


@every_mode
def test_the_table_is_asked_as_the_load_would_leave_it(make_shop: MakeShop, mode: LoadMode) -> None:
    """scd2 keeps the earlier versions of rows, and upsert the rows that the load does not have."""
    shop = make_shop(mode, load={"fail_on_empty_source": False})
    shop.publish([order(1, "ann"), order(9, "zoe", "1.00")])
    before = shop.fingerprint()
    asked = (Rows(), KEY, CHEAP, Highest("amount"))
    load = prepared(shop, [order(1, "ann", "5.00"), order(2, "ann", "1.00")], of_table=asked)
    found = load.answers.of_table
    rows = {"upsert": 3, "scd2": 4}.get(mode, 2)
    same = {"scd2": Violations(3, ("(ann) 3 times",))}.get(mode, Violations(2, ("(ann) 2 times",)))
    assert (found[Rows()], found[KEY], found[Highest("amount")]) == (rows, same, Decimal("5.00"))
    assert isinstance(found[CHEAP], Violations)
    load.undo()
    assert shop.fingerprint() == before


@every_mode
def test_a_load_that_was_asked_can_still_be_published(make_shop: MakeShop, mode: LoadMode) -> None:
    shop = make_shop(mode)
    refused = Probe("SELECT no_such_column FROM {table}", 60)
    asked = (KEY, CHEAP, refused, Orphans("id", "raw", "nowhere", "id"))
    load = prepared(shop, [order(1), order(2)], of_candidate=asked, of_table=asked)
    assert load.answers.of_table[asked[-1]] == Unanswered("raw.nowhere does not exist")
    answer = load.answers.of_candidate[refused]
    assert isinstance(answer, Unanswered)
    assert 'column "no_such_column" does not exist' in answer.reason
    load.publish(None, 10)
    assert shop.ids() == [1, 2]


TYPED = SourceSchema(
    (
        Column("id", "bigint"),
        Column("text", "string"),
        Column("whole", "int"),
        Column("number", "decimal(20,4)"),
        Column("float", "double"),
        Column("day", "date"),
        Column("moment", "timestamp"),
        Column("local", "timestamp_ntz"),
        Column("flag", "boolean"),
    )
)


def typed_rows() -> list[tuple[Any, ...]]:
    from datetime import UTC, date, datetime

    noon = datetime(2024, 1, 31, 12, 30, 0, 123456, tzinfo=UTC)
    return [
        (1, "a", 5, Decimal("1.2500"), 0.5, date(1969, 12, 31), noon, noon.replace(tzinfo=None), True),
        (2, "ü", -7, Decimal("-3.0000"), float("nan"), date(2024, 2, 29), noon.replace(year=1812), None, False),
        (3, None, None, None, None, None, None, None, None),
        (4, "a", 5, Decimal("1.2500"), -0.0, date(2024, 2, 29), noon, datetime(2030, 1, 1), True),
        (5, "", 2**31 - 1, Decimal("9999999999999999.9999"), 0.0, date(1, 1, 1), noon, None, None),
    ]


def in_passing() -> list[InPassing]:
    numbers, times = ("id", "whole", "number", "float"), ("day", "moment", "local")
    return [
        *(kind(column.name) for kind in (Nulls,) for column in TYPED.columns),
        *(Distinct(column.name, 10) for column in TYPED.columns),
        *(kind(column) for kind in (Lowest, Highest) for column in (*numbers, *times)),
        *(Total(column) for column in ("id", "whole", "number")),
        Strangers("text", ("a", "")), Strangers("whole", (5,)), Strangers("number", (1.25, -3)),
        Strangers("flag", (True,)), Strangers("day", ("2024-02-29",)), Strangers("float", (0.5, 0)),
    ]  # fmt: skip


def test_postgresql_and_the_workers_answer_alike(make_shop: MakeShop) -> None:
    """NaN and all. Which of the values are shown as a few is anybody's choice."""
    shop = make_shop("append", schema=TYPED, cursor=None)
    rows = typed_rows()
    batch = pa.RecordBatch.from_arrays(
        [pa.array([row[i] for row in rows], arrow_type(c.spark_type)) for i, c in enumerate(TYPED.columns)],
        names=[column.name for column in TYPED.columns],
    )
    measures = in_passing()
    load = prepared(shop, rows, of_candidate=(Rows(), *measures))
    answers = load.answers.of_candidate
    assert answers[Rows()] == 5
    for measure in measures:
        assert not isinstance(measure, Rows)
        here, there = answers[measure], tally(measure, batch).answer
        assert _comparable(here) == _comparable(there), measure
    load.undo()


def _comparable(answer: Answer) -> object:
    if isinstance(answer, Violations):
        return answer.rows, len(answer.few)
    return "nan" if isinstance(answer, float | Decimal) and answer != answer else answer


def test_infinite_times_are_none(make_shop: MakeShop) -> None:
    shop = make_shop("append", schema=TYPED, cursor=None)
    shop.publish(typed_rows()[:1])
    shop.query("INSERT INTO raw.orders (id, day, moment) VALUES (7, 'infinity', '-infinity')")
    measures = (Highest("day"), Lowest("moment"))
    answers = shop.destination.ask(shop.table, measures)
    assert [str(answers[measure]) for measure in measures] == ["1969-12-31T00:00:00Z", "2024-01-31T12:30:00.123456Z"]


def test_a_column_that_refers_to_its_own_table_finds_the_rows_of_the_load(make_shop: MakeShop) -> None:
    """`updated_at` stands for the parent's id."""
    question = Orphans("updated_at", None, "orders", "id")
    for mode in ("append", "upsert", "truncate", "blue_green"):
        shop = make_shop(mode, target_name="orders")
        rows = [order(1, updated_at=None), order(2, updated_at=1), order(3, updated_at=8)]
        load = prepared(shop, rows, of_candidate=(question,), of_table=(question,))
        assert load.answers.of_candidate == load.answers.of_table == {question: Violations(1, ("8",))}
        load.undo()
        shop.query("DROP TABLE raw.orders; TRUNCATE hakiri.ledger")


def test_columns_are_compared_by_their_types(make_shop: MakeShop) -> None:
    shop = make_shop("append")
    shop.ensure()
    question = ColumnTypes((("id", "int8"), ("customer", "varchar(10)"), ("gone", "text")))
    assert shop.destination.ask(shop.table, (question,)) == {
        question: ColumnsFound((("customer", "text"), ("gone", None)), ("amount", "updated_at"))
    }


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        ("SELECT FROM {table} WHERE id > 5", Violations(0)),
        ("SELECT true", Violations(0)),
        ("SELECT count(*) = 3 FROM {table}", Violations(0)),
        ("SELECT count(*) = 4 FROM {table}", Violations(1, ("False",))),
        ("SELECT NULL::bool", Violations(1, ("NULL",))),
        ("SELECT true, true", Violations(1, ("True, True",))),
        ("SELECT true FROM {table}", Violations(3, ("True", "True", "True"))),
        ("SELECT a.id FROM {table} a, {table} b, {table} c ORDER BY 1", Violations(27, ("1", "1", "1"))),
        ("SELECT repeat(customer, 9) FROM {table}", None),
        ("SELECT 1 / (id - 1) FROM {table}", Unanswered("PostgreSQL refuses it: division by zero")),
    ],
)
def test_a_select_passes_with_no_row_or_one_true_value(make_shop: MakeShop, statement: str, answer: Answer) -> None:
    shop = make_shop("append")
    shop.publish([order(1), order(2), order(3)])
    probe = Probe(statement, 60)
    found = shop.destination.ask(shop.table, (probe,))[probe]
    if answer is None:
        assert isinstance(found, Unanswered)
        assert "it is not asked: this SELECT is not allowed: the function repeat" in found.reason
    else:
        assert found == answer


def test_a_select_that_takes_too_long_has_no_answer(make_shop: MakeShop) -> None:
    shop = make_shop("append")
    tables = ", ".join(f"{{table}} t{number}" for number in range(6))
    probe = Probe(f"SELECT count(*) = 0 FROM {tables}", 0.2)
    load = prepared(shop, [order(number) for number in range(300)], of_table=(probe, Rows()))
    assert load.answers.of_table == {probe: Unanswered("it took longer than 0.2 seconds"), Rows(): 300}
    load.publish(None, 1)


def test_a_select_waits_no_longer_for_a_lock(make_shop: MakeShop) -> None:
    """On the target, and on what else it reads."""
    shop = make_shop("append")
    shop.publish([order(1)])
    shop.query("CREATE TABLE raw.people (id bigint)")
    of_target, of_others = Probe("SELECT id FROM {table}", 0.2), Probe("SELECT p.id FROM raw.people p", 0.2)
    for locked, waits, others in (("orders", of_target, ()), ("people", of_others, (of_target,))):
        with psycopg.connect(shop.url) as somebody:
            somebody.execute("SET idle_in_transaction_session_timeout = '20s'")  # rather than to hang for ever
            somebody.execute(f"LOCK TABLE raw.{locked} IN ACCESS EXCLUSIVE MODE")
            answers = shop.destination.ask(shop.table, (waits, *others))
        assert answers[waits] == Unanswered("it took longer than 0.2 seconds")
        assert all(isinstance(answers[other], Violations) for other in others)


def test_a_select_runs_nobody_s_code(make_shop: MakeShop) -> None:
    shop = make_shop("append")
    shop.publish([order(1)])
    shop.query("CREATE SCHEMA theirs; CREATE TABLE theirs.gone (id bigint)")
    shop.query(
        "CREATE FUNCTION theirs.count(bigint) RETURNS bigint LANGUAGE sql AS "
        "'INSERT INTO theirs.gone VALUES ($1) RETURNING 1'; CREATE VIEW theirs.view AS SELECT theirs.count(1)"
    )
    for statement in ("SELECT theirs.count(id) FROM {table}", "SELECT * FROM theirs.view"):
        probe = Probe(statement, 60)
        assert isinstance(shop.destination.ask(shop.table, (probe,))[probe], Unanswered)
    assert shop.query("SELECT * FROM theirs.gone") == []


def test_a_target_that_is_not_there_has_no_answers(make_shop: MakeShop) -> None:
    shop = make_shop("append")
    assert shop.destination.ask(shop.table, (Rows(), KEY)) == dict.fromkeys(
        (Rows(), KEY), Unanswered("the target does not exist yet")
    )


@pytest.mark.parametrize(
    ("measure", "told"),
    [
        (
            Orphans("customer", None, "nowhere", "id"),
            ("raw.nowhere, to which customer refers, does not exist yet", True),
        ),
        (Orphans("id", "raw", "people", "nope"), ('people: column "nope" does not exist', False)),
        (Orphans("customer", "raw", "people", "id"), ("operator does not exist", False)),
        (Orphans("id", "raw", "people", "id"), None),
        (Orphans("id", None, "orders", "id"), None),
        (Probe("SELECT p.id FROM raw.people p", 1), None),
        (Probe("SELECT 1 FROM raw.nowhere", 1), ("raw.nowhere, which the SELECT reads, does not exist yet", True)),
    ],
)
def test_what_is_in_the_way_is_told_before(
    make_shop: MakeShop, measure: Measure, told: tuple[str, bool] | None
) -> None:
    shop = make_shop("append")
    shop.ensure()
    shop.query("CREATE TABLE raw.people (id bigint)")
    doubts = shop.destination.doubts(shop.table, (measure,), None)
    if told is None:
        assert doubts == ()
    else:
        (doubt,) = doubts
        assert told[0] in doubt.reason
        assert doubt.may_pass is told[1]


def test_one_question_that_is_refused_keeps_no_other_from_being_answered(make_shop: MakeShop) -> None:
    shop = make_shop("append")
    shop.publish([order(1), order(2)])
    gone, sum_of_text = Nulls("no_such_column"), Total("customer")
    answers = shop.destination.ask(shop.table, (Rows(), gone, sum_of_text, KEY))
    assert (answers[Rows()], answers[KEY]) == (2, Violations(2, ("(ann) 2 times",)))
    assert answers[gone] == Unanswered('PostgreSQL refuses it: column "no_such_column" does not exist')
    assert isinstance(answers[sum_of_text], Unanswered)


def test_sums_of_single_precision_do_not_stick(make_shop: MakeShop) -> None:
    shop = make_shop("append")
    shop.ensure()
    shop.query("ALTER TABLE raw.orders ADD ratio real")
    shop.query("INSERT INTO raw.orders (id, ratio) SELECT 1, 1 UNION ALL SELECT 2, 16777216")
    assert shop.destination.ask(shop.table, (Total("ratio"),)) == {Total("ratio"): 16777217.0}


def test_many_distinct_values_are_counted_in_the_destination(make_shop: MakeShop) -> None:
    few, many = Distinct("id", 20_000), Distinct("id", 20_001)
    spec = [{"column": "id", "min_distinct": count} for count in (20_000, 20_001)]
    asked = Asked.by(DatasetLevelSpec.model_validate({"cardinality": spec}).validators)
    assert (asked.in_passing, asked.of_candidate) == ((few,), (many,))
    load = prepared(make_shop("append"), [order(1), order(2), order(2)], of_candidate=asked.of_candidate)
    assert load.answers.of_candidate == {many: 2}
    load.undo()
