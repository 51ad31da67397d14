"""A profile as Dagster's metadata: a table for people, and numbers that plot over time."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.orchestration.names import asset_key
from hakiri_dagster.quality.profile import ColumnProfile, TableProfile, numbers_of
from hakiri_dagster.quality.profile_told import CELLS, cells

TARGET = "profile"
LOAD = "load_profile"
"""The UI plots an asset's events together: what is said of a load must not be called as what is said of the target."""

MOST_PLOTTED = 50
"""Columns whose numbers go into an event, which the UI reads as a whole."""

MOST_SHOWN = 200
"""Columns in the table of an event."""

Metadata = dict[str, dg.MetadataValue]


def profile_observation(table: Table, profile: TableProfile) -> dg.AssetObservation:
    return dg.AssetObservation(
        asset_key=asset_key(table),
        description=f"the target's profile: {profile.rows:,} row(s)",
        metadata={f"{TARGET}/rows": dg.MetadataValue.int(profile.rows), **profile_metadata(profile, TARGET)},
    )


def profile_metadata(profile: TableProfile, of: str) -> Metadata:
    return {
        of: _shown(profile.columns[:MOST_SHOWN]),
        **{
            f"{of}/{column.name}/{name}": _number(value)
            for column in profile.columns[:MOST_PLOTTED]
            for name, value in numbers_of(column).items()
        },
        **dict(_left_out(profile, of)),
    }


def _left_out(profile: TableProfile, of: str) -> Iterator[tuple[str, dg.MetadataValue]]:
    columns = len(profile.columns) + len(profile.left_out)
    if columns > MOST_PLOTTED:
        told = f"numbers of the first {MOST_PLOTTED} of {columns} columns"
        shown = min(MOST_SHOWN, len(profile.columns))
        more = f"; the table shows the first {shown}" if columns > shown else ""
        yield f"{of}/left_out", dg.MetadataValue.text(told + more)


def _shown(columns: tuple[ColumnProfile, ...]) -> dg.TableMetadataValue:
    schema = dg.TableSchema(columns=[dg.TableColumn(name=name, type=type_) for name, type_ in CELLS.items()])
    return dg.MetadataValue.table([dg.TableRecord(data=cells(column)) for column in columns], schema)


def _number(value: float) -> dg.MetadataValue:
    return dg.MetadataValue.int(value) if isinstance(value, int) else dg.MetadataValue.float(value)
