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

from hakiri_dagster.connectors.contract import LINE_COLUMN, ONWARD_COLUMN, UNSEEN_COLUMN
from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.rest.api import Api, Pairs
from hakiri_dagster.connectors.rest.client import Client
from hakiri_dagster.connectors.rest.json_text import Record
from hakiri_dagster.connectors.rest.orders import Order
from hakiri_dagster.connectors.rest.verbatim import Verbatim
from hakiri_dagster.connectors.rest.walk import Collection, Stretch, walked
from hakiri_dagster.planning.chunks import Part
from hakiri_dagster.security.secrets import known_in, register

WALK: Final = "_hakiri_walk"
TEXT: Final = "_hakiri_text"
_SCHEMA: Final = (
    f"{WALK} int, {UNSEEN_COLUMN} array<string>, {ONWARD_COLUMN} string, {LINE_COLUMN} string, {TEXT} string"
)
_ARROW = pa.schema(
    [
        (WALK, pa.int32()),
        (UNSEEN_COLUMN, pa.list_(pa.string())),
        (ONWARD_COLUMN, pa.string()),
        (LINE_COLUMN, pa.string()),
        (TEXT, pa.string()),
    ]
)
"""What is long comes last: what is short would wait behind it in a buffer of the worker's, and the page with it, until
the next page has come."""
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
    verbatim: Verbatim
    columns: frozenset[str]


class RestPages(DataSource):
    @classmethod
    def name(cls) -> str:
        return "hakiri_rest"

    def schema(self) -> str:
        return _SCHEMA

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
            onward = yield from _batches(partition.value, pages, work)
            if walk.stretch is not None:
                yield pa.record_batch([[partition.value], [None], [onward], [None], ["{}"]], schema=_ARROW)


def _batches(
    walk: int, pages: Generator[Sequence[Record], None, str], work: Work
) -> Generator[pa.RecordBatch, None, str]:
    while True:
        try:
            records = next(pages)
        except StopIteration as end:
            return str(end.value)
        if records:
            yield _batch(walk, records, work)


def pages_of(spark: SparkSession, work: Work) -> DataFrame:
    """WALK, its index; LINE_COLUMN, the text of a record; TEXT, the same as it is to be parsed. ONWARD_COLUMN is NULL,
    but in a row of its own that ends a stretch. Nothing is asked of the API until the frame is run."""
    spark.dataSource.register(RestPages)  # a session that was opened anew does not know it
    return spark.read.format(RestPages.name()).options(**{_SECRET_OPTION: _packed(work)}).schema(_SCHEMA).load()


def _batch(walk: int, records: Sequence[Record], work: Work) -> pa.RecordBatch:
    walks = pa.repeat(pa.scalar(walk, pa.int32()), len(records))
    lines = pa.array([record.text for record in records], pa.string())
    texts = pa.array([work.verbatim(record) for record in records], pa.string())
    unseen = pa.array([_unseen(record, work.columns) for record in records], pa.list_(pa.string()))
    onward = pa.nulls(len(records), pa.string())
    return pa.RecordBatch.from_arrays([walks, unseen, onward, lines, texts], schema=_ARROW)


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
