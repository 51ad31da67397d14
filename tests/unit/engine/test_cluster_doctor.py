from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hakiri_dagster.engine.cluster_doctor import cluster_checks, places_of
from hakiri_dagster.settings import Settings


@pytest.mark.parametrize(
    ("master", "places"),
    [
        ("spark://head:7078", [("head", 7078)]),
        ("spark://one:7077,two", [("one", 7077), ("two", 7077)]),
        ("sc://head/;token=secret", [("head", 15002)]),
        ("k8s://https://api:6443", [("api", 6443)]),
        ("yarn", []),
    ],
)
def test_where_a_master_listens_is_read_from_its_url(master: str, places: list[tuple[str, int]]) -> None:
    assert list(places_of(master)) == places


def test_a_master_that_answers_and_one_that_does_not_are_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        master, *others = cluster_checks(Settings(spark=f"spark://127.0.0.1:{port}"), tmp_path)
        assert (master.ok, [check.name for check in others]) == (True, ["candidates", "workers' python"])
    master, *_ = cluster_checks(Settings(spark=f"sc://127.0.0.1:{port}/;token=secret"), tmp_path)
    assert not master.ok
    assert f"127.0.0.1:{port} does not answer" in master.found
    assert "HAKIRI_SPARK" in master.cure


def test_a_folder_for_candidates_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = Settings(spark="yarn", candidates_dir=str(tmp_path / "file" / "candidates"))
    checks = {check.name: check for check in cluster_checks(settings, tmp_path)}
    assert not checks["candidates"].ok


def test_nothing_of_a_cluster_is_told_where_there_is_none(tmp_path: Path) -> None:
    assert list(cluster_checks(Settings(), tmp_path)) == []
