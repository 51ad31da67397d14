"""A target's columns as everybody sees them now, profiled."""

from __future__ import annotations

from hakiri_dagster.errors import HakiriError, SourceError, SourceUnavailable
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.live_profile import live_profile
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.quality.profile import TableProfile


def profile_of_target(runtime: Runtime, table: Table) -> TableProfile:
    target = runtime.destination(table).describe(table)
    if target is None:
        place = f"{table.target_schema}.{table.target_name}"
        hint = f"load it first: `hakiri apply {table.pipeline_id}`"
        raise HakiriError(f"there is no target {place} yet", where=table.label, hint=hint)
    try:
        return live_profile(table.label, runtime.target_as_source(table), runtime.open_spark)
    except SourceUnavailable:
        raise
    except SourceError:  # it may hold what Spark's types cannot: an infinite date, a decimal that is NaN
        narrow = [column.name for column in target.columns if column.type.startswith(("date", "time", "numeric"))]
        return live_profile(table.label, runtime.target_as_source(table, as_text=narrow), runtime.open_spark)
