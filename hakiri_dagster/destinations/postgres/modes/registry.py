"""Load modes by name."""

from __future__ import annotations

from collections.abc import Mapping

from hakiri_dagster.destinations.postgres.modes.append import Append
from hakiri_dagster.destinations.postgres.modes.blue_green import BlueGreen
from hakiri_dagster.destinations.postgres.modes.contract import Mode
from hakiri_dagster.destinations.postgres.modes.delete_missing import DeleteMissing
from hakiri_dagster.destinations.postgres.modes.incremental_watermark import IncrementalWatermark
from hakiri_dagster.destinations.postgres.modes.scd2 import Scd2
from hakiri_dagster.destinations.postgres.modes.truncate import Truncate
from hakiri_dagster.destinations.postgres.modes.upsert import Upsert
from hakiri_dagster.errors import NotYet
from hakiri_dagster.manifest.load_spec import LoadMode
from hakiri_dagster.manifest.tables import Table

MODES: Mapping[LoadMode, Mode] = {
    "append": Append(),
    "truncate": Truncate(),
    "upsert": Upsert(),
    "blue_green": BlueGreen(),
    "delete_missing": DeleteMissing(),
    "incremental_watermark": IncrementalWatermark(),
    "scd2": Scd2(),
}


def mode_of(table: Table) -> Mode:
    mode = MODES.get(table.mode)
    if mode is None:
        raise NotYet(
            f"not yet: load mode {table.mode}",
            where=table.label,
            hint=f"this version has {', '.join(MODES)}",
        )
    return mode
