"""The project that `hakiri init` writes: small, commented, and ready to be applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from uuid import uuid4

from hakiri_dagster.errors import UsageError

_HAKIRI_TOML = """\
#:schema ../.hakiri/schema/hakiri.json

[project]
name = "my-project"
version = "0.1.0"
# Keep this in every copy of the project; another project needs another one. Targets know by it whose rows they hold.
id = "$project_id"

# Where tables land. Without a destination: a PostgreSQL that hakiri starts by itself, in .hakiri/.
# `${NAME}` is filled in from the environment, so that no password is written down here.
#
# [context]
# default_destination = "warehouse"
#
# [destinations.warehouse]
# connector = "postgres"
# config = { url = "${WAREHOUSE_URL}", schema = "raw" }

# A pipeline: a source, its tables, where they land and how. Every table becomes an asset in Dagster.
# Further pipelines can stand here, or in pipelines/*.toml and pipelines/*.json, one a file.
[[pipeline]]
id = "shop"
description = "The example shop: change it, or take it away."
source = { connector = "files", config = { path = "data", format = "csv" } }
# schedule = "every 15m"            # or cron: "0 */2 * * *"; runs while `hakiri serve` is up

# A name alone is a table: data/customers.csv lands in public.customers.
# With a primary key, rows that come again are updated; without one, they are appended.
tables = [
    { name = "customers", primary_key = ["customer_id"] },
    { name = "orders", primary_key = ["order_id"], incremental = "updated_at" },
]

# Tables with a cursor (`incremental`) are loaded in chunks. Each is committed by itself, and shows in Dagster as
# a partition: an interrupted load goes on where it stopped.
[pipeline.backfill]
window = "1mo"                      # 15m 6h 30d 1w 1mo 1q 1y, or a number of ids: 100000
# start_from = "2020-01-01"         # rows before this are never read
# parallelism = 4
"""

_PRODUCTS_JSON = """\
{
  "$schema": "../../.hakiri/schema/pipeline.json",
  "id": "catalogue",
  "description": "The same language in JSON. All rows are replaced in one moment.",
  "source": { "connector": "files", "config": { "path": "data", "format": "csv" } },
  "tables": ["products"],
  "load": { "mode": "blue_green" }
}
"""

_CUSTOMERS_CSV = """\
customer_id,name,email,country,created_at
1,Ada Lindqvist,ada@example.com,SE,2024-01-04T09:12:00
2,Bruno Costa,bruno@example.com,PT,2024-01-19T16:40:00
3,Chidi Okafor,chidi@example.com,NG,2024-02-02T11:05:00
4,Daria Novak,,CZ,2024-02-27T08:30:00
"""

_ORDERS_CSV = """\
order_id,customer_id,product_id,quantity,amount,updated_at
1001,1,10,1,24.90,2024-01-05T10:00:00
1002,2,11,2,18.00,2024-01-20T12:30:00
1003,1,12,1,129.00,2024-02-03T09:15:00
1004,3,10,3,74.70,2024-02-14T18:45:00
1005,4,11,1,9.00,2024-03-01T07:20:00
1006,2,12,1,129.00,2024-03-18T21:10:00
"""

_PRODUCTS_CSV = """\
product_id,name,price
10,Notebook,24.90
11,Pencils,9.00
12,Desk lamp,129.00
"""

GITIGNORE = ".gitignore"
_PROJECT_FILE = "manifests/hakiri.toml"

_FILES: Mapping[str, str] = {
    _PROJECT_FILE: _HAKIRI_TOML,
    "manifests/pipelines/catalogue.json": _PRODUCTS_JSON,
    "data/customers.csv": _CUSTOMERS_CSV,
    "data/orders.csv": _ORDERS_CSV,
    "data/products.csv": _PRODUCTS_CSV,
    GITIGNORE: ".hakiri/\n.env\n",
}


@dataclass(frozen=True, slots=True)
class Scaffold:
    """`kept_gitignore`: there was one already, and it was left as it is."""

    written: tuple[str, ...]
    kept_gitignore: bool


def write_scaffold(root: Path, extra_files: Mapping[str, str] | None = None) -> Scaffold:
    """All files, or none: a file that is there already is never overwritten."""
    files = {**_FILES, **(extra_files or {})}
    files[_PROJECT_FILE] = Template(files[_PROJECT_FILE]).safe_substitute(project_id=uuid4())
    kept_gitignore = (root / GITIGNORE).exists()
    if kept_gitignore:
        del files[GITIGNORE]
    there = [name for name in files if (root / name).exists()]
    if there:
        raise UsageError(
            f"already there, and never overwritten: {', '.join(there)}",
            where=str(root),
            hint="run `hakiri init` with the name of a new folder",
        )
    for name, text in files.items():
        _write_new(root / name, text)
    return Scaffold(tuple(files), kept_gitignore)


def _write_new(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        hint = "run `hakiri init` with the name of a folder that you may write to"
        raise UsageError(f"cannot be written: {error.strerror}", where=str(path), hint=hint) from error
