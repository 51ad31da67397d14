"""How tables are named in Dagster. Dagster takes `[A-Za-z0-9_-]` only; what a name loses there, a hash keeps apart."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import dagster as dg

from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.security.secrets import redact

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]")
DUE_ONLY_TAG = "hakiri/due_only"
"""On runs that converge (apply, schedules, sensors): what is not due is left alone. Without it, a run loads again."""
OCCASION_TAG = "hakiri/occasion"
"""The same on all runs of one `apply` or of one tick."""
DELIVERIES_TAG = "hakiri/deliveries"
"""On runs that deliveries have started: the batch in which these are served together."""
TABLE_TAG = "hakiri/table"
"""`pipeline/table`, on every run that loads one: Dagster keeps no selection of runs that `apply` executes."""
PIPELINE_TAG = "hakiri/pipeline"
"""On the runs of a pipeline's own job, which are of all its tables."""
PHASE_TAG = "hakiri/phase"
"""In which phase a table was when a tick asked for the run."""
ALONG_TAG = "hakiri/along"
"""Keys, with commas between, that a run loads beside its partitions: Dagster, which has loaded the project before their
windows were planned, takes no request for them."""
LEFT_TAG = "hakiri/left"
"""Keys, with commas between, that a run of deliveries has left to whoever held them."""
VERIFY_TAG = "hakiri/verify"
"""On runs that compare a table with its source, and load nothing."""
PARTITION_TAG = "dagster/partition"
RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"

# Sensors. No pipeline's id begins like this, so none of its names can be the same.
ALERTS = "_alerts"
DELIVERIES = "_deliveries"
FILE_ARRIVALS = "_file_arrivals"
KILLED_RUNS = "_killed_runs"
PLANNER = "_planner"
QUEUES = "_queues"
STALE_LEASES = "_stale_leases"


def allowed(name: str) -> str:
    safe = _NOT_ALLOWED.sub("_", name)
    return safe if safe == name else f"{safe}_{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def asset_key(table: Table) -> dg.AssetKey:
    return dg.AssetKey([table.pipeline_id, allowed(table.name)])


def op_name(table: Table) -> str:
    """`a-b` and `a_b` may both be ids, but Dagster's op names have no hyphen."""
    plain = f"load__{table.pipeline_id}__{allowed(table.name)}"
    identifier = plain.replace("-", "_")
    if identifier == plain:
        return identifier
    return f"{identifier}_{hashlib.sha256(plain.encode()).hexdigest()[:6]}"


def group_name(pipeline_id: str) -> str:
    return pipeline_id.replace("-", "_")


def verify_schedule_name(group: str, table: Table | None = None) -> str:
    """No pipeline's id begins with `_`, so no other schedule has the name."""
    return f"_verify_{group}" if table is None else f"_verify__{op_name(table)}"


def source_key(lineage: tuple[str, ...], root: Path) -> dg.AssetKey:
    """Files of the project are named from its folder on, so that keys are the same on every machine."""
    kind, *place = lineage
    within = root.parts[1:]
    if tuple(place[: len(within)]) == within:
        place = place[len(within) :]
    return dg.AssetKey([allowed(redact(part)) for part in (kind, *place)])


def partitions_name(table: Table) -> str:
    """Dynamic partitions are global to an instance, so their names carry pipeline and table."""
    return f"{table.pipeline_id}/{table.name}"


def pool_name(table: Table) -> str:
    """A pool holds one run. A pipeline has as many as it may have passes at once, and each table is in one of them: so
    the queue starts no run that would wait for others of its pipeline, and no two of one table."""
    return f"{table.pipeline_id}/{table.position % table.backfill.parallelism + 1}"
