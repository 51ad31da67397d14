"""Projects to apply: a manifest, links to the data, and a schema of their own in the warehouse."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reference import Warehouse
from tpch import small_files

SCHEMA = "measured"

_HEAD = f"""
[project]
name = "bench"

[context]
default_destination = "bench"

[destinations.bench]
connector = "postgres"
config = {{ url = "${{BENCH_URL}}", schema = "{SCHEMA}" }}

[[pipeline]]
id = "warm-up"
source = {{ connector = "files", config = {{ path = "warm-up" }} }}
tables = [{{ name = "warm_up", path = "warm-up/*.parquet" }}]
load = {{ mode = "truncate" }}
"""


@dataclass(frozen=True)
class Project:
    folder: Path
    env: Mapping[str, str]

    def link(self, source: Path, name: str) -> None:
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(source, target)


@contextmanager
def fresh_project(work_dir: Path, warehouse: Warehouse, dagster_url: str, manifest: str) -> Iterator[Project]:
    folder = work_dir / "project"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "manifests").mkdir(parents=True)
    (folder / "manifests" / "hakiri.toml").write_text(_HEAD + manifest)
    list(small_files(folder / "warm-up", 1, 1000))
    for schema in (SCHEMA, "hakiri"):
        warehouse.forget(schema)
    yield Project(folder, {"BENCH_URL": warehouse.url, "HAKIRI_DAGSTER_URL": dagster_url})
    for schema in (SCHEMA, "hakiri"):
        warehouse.forget(schema)
    shutil.rmtree(folder, ignore_errors=True)
