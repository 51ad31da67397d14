"""Chooses, for each column of a batch, how it gets into the target."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hakiri_dagster.destinations.contract import (
    INGESTED_AT_COLUMN,
    KEPT_ID_COLUMN,
    LOAD_ID_COLUMN,
    SOURCE_FILE_HASH_COLUMN,
    Target,
    TargetColumn,
)
from hakiri_dagster.destinations.postgres import catalog
from hakiri_dagster.destinations.postgres.catalog import BaseType
from hakiri_dagster.destinations.postgres.column_plan import ColumnPlan
from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.destinations.postgres.conversion import wire_for
from hakiri_dagster.destinations.postgres.encoding import PostgresEncoderPlan
from hakiri_dagster.destinations.postgres.modes.registry import mode_of
from hakiri_dagster.destinations.postgres.types import PgType, parse_type
from hakiri_dagster.errors import DestinationError
from hakiri_dagster.manifest.tables import Table

# What the staging adds to each row by itself. A row's hash is computed in Spark and comes as a column of the source.
_ADDED_PROVENANCE: Mapping[str, pa.DataType] = {
    LOAD_ID_COLUMN: pa.int64(),
    SOURCE_FILE_HASH_COLUMN: pa.binary(),
    INGESTED_AT_COLUMN: pa.timestamp("us", "UTC"),
}

_KEPT_ID = ColumnPlan(KEPT_ID_COLUMN, PgType("bigint"), pa.int64(), binary=True)


def plan_encoder(
    connection: Connection, table: Table, target: Target, arrow_columns: Mapping[str, pa.DataType]
) -> PostgresEncoderPlan:
    found = catalog.find(connection, target.schema, target.name)
    if found is None:
        raise DestinationError("the target was dropped", where=table.label, hint="apply again: it is created anew")
    present = {column.name: column for column in found.target.columns}
    types = {**catalog.base_types(connection, found.oid), **_retyped(target)}
    required = mode_of(table).required(table)
    batch_columns = {name: kind for name, kind in arrow_columns.items() if name != KEPT_ID_COLUMN}
    if LOAD_ID_COLUMN not in batch_columns:
        batch_columns |= {name: kind for name, kind in _ADDED_PROVENANCE.items() if name in present}
    plans = [_plan_column(table, name, kind, present, types, required) for name, kind in batch_columns.items()]
    return PostgresEncoderPlan((*plans, _KEPT_ID) if KEPT_ID_COLUMN in arrow_columns else tuple(plans))


def _retyped(target: Target) -> dict[str, BaseType]:
    """As the columns will be when the rows come in."""
    kinds = ((name, parse_type(text)) for name, text in target.retyped)
    return {name: BaseType(kind, (), exact=True) for name, kind in kinds if kind is not None}


def _plan_column(
    table: Table,
    name: str,
    kind: pa.DataType,
    present: Mapping[str, TargetColumn],
    types: Mapping[str, BaseType],
    required: Mapping[str, str],
) -> ColumnPlan:
    kept = catalog.stored_name(name)
    column = present.get(kept)
    if column is None:
        raise DestinationError(f"the target has no column {name}", where=table.label)
    base = types[kept]
    wire = wire_for(kind, base.type)
    if wire is None:
        raise DestinationError(
            f"{name} is {kind} in the source and {column.type} in the target, which cannot store it",
            where=table.label,
            hint="change the target's column, or cast it at the source",
        )
    return ColumnPlan(
        name=name,
        target=base.type,
        wire=wire.type,
        binary=wire.binary,
        labels=base.labels,
        lenient=table.contract == "discard_value",
        required=required.get(kept) or (None if column.nullable else "the target does not allow it"),
    )
