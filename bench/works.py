"""What is measured: each work is a manifest, what is done around it, and how much it may cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from claim_works import claims
from cost_works import cost_model
from load_works import (
    append_monthly,
    blue_green,
    blue_green_readers,
    from_postgres,
    from_postgres_monthly,
    json_lines,
    scd2,
    truncate,
    truncate_against_dlt,
    upsert_lineitem,
    upsert_orders,
    upsert_unchanged,
)
from measuring import Bench, Row
from project_works import cold, converged, idle, many_chunks, many_tables, memory, small_chunks, ui_backfill
from quality_works import all_bad, great_expectations, row_rules, validators_in_sql
from source_works import busy_source, horizon
from verify_works import verify

WORKS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "truncate": truncate,
    "dlt": truncate_against_dlt,
    "row-rules": row_rules,
    "great-expectations": great_expectations,
    "validators-in-sql": validators_in_sql,
    "all-bad": all_bad,
    "json-lines": json_lines,
    "append": append_monthly,
    "blue-green": blue_green,
    "blue-green-readers": blue_green_readers,
    "upsert-orders": upsert_orders,
    "upsert-lineitem": upsert_lineitem,
    "upsert-unchanged": upsert_unchanged,
    "scd2": scd2,
    "from-postgres": from_postgres,
    "from-postgres-monthly": from_postgres_monthly,
    "horizon": horizon,
    "busy-source": busy_source,
    "verify": verify,
    "cold": cold,
    "small-chunks": small_chunks,
    "many-chunks": many_chunks,
    "claims": claims,
    "ui-backfill": ui_backfill,
    "cost-model": cost_model,
    "converged": converged,
    "many-tables": many_tables,
    "idle-ticks": idle,
    "memory": memory,
}
