"""Pages of an API as a data source of Spark's: its workers walk over them, one walk a partition.

What Spark's workers need to know comes as one option, which no plan shows and nobody can read in a log. A task that is
tried again walks again; what it had given before is not used.
"""

from __future__ import annotations

import base64
import pickle
import zlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from hakiri_dagster.connectors.contract import (
    LINE_COLUMN,
    MALFORMED_COLUMN,
    ONWARD_COLUMN,
    TRUNCATED_COLUMN,
    UNSEEN_COLUMN,
)
from hakiri_dagster.connectors.json.raw_text import Record
from hakiri_dagster.connectors.json.row_reader import MALFORMED_TYPE, TRUNCATED_TYPE, RowReader
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.rest.api import Api, Pairs
from hakiri_dagster.connectors.rest.client import Client
from hakiri_dagster.connectors.rest.orders import Order
from hakiri_dagster.connectors.rest.walk import Collection, Stretch, walked
from hakiri_dagster.manifest.load_spec import SubMicroseconds
from hakiri_dagster.planning.arrow_types import arrow_type
from hakiri_dagster.planning.chunks import Part
from hakiri_dagster.planning.columns import Column
from hakiri_dagster.security.secrets import known_in, register

WALK: Final = "_hakiri_walk"
_MARKS: Final = pa.schema(
    [
        (WALK, pa.int32()),
        (UNSEEN_COLUMN, pa.list_(pa.string())),
        (TRUNCATED_COLUMN, TRUNCATED_TYPE),
        (ONWARD_COLUMN, pa.string()),
        (MALFORMED_COLUMN, MALFORMED_TYPE),
        (LINE_COLUMN, pa.string()),
    ]
)
"""What is long comes last: what is short would wait behind it in a buffer of the worker's, and the page with it, until
the next page has come."""
_MARKS_DDL: Final = (
    "int", "array<string>", "array<string>", "string", "struct<line:string,reason:string,readable:boolean>", "string",
)  # fmt: skip
_SECRET_OPTION: Final = "secret_work"
"""Spark masks options that are called so."""


@dataclass(frozen=True, slots=True)
class Walk:
    """`chunk`: the one that it serves; empty where it serves several."""

    params: Pairs = ()
    order: Order | None = None
    part: Part | None = None
    stretch: Stretch | None = None
    chunk: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """Pickled to the workers."""

    api: Api
    network: Network
    collection: Collection
    walks: tuple[Walk, ...]
    columns: tuple[Column, ...]
    sub_microseconds: SubMicroseconds = "warn"
    declared: frozenset[str] = frozenset()

    @property
    def row_types(self) -> str:
        """DDL, by position: Spark reads dots in names as something else."""
        types = [*_MARKS_DDL, *(column.spark_type for column in self.columns)]
        return ", ".join(f"c{place} {type_}" for place, type_ in enumerate(types))


class RestPages(DataSource):
    @classmethod
    def name(cls) -> str:
        return "hakiri_rest"

    def schema(self) -> str:
        return _unpacked(self.options[_SECRET_OPTION]).row_types

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self.options[_SECRET_OPTION])


class _Reader(DataSourceReader):
    def __init__(self, packed: str) -> None:
        self._packed = packed

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(index) for index in range(len(_unpacked(self._packed).walks))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # what Spark makes of no partitions at all
            return
        work = _unpacked(self._packed)
        walk = work.walks[partition.value]
        with closing(Client(work.api, work.network, chunk=walk.chunk)) as client:
            pages = walked(client, work.collection.of_part(walk.part), walk.params, walk.order, walk.stretch)
            rows = _PageRows(partition.value, work)
            onward = yield from rows.batches(pages)
            if walk.stretch is not None:
                yield rows.end(onward)


class _PageRows:
    """The records of one walk as rows: the marks, and the table's columns."""

    def __init__(self, walk: int, work: Work) -> None:
        self._walk = walk
        self._reader = RowReader(
            work.columns, lenient_names=True, sub_microseconds=work.sub_microseconds, declared=work.declared
        )
        self._columns = frozenset(column.name for column in work.columns)
        self._types = [arrow_type(column.spark_type) for column in work.columns]

    def batches(self, pages: Generator[Sequence[Record], None, str]) -> Generator[pa.RecordBatch, None, str]:
        while True:
            try:
                records = next(pages)
            except StopIteration as end:
                return str(end.value)
            if records:
                yield self._batch(records)

    def end(self, onward: str) -> pa.RecordBatch:
        values = {WALK: self._walk, ONWARD_COLUMN: onward}
        marks = [pa.array([values.get(field.name)], field.type) for field in _MARKS]
        return _row_batch([*marks, *(pa.nulls(1, type_) for type_ in self._types)])

    def _batch(self, records: Sequence[Record]) -> pa.RecordBatch:
        rows = self._reader.read([record.text.encode() for record in records], lambda index: records[index].text)
        return _row_batch(
            [
                pa.repeat(pa.scalar(self._walk, pa.int32()), len(records)),
                pa.array([_unseen(record, self._columns) for record in records], pa.list_(pa.string())),
                rows.truncated,
                pa.nulls(len(records), pa.string()),
                rows.malformed,
                pa.array([record.text for record in records], pa.string()),
                *rows.values,
            ]
        )


def _row_batch(columns: Sequence[pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(columns, names=[f"c{place}" for place in range(len(columns))])


def pages_of(spark: SparkSession, work: Work) -> DataFrame:
    """WALK, its index; LINE_COLUMN, the text of a record; MALFORMED_COLUMN and the table's columns. ONWARD_COLUMN is
    NULL, but in a row of its own that ends a stretch. Nothing is asked of the API until the frame is run."""
    spark.dataSource.register(RestPages)  # a session that was opened anew does not know it
    packed = {_SECRET_OPTION: _packed(work)}
    rows = spark.read.format(RestPages.name()).options(**packed).schema(work.row_types).load()
    return rows.toDF(*_MARKS.names, *(column.name for column in work.columns))


def _unseen(record: Record, columns: frozenset[str]) -> list[str] | None:
    value = record.value
    if not isinstance(value, Mapping) or value.keys() <= columns:
        return None
    unseen = (name for name, one in value.items() if one is not None and name not in columns)
    return [name.encode(errors="backslashreplace").decode() for name in unseen] or None


def _packed(work: Work) -> str:
    """With what is secret of it: a worker has read no manifest."""
    return base64.b64encode(zlib.compress(pickle.dumps((work, known_in(_texts(work)))))).decode()


def _unpacked(packed: str) -> Work:
    work, secrets = pickle.loads(zlib.decompress(base64.b64decode(packed)))
    assert isinstance(work, Work)
    register(secrets)
    return work


def _texts(work: Work) -> Iterator[str]:
    """What requests are made of."""
    yield from (work.api.base_url, work.collection.path)
    explosion = work.collection.explosion
    continued = None if explosion is None else explosion.continued
    told = [work.api.headers, work.collection.params, *(walk.params for walk in work.walks)]
    for pairs in told if continued is None else [*told, continued.params]:
        yield from (value for _, value in pairs)
