from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hakiri_dagster.engine.shipped_package import package_archive, write_package
from hakiri_dagster.engine.spark_config import PYTHON_FILES, spark_config
from hakiri_dagster.errors import EngineError
from hakiri_dagster.settings import Settings


def test_all_of_the_package_is_in_it_and_it_is_written_once(tmp_path: Path) -> None:
    archive = write_package(tmp_path)
    names = zipfile.ZipFile(archive).namelist()
    assert {"hakiri_dagster/__init__.py", "hakiri_dagster/pipeline/staging.py"} <= set(names)
    assert not [name for name in names if name.endswith(".pyc")]
    written = archive.stat().st_mtime_ns
    assert (write_package(tmp_path), archive.stat().st_mtime_ns) == (archive, written)
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]


def test_what_workers_run_can_be_imported_from_it(tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import hakiri_dagster.pipeline.staging as s; print(s.__file__)"
    command = [sys.executable, "-c", code, str(write_package(tmp_path))]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert told.stdout.startswith(str(package_archive(tmp_path)))


def test_a_cluster_is_sent_it_beside_what_the_operator_sends(tmp_path: Path) -> None:
    settings = Settings(spark="spark://head:7077", spark_conf={PYTHON_FILES: "/opt/more.zip"})
    assert spark_config(settings, tmp_path)[PYTHON_FILES] == f"{package_archive(tmp_path)},/opt/more.zip"
    assert PYTHON_FILES not in spark_config(Settings(), tmp_path)


def test_a_state_folder_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "spark").write_text("in the way")
    with pytest.raises(EngineError, match="cannot write the package for Spark's workers"):
        write_package(tmp_path)
