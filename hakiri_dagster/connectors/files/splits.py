"""The parts in which Spark's tasks have read files, and the number in its file of the first record of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from hakiri_dagster.connectors.contract import FILE_COLUMN, RECORD_COLUMN, SPLIT_COLUMN


@dataclass(frozen=True, slots=True)
class Splits:
    """`firsts`: the number of the first record that is wanted, by the file's marker and where the split begins."""

    firsts: Mapping[tuple[int, int], int]
    records: Mapping[int, int]
    """By the file's marker."""


def splits_of(frame: DataFrame, wanted: Column | None) -> Splits:
    """One pass over the source, that parses little of it; a short row comes back for each split."""
    record = F.col(RECORD_COLUMN)
    first = record if wanted is None else F.when(wanted, record)
    found = frame.groupBy(FILE_COLUMN, SPLIT_COLUMN).agg(
        F.count("*").alias("records"), (F.min(first) - F.min(record)).alias("passed_over")
    )
    firsts: dict[tuple[int, int], int] = {}
    records: dict[int, int] = {}
    for marker, splits in groupby(sorted(found.collect()), key=lambda row: int(row[FILE_COLUMN])):
        before = 0
        for _, start, count, passed_over in splits:
            if passed_over is not None:
                firsts[marker, start] = before + passed_over
            before += count
        records[marker] = before
    return Splits(firsts, records)
