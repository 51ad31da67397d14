"""A glance at a source: whether it says anything new. A survey, which asks the destination too, costs far more."""

from __future__ import annotations

import hashlib

from hakiri_dagster.audit.database import AuditDb
from hakiri_dagster.connectors.contract import NO_LOOKBACK, Discovery, Known, SourceTable, SparkProvider
from hakiri_dagster.engine.spark_failures import translate_spark_errors
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.shapes import cursor_of, lag_of
from hakiri_dagster.planning.horizon import Lookback


def glance(table: Table, source: SourceTable, audit: AuditDb, spark: SparkProvider) -> str:
    """The source's word. What was found out of files is remembered, so that the survey after it reads none again."""
    known = Known(
        schema=audit.tables.schema(table.pipeline_id, table.name, source.read_as),
        files=audit.files.known(table.pipeline_id, table.name),
    )
    lookback = NO_LOOKBACK
    if cursor_of(table) is not None:
        history = audit.cursor_history.of_table(table.pipeline_id, table.name)
        lookback = Lookback(history, lag_of(table), judges=False)
    with translate_spark_errors(table.label):
        discovery = source.discover(cursor=cursor_of(table), known=known, spark=spark, lookback=lookback)
    fresh = [
        file for file in discovery.files if file.path not in discovery.broken and known.files.get(file.path) != file
    ]
    if fresh:
        audit.files.put(table.pipeline_id, table.name, fresh)
    return said(discovery)


def said(discovery: Discovery) -> str:
    """The same text as long as nothing has changed that a plan could follow from. Estimates change by themselves."""
    word = (
        discovery.schema,
        discovery.cursor_kind,
        discovery.extent,
        discovery.fingerprint,
        discovery.files,
        sorted(discovery.broken),
        *discovery.parts.items(),
        *discovery.away,
    )
    return hashlib.sha256(repr(word).encode()).hexdigest()
