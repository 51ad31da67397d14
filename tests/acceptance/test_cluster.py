"""Loads by a Spark cluster whose workers know nothing of us, one of which dies in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hakiri_dagster.engine.connect_server import connect_server
from hakiri_dagster.settings import Settings
from tests.acceptance.command_line import eventually
from tests.acceptance.conftest import NewProject
from tests.acceptance.held_api import LONG, Readings, assert_loaded_exactly_once, readings_table
from tests.acceptance.spark_cluster import SparkCluster, kill_worker_of, spark_cluster
from tests.integration.connectors.rest.api_server import serving


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def test_a_connect_server_on_the_cluster_is_sent_the_package_by_its_clients(
    new_project: NewProject, cluster: SparkCluster, tmp_path: Path
) -> None:
    project = new_project("connected-cluster")
    project.file("manifests/hakiri.toml", '[project]\nname = "lab"\n')
    project.file("data/readings.csv", "id,text\n1,a\n2,b\n")
    files = {"connector": "files", "config": {"path": "data", "format": "csv"}}
    project.pipeline({"id": "lab", "source": files, "tables": ["readings"]})
    with connect_server(Settings.from_env(cluster.env), tmp_path / "server") as server:
        project.env = {**server.client_environment, "HAKIRI_CANDIDATES": str(tmp_path / "candidates")}
        done = project.hakiri("apply", "--json")
        assert done.code == 0, done
    assert project.rows("SELECT id, text FROM public.readings ORDER BY id") == [(1, "a"), (2, "b")]


def test_a_load_ends_with_the_right_rows_though_a_worker_is_killed_in_its_middle(
    new_project: NewProject, cluster: SparkCluster, tmp_path: Path
) -> None:
    project, readings = new_project("cluster"), Readings()
    project.env = {**cluster.env, "HAKIRI_CANDIDATES": str(tmp_path), "HAKIRI_WEBHOOKS_TO_LOOPBACK": "true"}
    with serving(readings.answer) as api:
        readings_table(project, api.url)
        apply = project.start("apply", "--json")
        assert eventually(lambda: readings.held.is_set() or apply.poll() is not None)
        assert apply.poll() is None, apply.communicate()
        assert eventually(lambda: bool(_blocks(tmp_path))), "no block came while the walk was held"
        kill_worker_of(int(_blocks(tmp_path)[0].name.split("-")[1]))
        readings.released.set()
        done = project.finish(apply)
    assert done.code == 0, done
    assert cluster.living_workers() == 1
    assert_loaded_exactly_once(project)
    assert not list(tmp_path.glob("*/*/attempt-*"))


def _blocks(candidates: Path) -> list[Path]:
    """Of the walk that is held: the others have less."""
    return [path for path in candidates.glob("*/*/attempt-*/*.rows") if path.stat().st_size > len(LONG)]
