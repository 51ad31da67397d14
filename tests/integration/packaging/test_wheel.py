"""What `pip install .` installs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """Built from a copy: building writes into the folder it builds from."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    shutil.copytree(
        ROOT / "hakiri_dagster", source / "hakiri_dagster", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run([sys.executable, "-c", BUILD, str(target)], cwd=source, check=True, capture_output=True)
    return ZipFile(next(target.glob("*.whl")))


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: ZipFile) -> None:
    wanted = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "hakiri_dagster").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    installed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert installed == wanted


def test_the_wheel_says_its_licence_and_has_its_text(wheel: ZipFile) -> None:
    (metadata,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    assert "License-Expression: Apache-2.0" in wheel.read(metadata).decode()
    (licence,) = (name for name in wheel.namelist() if name.endswith("/licenses/LICENSE"))
    assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
