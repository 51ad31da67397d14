"""What Arrow makes of an expression, where it is asked, and what Spark makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from hakiri_dagster.errors import UnsafeExpression
from hakiri_dagster.expressions.judging import holds, judged
from hakiri_dagster.expressions.reading import read_expression
from hakiri_dagster.expressions.tree import Node
from hakiri_dagster.expressions.written import Judged, Misfit
from hakiri_dagster.planning.arrow_types import arrow_type
from hakiri_dagster.quality.columnar.conditions import Condition
from hakiri_dagster.quality.columnar.evaluating import evaluated, is_in_arrow
from hakiri_dagster.quality.columnar.types import settled
from hakiri_dagster.quality.columnar.values import NotInArrow, Value, spread
from hakiri_dagster.quality.expression_rules import kind_of
from tests.unit.expressions.made_up import COLUMNS, MadeUp, rows
from tests.unit.expressions.samples import ACCEPTED, FAILING, ROWS, SPARK_TYPES

KINDS = {name: arrow_type(told) for name, told in SPARK_TYPES.items()}
SAMPLES = [text for text in (*ACCEPTED, *FAILING) if is_in_arrow(read_expression(text), KINDS)]
AT_ONCE = 40
"""More in one query take Spark longer than several queries."""


@dataclass(frozen=True)
class Asked:
    """Rows, for both."""

    batch: pa.RecordBatch
    frame: DataFrame
    columns: Mapping[str, Judged]

    @classmethod
    def of(cls, spark: SparkSession, batch: pa.RecordBatch) -> Asked:
        places = [f"v{place}" for place in range(batch.num_columns)]
        table = pa.table([*batch.columns, pa.array(range(batch.num_rows))], names=[*places, "place"])
        frame = spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
        columns = {f.name: Judged(kind_of(f.type), place) for f, place in zip(batch.schema, places, strict=True)}
        return cls(batch, frame.orderBy("place"), columns)

    def answers_of_spark(self, conditions: Sequence[str]) -> list[pa.ChunkedArray]:
        found: list[pa.ChunkedArray] = []
        for start in range(0, len(conditions), AT_ONCE):
            asked = [F.expr(sql).alias(f"_{n}") for n, sql in enumerate(conditions[start : start + AT_ONCE])]
            found.extend(self.frame.select(*asked).toArrow().columns)
        return found


@pytest.fixture(scope="module")
def sampled(spark: SparkSession) -> tuple[dict[str, list[bool]], dict[str, list[bool]]]:
    batch = pa.RecordBatch.from_pylist(ROWS, pa.schema(list(KINDS.items())))
    asked, nodes = Asked.of(spark, batch), [read_expression(text) for text in SAMPLES]
    of_spark = asked.answers_of_spark([holds(node, asked.columns) for node in nodes])
    of_arrow = [Condition(node, tuple(KINDS.items()), "").passes(batch) for node in nodes]
    return (
        {text: answers.to_pylist() for text, answers in zip(SAMPLES, of_spark, strict=True)},
        {text: answers.to_pylist() for text, answers in zip(SAMPLES, of_arrow, strict=True)},
    )


@pytest.mark.parametrize("text", SAMPLES)
def test_a_row_passes_where_it_passes_by_spark(
    sampled: tuple[dict[str, list[bool]], dict[str, list[bool]]], text: str
) -> None:
    of_spark, of_arrow = sampled
    assert of_arrow[text] == of_spark[text]


def made_up(count: int, seed: int, depth: int) -> dict[str, Node]:
    """Such as fit the columns and Arrow."""
    maker, found = MadeUp(seed), dict[str, Node]()
    columns = {name: Judged(kind_of(kind), name) for name, kind in COLUMNS.items()}
    while len(found) < count:
        text = maker.of_any_kind(depth)
        try:
            node = read_expression(text)
            if judged(node, columns).kind != "null":
                evaluated(node, {name: pa.array([], settled(kind)) for name, kind in COLUMNS.items()})
                found[text] = node
        except (UnsafeExpression, Misfit, NotInArrow):
            continue
    return found


@pytest.mark.parametrize(("count", "seed", "depth"), [(240, 1, 1), (320, 2, 2), (160, 3, 3)])
def test_what_is_made_up_comes_to_the_same_value_of_the_same_type_and_fails_for_the_same_rows(
    spark: SparkSession, count: int, seed: int, depth: int
) -> None:
    asked = Asked.of(spark, rows(120, seed))
    columns = {name: asked.batch.column(name).cast(settled(kind)) for name, kind in COLUMNS.items()}
    expressions = made_up(count, seed, depth)
    written = [judged(node, asked.columns) for node in expressions.values()]
    values = asked.answers_of_spark([one.sql for one in written])
    fails = asked.answers_of_spark([one.fails or "FALSE" for one in written])
    differing = [
        text
        for (text, node), value, failed in zip(expressions.items(), values, fails, strict=True)
        if not alike(evaluated(node, columns), value.combine_chunks(), failed.combine_chunks())
    ]
    assert differing == []


def alike(ours: Value, value: pa.Array, failed: pa.Array) -> bool:
    """To the sign of a zero."""
    if ours.type != settled(value.type):
        return False
    our_failed = spread(pa.scalar(False) if ours.failed is None else ours.failed, len(value))
    our_cells = spread(ours.cells, len(value))
    return our_failed.equals(failed) and repr(told(our_cells)) == repr(told(value.cast(ours.type)))


def told(cells: pa.Array) -> list[object]:
    """Python has no days beyond the year 9999."""
    if pa.types.is_date(cells.type):
        cells = cells.cast(pa.int32())
    elif pa.types.is_timestamp(cells.type):
        cells = cells.cast(pa.int64())
    return list(cells.to_pylist())


def test_more_values_than_spark_goes_through_one_by_one_are_looked_for_alike(spark: SparkSession) -> None:
    """Beyond ten it hashes them."""
    asked = Asked.of(spark, rows(120, 4))
    listed = {
        "f": "0e0, 1e0, 2e0, 3e0, 4e0, 5e0, 6e0, 7e0, 8e0, 9e0, 1.25e0, 0.1e0",
        "l": "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9223372036854775807, -9223372036854775808",
        "m": "0, 1.5, 2.5, 3, 4, 5, 6, 7, 8, 9, 9.99, -0.01",
        "t": "'', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', '😀😀', 'é', ' '",
        "d": "'2024-01-31', '2024-02-01', '2024-02-02', '1970-01-01', '1970-01-02', '1970-01-03', '1970-01-04', "
        "'1970-01-05', '1970-01-06', '1970-01-07', '1970-01-08', '0001-01-01'",
    }
    texts = [f"{name} IN ({values})" for name, values in listed.items()]
    texts += [f"{name} NOT IN ({values})" for name, values in listed.items()]
    nodes = [read_expression(text) for text in texts]
    of_spark = asked.answers_of_spark([holds(node, asked.columns) for node in nodes])
    of_arrow = [Condition(node, tuple(COLUMNS.items()), "").passes(asked.batch) for node in nodes]
    assert [pc.sum(one).as_py() for one in of_arrow] == [pc.sum(one).as_py() for one in of_spark]
    assert [one.to_pylist() for one in of_arrow] == [one.to_pylist() for one in of_spark]
