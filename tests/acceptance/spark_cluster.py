"""A standalone Spark cluster on loopback: a master and two workers, each a process that can be killed.

Its Python has what the package depends on and not the package, which has to come with the work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyspark

from hakiri_dagster.engine.connect_server import accepts
from hakiri_dagster.engine.java import ensure_java
from hakiri_dagster.engine.postgres_settings import free_port
from tests.acceptance.command_line import command_of, eventually, kill

SPARK_HOME = Path(pyspark.__file__).parent
WORKERS = 2
FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
"""None of these JVMs lives long enough to earn back what the second one costs."""

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class SparkCluster:
    url: str
    page: str
    python: str

    @property
    def env(self) -> dict[str, str]:
        """What an operator sets."""
        settings = {
            "spark.pyspark.python": self.python,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": FIRST_COMPILER,
            "spark.sql.shuffle.partitions": "2",
            # no task before both workers have an executor, so that each of them gets some
            "spark.cores.max": str(WORKERS),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        }
        told = " ".join(f"{key}={value}" for key, value in settings.items())
        return {"HAKIRI_SPARK": self.url, "HAKIRI_SPARK_CONF": told}

    def living_workers(self) -> int:
        try:
            with urllib.request.urlopen(self.page, timeout=5) as answer:
                told: Any = json.load(answer)
        except (urllib.error.URLError, json.JSONDecodeError):  # the master is there before its page
            return 0
        return int(told["aliveworkers"])


def kill_worker_of(task: int) -> None:
    """`task`: a process that runs Python for Spark. Its executor dies, and the worker that would tell of it."""
    above = psutil.Process(task).parents()
    executor = next(process for process in above if _EXECUTOR in command_of(process))
    worker = next(process for process in above if _WORKER in command_of(process))
    for process in (worker, executor):
        kill(process)


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    port, page = free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    cluster = SparkCluster(url, f"http://127.0.0.1:{page}/json/", _python_without_us(folder / "python"))
    with ExitStack() as stack:
        master = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]
        stack.enter_context(_daemon(folder, _MASTER, master))
        assert eventually(lambda: accepts(port)), (folder / f"{_MASTER}.log").read_text()
        for number in range(WORKERS):
            room = ["--cores", "1", "--memory", "600m", "--webui-port", "0"]
            work = ["--host", "127.0.0.1", "--work-dir", str(folder / f"work-{number}")]
            stack.enter_context(_daemon(folder, _WORKER, [*room, *work, url]))
        assert eventually(lambda: cluster.living_workers() == WORKERS), (folder / f"{_WORKER}.log").read_text()
        yield cluster


@contextmanager
def _daemon(folder: Path, name: str, arguments: Sequence[str]) -> Iterator[None]:
    env = {
        **_environment(),
        "JAVA_HOME": str(ensure_java()),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": FIRST_COMPILER,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), name, *arguments],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=folder, start_new_session=True,
        )  # fmt: skip
    try:
        yield
    finally:
        family = [*psutil.Process(process.pid).children(recursive=True), process]
        for one in family:
            one.kill()
        process.wait()


def _python_without_us(folder: Path) -> str:
    """A list of paths in a `.pth` file does not heed the `.pth` files there, by which we are installed."""
    venv.create(folder, symlinks=True)
    python = str(folder / "bin" / "python")
    own = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    others = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    Path(own, "others.pth").write_text("\n".join(others))
    wanted = [python, "-c", "import pyspark, pgpq, hakiri_dagster"]
    ours = subprocess.run(wanted, capture_output=True, text=True, check=False, cwd=folder, env=_environment())
    assert "No module named 'hakiri_dagster'" in ours.stderr, ours
    return python


def _environment() -> dict[str, str]:
    """A path of Python's that leads to us is not in it."""
    return {key: os.environ[key] for key in ("PATH", "HOME", "LANG", "XDG_CACHE_HOME") if key in os.environ}
