"""A project on the shared Spark and PostgreSQL, applied in this process as the command line does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from psycopg import sql
from pyspark.sql import SparkSession

from hakiri_dagster.cli.apply_command import work_through
from hakiri_dagster.cli.tally import Tally
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.orchestration.apply import Applier
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.settings import Settings


@dataclass
class ShopProject:
    root: Path
    url: str
    instance: dg.DagsterInstance
    env: dict[str, str] = field(default_factory=dict)
    settings: Settings = field(
        default_factory=lambda: Settings(retries=1, retry_base_seconds=0.01, transaction_wait_seconds=0)
    )

    def manifest(self, *pipelines: dict[str, Any]) -> None:
        """Pipelines land in the test's own database unless they say otherwise."""
        folder = self.root / "manifests" / "pipelines"
        folder.mkdir(parents=True, exist_ok=True)
        for pipeline in pipelines:
            document = {"destination": {"connector": "postgres", "config": {"url": self.url, "schema": "raw"}}}
            (folder / f"{pipeline['id']}.json").write_text(json.dumps(document | pipeline))

    def file(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def runtime(self, tally: Tally | None = None) -> Runtime:
        return Runtime(load_project(self.root, env=self.env), self.settings, tally)

    def apply(self, *ids: str) -> dict[str, Any]:
        """What `apply --json` answers, by table."""
        tally = Tally()
        with self.runtime(tally) as runtime:
            pipelines = [p for p in runtime.project.pipelines if not ids or p.id in ids]
            tables = [table for pipeline in pipelines for table in pipeline.tables]
            work_through(runtime, tables, tally, lambda: _opened(Applier(runtime, self.instance)))
            document = tally.document(pipelines)
        return {t["table"]: t for p in document["pipelines"] for t in p["tables"]}

    def apply_at_once(self, times: int) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(times) as pool, ExitStack() as storages:
            # each with a storage of its own: the one in memory is not for several at once
            instances = [storages.enter_context(dg.DagsterInstance.ephemeral()) for _ in range(times)]
            applies = [pool.submit(replace(self, instance=instance).apply) for instance in instances]
            return [applied.result() for applied in applies]

    def again(self, table: str, *keys: str) -> None:
        """Loads chunks whether they are due or not."""
        with self.runtime() as runtime:
            (found,) = [t for t in runtime.project.tables if t.name == table]
            survey = runtime.survey(found)
            failures = Applier(runtime, self.instance).load_again(found, survey, keys or [c.key for c in survey.chunks])
            assert failures == ()

    @property
    def checks(self) -> list[str]:
        """The names of those that were ever evaluated, of the table `orders`."""
        keys = self.instance.event_log_storage.get_latest_asset_check_execution_by_key
        with self.runtime() as runtime:
            (table,) = [table for table in runtime.project.tables if table.name == "orders"]
        names = ("no_rows_set_aside", *table.validation.check_ids)
        found = keys([dg.AssetCheckKey(dg.AssetKey([table.pipeline_id, "orders"]), name) for name in names])
        return [name for name in names if name in {key.name for key in found}]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(query.encode()).fetchall()

    def column(self, table: str, name: str) -> list[Any]:
        schema, _, relation = table.rpartition(".")
        return self.column_of(schema or "raw", relation, name)

    def column_of(self, schema: str, table: str, name: str) -> list[Any]:
        query = sql.SQL("SELECT {} FROM {} ORDER BY 1").format(sql.Identifier(name), sql.Identifier(schema, table))
        with psycopg.connect(self.url) as connection:
            return [row[0] for row in connection.execute(query)]

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(statement.encode())


class _opened:  # noqa: N801  # a context manager that neither opens nor closes
    def __init__(self, applier: Applier) -> None:
        self._applier = applier

    def __enter__(self) -> Applier:
        return self._applier

    def __exit__(self, *_exc: object) -> None: ...


@pytest.fixture
def shop(project_dir: Path, database_url: str, spark: SparkSession) -> Iterator[ShopProject]:
    with dg.DagsterInstance.ephemeral(tempdir=str(project_dir / ".hakiri")) as instance:
        yield ShopProject(project_dir, database_url, instance)


@pytest.fixture
def csv_shop(shop: ShopProject) -> Callable[..., ShopProject]:
    """A shop with one CSV table of declared settings."""

    def declare(config: dict[str, Any] | None = None, **table: Any) -> ShopProject:
        shop.manifest(
            {
                "id": "shop",
                "source": {"connector": "files", "config": {"path": "data", "format": "csv"} | (config or {})},
                "tables": [{"name": "orders"} | table],
            }
        )
        return shop

    return declare
