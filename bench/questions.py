"""What validators ask of tables that only SQL can answer, and what a careful person would write."""

from __future__ import annotations

import time
from collections.abc import Sequence

from psycopg import sql
from reference import DATABASE, Warehouse, load_by_hand
from tpch import Data

from hakiri_dagster.destinations.postgres.destination import open_destination
from hakiri_dagster.manifest.load_spec import LoadSpec
from hakiri_dagster.manifest.spec import BackfillSpec, ValidateSpec
from hakiri_dagster.manifest.tables import Endpoint, Origin, Table
from hakiri_dagster.quality.measures import Digest, Duplicates, Measure, Orphans, Rows, Unanswered

SCHEMA = "asked"
SQL_QUESTIONS: Sequence[tuple[str, Measure, str]] = (
    (
        "`duplicate_key` of two columns",
        Duplicates(("l_orderkey", "l_linenumber")),
        "SELECT count(*), sum(n) FROM (SELECT count(*) AS n FROM asked.lineitem "
        "GROUP BY l_orderkey, l_linenumber HAVING count(*) > 1) AS d",
    ),
    (
        "`fk_integrity` to 1.5 M orders",
        Orphans("l_orderkey", SCHEMA, "orders", "o_orderkey"),
        "SELECT count(*) FROM asked.lineitem l WHERE NOT EXISTS "
        "(SELECT FROM asked.orders o WHERE o.o_orderkey = l.l_orderkey)",
    ),
    (
        "the destination's half of `row_count_matches_source` with a checksum",
        Digest(None, portable=False),
        "SELECT count(*), sum(hash_record_extended(l, 0)::numeric) FROM asked.lineitem l",
    ),
    (
        "the same, to be compared with files",
        Digest(None, portable=True),
        "SELECT count(*), sum(('x0' || left(md5(l::text), 15))::bit(64)::bigint::numeric) FROM asked.lineitem l",
    ),
)


def loaded_by_hand(warehouse: Warehouse, data: Data, table: str) -> None:
    if table == "lineitem":
        warehouse.forget(SCHEMA)
    load_by_hand(warehouse, data, SCHEMA, table)


def asked_seconds(url: str, measure: Measure) -> float:
    destination = open_destination({"url": url}, label=DATABASE)
    try:
        destination.ask(_TABLE, (Rows(),))  # connects
        started = time.perf_counter()
        answers = destination.ask(_TABLE, (measure,))
        seconds = time.perf_counter() - started
    finally:
        destination.close()
    if isinstance(answers[measure], Unanswered):
        raise SystemExit(f"no answer: {answers[measure]}")
    return seconds


def query_seconds(warehouse: Warehouse, query: str) -> float:
    started = time.perf_counter()
    warehouse.run(sql.SQL(query))  # our own constant text
    return time.perf_counter() - started


_NOWHERE = Endpoint("postgres", {})
_TABLE = Table(
    pipeline_id="bench",
    name="lineitem",
    source=_NOWHERE,
    destination=_NOWHERE,
    target_schema=SCHEMA,
    target_name="lineitem",
    mode="append",
    primary_key=(),
    upsert_key=(),
    cursor=None,
    path=None,
    columns={},
    load=LoadSpec(mode="append"),
    backfill=BackfillSpec(),
    validation=ValidateSpec(),
    description=None,
    owners=(),
    tags={},
    schedule=None,
    timezone="UTC",
    origin=Origin("bench", 1),
)
