"""What goes in as Arrow comes out of PostgreSQL as the same value, whatever the format it travels in."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hakiri_dagster.destinations.postgres.catalog import base_types, find
from hakiri_dagster.destinations.postgres.column_plan import ColumnPlan
from hakiri_dagster.destinations.postgres.conversion import wire_for
from hakiri_dagster.destinations.postgres.copy import Blocks
from hakiri_dagster.destinations.postgres.encoding import PostgresEncoderPlan
from tests.integration.destinations.postgres.scenario import MemoryCandidate

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
MOMENTS = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
DECIMALS = st.decimals(-99999999, 99999999, places=2, allow_nan=False, allow_infinity=False)


def _int(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _json_text(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(children, max_size=3) | st.dictionaries(TEXT, children, max_size=3)


DOCUMENTS = st.recursive(st.booleans() | _int(32) | TEXT, _json_text, max_leaves=5).map(lambda value: json.dumps(value))

KINDS: list[tuple[str, pa.DataType, st.SearchStrategy[Any]]] = [
    ("smallint", pa.int16(), _int(16)),
    ("smallint", pa.int64(), _int(16)),
    ("integer", pa.int32(), _int(32)),
    ("bigint", pa.int64(), _int(64)),
    ("bigint", pa.int8(), _int(8)),
    ("integer", pa.float64(), _int(32).map(float)),
    ("double precision", pa.float64(), st.floats()),
    ("real", pa.float32(), st.floats(width=32)),
    ("boolean", pa.bool_(), st.booleans()),
    ("text", pa.string(), TEXT),
    ("character varying(20)", pa.string(), TEXT),
    ("numeric(10,2)", pa.decimal128(15, 2), DECIMALS),
    ("numeric", pa.decimal128(38, 18), st.decimals(-(10**19), 10**19, places=18, allow_nan=False)),
    ("numeric(12,4)", pa.decimal128(10, 2), DECIMALS),
    ("numeric(20,0)", pa.int64(), _int(64)),
    ("date", pa.date32(), st.dates(dt.date(1, 1, 1))),
    ("timestamp without time zone", pa.timestamp("us"), MOMENTS),
    ("timestamp with time zone", pa.timestamp("us", "UTC"), MOMENTS.map(lambda m: m.replace(tzinfo=dt.UTC))),
    ("bytea", pa.binary(), st.binary(max_size=10)),
    ("uuid", pa.string(), st.uuids().map(str)),
    ("jsonb", pa.string(), DOCUMENTS),
    ("json", pa.string(), DOCUMENTS),
    ("interval", pa.duration("us"), st.timedeltas(dt.timedelta(days=-9999), dt.timedelta(days=9999))),
    ("time without time zone", pa.time64("us"), st.times()),
    ("integer[]", pa.list_(pa.int32()), st.lists(st.none() | _int(32), max_size=3)),
    ("text[]", pa.list_(pa.string()), st.lists(st.none() | TEXT, max_size=3)),
    ("character varying[]", pa.list_(pa.string()), st.lists(st.none() | TEXT, max_size=3)),
    ("double precision[]", pa.list_(pa.float64()), st.lists(st.none() | st.floats(allow_nan=False), max_size=3)),
    ("date[]", pa.list_(pa.date32()), st.lists(st.none() | st.dates(), max_size=3)),
    ("numeric[]", pa.list_(pa.decimal128(12, 2)), st.lists(st.none() | DECIMALS, max_size=3)),
    (
        "timestamp with time zone[]",
        pa.list_(pa.timestamp("us", "UTC")),
        st.lists(st.none() | MOMENTS.map(lambda m: m.replace(tzinfo=dt.UTC)), max_size=3),
    ),
    ("bytea[]", pa.list_(pa.binary()), st.lists(st.none() | st.binary(max_size=5), max_size=3)),
    ("money", pa.string(), st.just("$12.50")),
    ("int4range", pa.string(), st.just("[1,5)")),
    ("inet", pa.string(), st.ip_addresses().map(str)),
]


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(database_url, prepare_threshold=None, options="-c timezone=UTC") as opened:
        yield opened


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_batches_come_out_as_they_went_in(
    connection: psycopg.Connection[tuple[Any, ...]], data: st.DataObject
) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6))
    size = data.draw(st.integers(1, 5))
    columns = [data.draw(st.lists(st.none() | strategy, min_size=size, max_size=size)) for _, _, strategy in kinds]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(values, kind) for values, (_, kind, _) in zip(columns, kinds, strict=True)],
        names=[f"c{index}" for index in range(len(kinds))],
    )
    offset = data.draw(st.integers(0, size - 1))
    stored = round_trip(connection, batch.slice(offset), [name for name, _, _ in kinds])
    sent = list(zip(*columns, strict=True))[offset:]
    for stored_row, sent_row in zip(stored, sent, strict=True):
        for got, given_value, (target, _, _) in zip(stored_row, sent_row, kinds, strict=True):
            assert same(got, given_value, target), (target, got, given_value)


def round_trip(
    connection: psycopg.Connection[tuple[Any, ...]], batch: pa.RecordBatch, targets: list[str]
) -> list[tuple[Any, ...]]:
    definitions = ", ".join(f"c{index} {target}" for index, target in enumerate(targets))
    connection.execute(f"CREATE TEMPORARY TABLE t ({definitions}, row_number serial)".encode())
    schema = connection.execute("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()").fetchone()
    assert schema is not None
    found = find(connection, schema[0], "t")
    assert found is not None
    types = base_types(connection, found.oid)
    plans = []
    for field in batch.schema:
        wire = wire_for(field.type, types[field.name].type)
        assert wire is not None, field
        plans.append(ColumnPlan(field.name, types[field.name].type, wire.type, wire.binary, types[field.name].labels))
    plan = PostgresEncoderPlan(tuple(plans))
    storable, refusals = plan.prepare(batch)
    assert not refusals, refusals
    encoder = plan.encoder()
    blocks = [encoder.write(storable) + encoder.finish()]
    candidate = Blocks(MemoryCandidate(blocks, batch.num_rows))
    candidate.copy_into(connection, psycopg.sql.Identifier(schema[0], "t"), plan.columns)
    names = ", ".join(plan.columns)
    stored = connection.execute(f"SELECT {names} FROM t ORDER BY row_number".encode()).fetchall()
    connection.rollback()
    return stored


def same(stored: Any, sent: Any, target: str) -> bool:
    if stored is None or sent is None:
        return stored is sent
    match target:
        case "uuid":
            return bool(stored == UUID(sent))
        case "json" | "jsonb":
            return bool(stored == json.loads(sent))
        case "real":
            return same(float(np.float32(stored)), sent, "double precision")
        case "double precision":
            return stored == sent or (math.isnan(stored) and math.isnan(sent))
        case "money" | "int4range":
            return True
        case "inet":
            return str(stored) == sent
        case _:
            return bool(stored == sent)


@pytest.mark.parametrize(
    ("target", "array", "text"),
    [
        ("date", pa.array([-719529 - 365, 2932897], pa.int32()).cast(pa.date32()), ["0003-12-31 BC", "10000-01-01"]),
        (
            "timestamp with time zone",
            pa.array([-62167219200000000 - 1, 253402300800000000]).cast(pa.timestamp("us", "UTC")),
            ["0002-12-31 23:59:59.999999+00 BC", "10000-01-01 00:00:00+00"],
        ),
    ],
)
@pytest.mark.parametrize("binary", [True, False])
def test_years_beyond_four_digits_and_before_christ_are_stored(
    connection: psycopg.Connection[tuple[Any, ...]], target: str, array: pa.Array, text: list[str], binary: bool
) -> None:
    columns = {"c0": array.cast(array.type)} | ({} if binary else {"c1": pa.array(["10.0.0.1"] * 2)})
    targets = [target] if binary else [target, "inet"]
    connection.execute("CREATE DOMAIN pg_temp.shown AS text")
    stored = _as_text(connection, pa.RecordBatch.from_pydict(columns), targets)
    assert stored == text


def _as_text(connection: psycopg.Connection[tuple[Any, ...]], batch: pa.RecordBatch, targets: list[str]) -> list[str]:
    class AsText(psycopg.adapt.Loader):
        def load(self, data: psycopg.abc.Buffer) -> str:
            return bytes(data).decode()

    for name in ("date", "timestamptz"):
        connection.adapters.register_loader(name, AsText)
    return [row[0] for row in round_trip(connection, batch, targets)]


def test_nested_values_become_json(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    kind = pa.struct(
        [("a", pa.decimal128(20, 5)), ("b", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.int64()))]
    )
    value = {"a": Decimal("12345678901234.12345"), "b": ["x", None, 'q"'], "m": [("k", 1)]}
    batch = pa.RecordBatch.from_pydict({"c0": pa.array([value, None], kind)})
    stored = connection.execute("SELECT 1") and round_trip(connection, batch, ["jsonb"])
    assert stored == [({"a": 12345678901234.12345, "b": ["x", None, 'q"'], "m": {"k": 1}},), (None,)]


def test_enums_domains_and_names_take_text(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    connection.execute("CREATE TYPE mood AS ENUM ('ok', 'bad')")
    connection.execute("CREATE DOMAIN short AS character varying(3)")
    connection.commit()
    batch = pa.RecordBatch.from_pydict({"c0": ["ok", None], "c1": ["abc", "d"], "c2": ["n", "m"]})
    assert round_trip(connection, batch, ["mood", "short", "name"]) == [("ok", "abc", "n"), (None, "d", "m")]
