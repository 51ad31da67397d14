from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from hakiri_dagster.engine import doctor, java


def test_here_all_is_well(tmp_path: Path) -> None:
    checks = doctor.engine_checks(tmp_path / ".hakiri")
    assert {check.name for check in checks} == {
        "java", "spark", "postgresql", "memory", "disk", "state folder", "data folders",
    }  # fmt: skip
    assert [check for check in checks if check.name != "memory" and not check.ok] == []


def test_a_missing_java_comes_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    check = doctor.check_java()
    assert not check.ok
    assert "JAVA_HOME" in check.cure


def test_little_memory_comes_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    little = psutil.virtual_memory()._replace(available=1 << 29)
    monkeypatch.setattr(doctor.psutil, "virtual_memory", lambda: little)
    check = doctor.check_memory()
    assert not check.ok
    assert "HAKIRI_SPARK_MEMORY" in check.cure


def test_a_state_folder_in_the_way_of_a_file_comes_with_its_cure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check = doctor.check_writable(tmp_path / "file" / ".hakiri")
    assert not check.ok
    assert "write permission" in check.cure


def test_a_link_to_nowhere_instead_of_the_state_folder_comes_with_its_cure(tmp_path: Path) -> None:
    (tmp_path / ".hakiri").symlink_to(tmp_path / "nowhere")
    check = doctor.check_writable(tmp_path / ".hakiri")
    assert (check.ok, check.cure) == (False, f"Remove it: `rm {tmp_path / '.hakiri'}`.")
