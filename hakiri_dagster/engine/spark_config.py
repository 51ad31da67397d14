"""Spark's configuration, by where it runs. Pure: nothing is started and nothing is written."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil

from hakiri_dagster.engine.shipped_package import package_archive
from hakiri_dagster.settings import Settings

LOG4J_FILE = Path(__file__).with_name("log4j2.properties")

_MIB = 1 << 20

_QUERY = {
    "spark.sql.session.timeZone": "UTC",
    # Columns are told apart as PostgreSQL tells them: `Id` and `id` are two.
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Binds for wide tables, where 65536 rows would be hundreds of megabytes.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 * _MIB),
    # Parts of 32 MiB keep two cores busy to the end; the default of 128 MiB leaves one idle for half of the time.
    "spark.sql.files.maxPartitionBytes": str(32 * _MIB),
    "spark.sql.files.openCostInBytes": str(1 * _MIB),
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
}
"""Can be set on a running session, so also over Connect."""

_PROCESS = {
    "spark.app.name": "hakiri",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.reuse": "true",
    "spark.sql.catalogImplementation": "in-memory",
    # Else PySpark tells the JVM for each call of a column function where in our code that was: half of all messages.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""Static: decided when the JVM starts."""


PYTHON_FILES = "spark.submit.pyFiles"

PACKAGE_MARK = "spark.hakiri.package"
"""Tells the clients of a Connect server which package its workers have: the name of an archive, or `ITS_OWN`."""

ITS_OWN = "own"


def is_remote(settings: Settings) -> bool:
    """Spark runs elsewhere, behind Spark Connect, and this process has no JVM."""
    return settings.spark.startswith("sc://")


def is_local(settings: Settings) -> bool:
    return settings.spark.startswith("local")


def spark_config(settings: Settings, state_dir: Path) -> dict[str, str]:
    """For `SparkSession.builder`, hence for dagster-pyspark. The operator's own settings win."""
    if is_remote(settings):
        return {"spark.remote": settings.spark, **_QUERY, **settings.spark_conf}
    config = {"spark.master": settings.spark, **_QUERY, **driver_config(settings, state_dir)}
    if is_local(settings):
        return {**config, **local_config(state_dir), **settings.spark_conf}
    own = settings.spark_conf
    return {**config, **_EXECUTOR, **own, PYTHON_FILES: _joined(str(package_archive(state_dir)), own.get(PYTHON_FILES))}


def workers_python(settings: Settings) -> str | None:
    """The Python of a cluster's workers, if the operator says. PySpark heeds the setting in the environment only."""
    return settings.spark_conf.get("spark.pyspark.python")


def driver_config(settings: Settings, state_dir: Path) -> dict[str, str]:
    spark_dir = state_dir / "spark"
    return {
        **_PROCESS,
        "spark.driver.memory": settings.spark_driver_memory or default_driver_memory(),
        "spark.driver.extraJavaOptions": _java_options(spark_dir),
        "spark.sql.warehouse.dir": str(spark_dir / "warehouse"),
        "spark.pyspark.driver.python": sys.executable,
    }


def local_config(state_dir: Path) -> dict[str, str]:
    """Executors are threads of the driver: one machine, one Python, nothing listens to the network."""
    cores = os.cpu_count() or 2
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(state_dir / "spark" / "local"),
        "spark.pyspark.python": sys.executable,
        "spark.sql.shuffle.partitions": str(max(2 * cores, 4)),
    }


def default_driver_memory(total: int | None = None) -> str:
    """An eighth of the machine. Rows stream, so a gigabyte is enough for any table."""
    total = psutil.virtual_memory().total if total is None else total
    return f"{max(min(total // 8 // _MIB, 1024), 512)}m"


_JVM_OPTIONS = (
    # Short-lived Arrow buffers in a small heap: measured on SF 1, G1 took half as long again for the same read.
    "-XX:+UseParallelGC",
    # Arrow checks the bounds of every value it writes; Spark's writers are right without.
    "-Darrow.enable_unsafe_memory_access=true",
    "-Darrow.enable_null_check_for_get=false",
)


_EXECUTOR = {"spark.executor.extraJavaOptions": " ".join(_JVM_OPTIONS)}


def _joined(*files: str | None) -> str:
    return ",".join(filter(None, files))


def _java_options(spark_dir: Path) -> str:
    options = {
        "log4j2.configurationFile": LOG4J_FILE.as_uri(),
        "hakiri.spark.log": str(spark_dir / "spark.log"),
        "derby.system.home": str(spark_dir),
    }
    return " ".join([*_JVM_OPTIONS, *(f'"-D{name}={value}"' for name, value in options.items())])
