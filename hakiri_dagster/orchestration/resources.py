"""Dagster's resources: the project (audit DB, sources, destinations) and Spark."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pydantic import PrivateAttr

from hakiri_dagster.engine.java import ensure_java
from hakiri_dagster.engine.spark import spark_config
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.chunk_run import Way
from hakiri_dagster.pipeline.runtime import Runtime
from hakiri_dagster.settings import Settings


class ProjectResource(dg.ConfigurableResource[None]):
    """Opens audit DB, sources and destinations of the project when a run first needs them, closes them at its end."""

    root: str
    _runtime: Runtime | None = PrivateAttr(default=None)
    _owned: bool = PrivateAttr(default=False)

    def share(self, runtime: Runtime) -> None:
        """The command line has the project open already; its runs use that and leave it open."""
        self._runtime = runtime

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        if self._owned and self._runtime is not None:
            self._runtime.close()
            self._runtime = None

    def open_way(self, table: Table, spark: LazyPySparkResource, context: dg.AssetExecutionContext) -> Way:
        return self._open().way(table, lambda: _session(spark), run_id=context.run_id, log=context.log.info)

    def _open(self) -> Runtime:
        if self._runtime is None:
            root = Path(self.root)
            self._runtime = Runtime(load_project(root), Settings.from_env())
            self._owned = True
        return self._runtime


def _session(spark: LazyPySparkResource):  # type: ignore[no-untyped-def]  # pyspark stays out of this layer
    ensure_java()
    return spark.spark_session


def spark_resource(root: Path, settings: Settings) -> LazyPySparkResource:
    return LazyPySparkResource(spark_config=dict(spark_config(settings, root / ".hakiri")))
