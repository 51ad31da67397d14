"""What Spark makes of an expression as it is written, and of what we write in its place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.types import DataType, StructField, StructType

from hakiri_dagster.expressions.judging import holds, judged
from hakiri_dagster.expressions.reading import read_expression
from hakiri_dagster.expressions.written import Judged, text_literal
from tests.unit.expressions.samples import ACCEPTED, FAILING, KINDS, ROWS, SPARK_TYPES

NAMES = {name: f"v{place}" for place, name in enumerate(KINDS)}
COLUMNS = {name: Judged(kind, NAMES[name]) for name, kind in KINDS.items()}


OURS = {
    "abs(i) >= 0": "Spark has none of the least integer",
    "abs(l) > 5": "Spark has none of the least integer",
    "i / j > 1 OR j = 0": "Spark fails before it looks at the rest",
    "CAST(f AS DECIMAL(4, 1)) > 1": "to Spark NaN is NULL as a decimal, and no error",
    "`${env:PATH}` = 'x'": "Spark looks for a column of another name",
}
"""Where we decide otherwise."""


@dataclass(frozen=True)
class Asked:
    """`ours`: whether each row passes. `computed`: whether we say that it can be computed."""

    frame: DataFrame
    ours: dict[str, list[bool]]
    computed: dict[str, list[bool]]

    def spark(self, text: str, place: int) -> Any:
        return self.frame.where(F.col("place") == place).select(_as_spark_reads(text)).collect()[0][0]


@pytest.fixture(scope="module")
def asked(spark: SparkSession) -> Asked:
    schema = StructType([StructField(name, DataType.fromDDL(SPARK_TYPES[name])) for name in KINDS])
    values = [(*(row.get(name) for name in KINDS), place) for place, row in enumerate(ROWS)]
    frame = spark.createDataFrame(values, StructType([*schema.fields, StructField("place", DataType.fromDDL("int"))]))
    trees = [read_expression(text) for text in (*ACCEPTED, *FAILING)]
    ours = [F.expr(holds(tree, COLUMNS)) for tree in trees]
    computed = [F.expr(f"NOT {judged(tree, COLUMNS).fails or 'FALSE'}") for tree in trees]
    named = frame.toDF(*NAMES.values(), "place")
    rows = named.orderBy("place").select(F.array(*ours), F.array(*computed)).collect()
    texts = [*ACCEPTED, *FAILING]
    return Asked(
        frame,
        {text: [row[0][place] for row in rows] for place, text in enumerate(texts)},
        {text: [row[1][place] for row in rows] for place, text in enumerate(texts)},
    )


@pytest.fixture(scope="module")
def spark_says(asked: Asked) -> dict[str, list[bool | None]]:
    """Where we say that it can be computed, else None: Spark fails at once."""
    texts = [text for text in ACCEPTED if text not in OURS]
    rows = asked.frame.orderBy("place").select(F.array(*[_where_computed(asked, text) for text in texts])).collect()
    return {text: [row[0][place] for row in rows] for place, text in enumerate(texts)}


def _where_computed(asked: Asked, text: str) -> Column:
    places = [place for place, computed in enumerate(asked.computed[text]) if computed]
    return F.when(F.col("place").isin(places), _as_spark_reads(text))


def _as_spark_reads(text: str) -> Column:
    return F.expr(f"coalesce({text.replace('${', chr(92) + 'u0024{')}, TRUE)")


@pytest.mark.parametrize("text", [text for text in ACCEPTED if text not in OURS])
def test_a_row_passes_where_spark_says_true_or_null(
    asked: Asked, spark_says: dict[str, list[bool | None]], text: str
) -> None:
    assert asked.ours[text] == [passes or False for passes in spark_says[text]]


@pytest.mark.parametrize("text", FAILING)
def test_a_row_breaks_where_spark_fails(asked: Asked, text: str) -> None:
    place = asked.computed[text].index(False)
    assert asked.ours[text][place] is False
    with pytest.raises(PySparkException):
        asked.spark(text, place)


def test_where_spark_and_we_decide_otherwise(asked: Asked) -> None:
    def passing(text: str) -> list[int]:
        return [place for place, row in enumerate(ROWS) if asked.ours[text][place] and row.keys() & {"i", "f", "l"}]

    assert passing("i / j > 1 OR j = 0") == [0, 2, 3, 4, 6, 7, 8, 13]
    assert 2 in passing("abs(l) > 5")
    assert set(passing("CAST(f AS DECIMAL(4, 1)) > 1")).isdisjoint({2, 3, 4})


def test_spark_itself_would_fill_in_what_is_in_the_environment(asked: Asked) -> None:
    """Were it otherwise, texts need not be written as they are."""
    filled, ours = (
        asked.frame.limit(1).select(F.expr("'${env:HOME}'"), F.expr(text_literal("${env:HOME}"))).collect()[0]
    )
    assert (filled, ours) == (os.environ["HOME"], "${env:HOME}")
