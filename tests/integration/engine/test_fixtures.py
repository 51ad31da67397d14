"""The shared fixtures do what every other test leans on."""

from __future__ import annotations

import psycopg
import pytest
from pyspark.sql import SparkSession


@pytest.mark.parametrize("_round", [1, 2])
def test_each_test_gets_an_empty_database_of_its_own(database_url: str, _round: int) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE only_mine (id int)")


def test_spark_counts(spark: SparkSession) -> None:
    assert spark.range(10).count() == 10
