"""Manifests of what is measured, and what others ask of the target meanwhile."""

from __future__ import annotations

import json
from typing import Any

LINEITEM = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "lineitem", path = "work/*.parquet" }]
load = { mode = "truncate" }
"""
JSON_LINES = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "lineitem", path = "work/*.jsonl" }]
load = { mode = "truncate" }
"""
RULED = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "lineitem", path = "work/*.parquet" }]
load = { mode = "truncate" }
row_level = RULES
dataset_level = VALIDATORS
"""
ALL_BAD = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "lineitem", path = "work/*.parquet" }]
load = { mode = "truncate", fail_on_empty_source = false }
validate = { row_level = RULES, quarantine = { allow_all = true } }
"""
POINT_READS = """
\\set order random(1, ORDERS)
SELECT l_quantity FROM measured.lineitem WHERE l_orderkey = :order AND l_linenumber = 1;
"""
SCANS = """
SELECT l_shipmode, sum(l_extendedprice * (1 - l_discount)), count(DISTINCT l_suppkey) FROM measured.lineitem GROUP BY 1;
"""
MONTHLY = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
incremental = "l_shipdate"
tables = [{ name = "lineitem", path = "work/*.parquet" }]
load = { mode = "append" }
backfill = { window = "1mo" }
"""
UPSERT = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "TABLE", path = "work/*.parquet", primary_key = KEYS }]
load = { mode = "upsert" }
"""
SCD2 = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "TABLE", path = "work/*.parquet", primary_key = KEYS }]
load = { mode = "scd2", close_missing = false }
"""
BLUE_GREEN = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "lineitem", path = "work/*.parquet", primary_key = KEYS }]
load = { mode = "blue_green" }
"""
FROM_POSTGRES = """
[[pipeline]]
id = "work"
source = { connector = "postgres", config = { url = "${BENCH_URL}", schema = "origin" } }
tables = ["lineitem"]
load = { mode = "truncate" }
"""
FROM_POSTGRES_IN_WINDOWS = """
[[pipeline]]
id = "work"
source = { connector = "postgres", config = { url = "${BENCH_URL}", schema = "origin" } }
incremental = "l_shipdate"
tables = ["lineitem"]
load = { mode = "append" }
backfill = { window = "WINDOW" }
"""
BUSY_SOURCE = """
[[pipeline]]
id = "work"
source = { connector = "postgres", config = { url = "${BENCH_URL}", schema = "origin" } }
incremental = "created_at"
tables = ["events"]
load = { mode = "append" }
backfill = { window = "1y" }
"""
MANY_CHUNKS = """
[[pipeline]]
id = "work"
source = { connector = "postgres", config = { url = "${BENCH_URL}", schema = "origin" } }
incremental = "id"
tables = ["many"]
load = { mode = "append" }
backfill = { window = 10 }
"""
SMALL_CHUNKS = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "many", path = "work/*.parquet" }]
load = { mode = "append" }
"""
COLD = """
[[pipeline]]
id = "work"
source = { connector = "files", config = { path = "work" } }
tables = [{ name = "one", path = "work/*.parquet" }]
load = { mode = "truncate" }
"""


def as_toml(value: Any) -> str:
    match value:
        case dict():
            return "{ " + ", ".join(f"{key} = {as_toml(inner)}" for key, inner in value.items()) + " }"
        case list():
            return f"[{', '.join(map(as_toml, value))}]"
        case _:
            return json.dumps(value)
