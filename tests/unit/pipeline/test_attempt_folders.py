from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from hakiri_dagster.engine.process_identity import ProcessIdentity
from hakiri_dagster.errors import EngineError
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.attempt_folders import (
    new_attempt_folder,
    refuse_unshared,
    remove_attempt,
    sweep_dead_attempts,
)

LIVING = ProcessIdentity.current()
DEAD = ProcessIdentity(LIVING.host, LIVING.boot_id, LIVING.pid, "0")
ELSEWHERE = ProcessIdentity("elsewhere", LIVING.boot_id, LIVING.pid, LIVING.started)


def folder(candidates: Path, holder: ProcessIdentity, table: str = "orders") -> Path:
    return new_attempt_folder(candidates, cast(Table, SimpleNamespace(pipeline_id="shop", name=table)), str(holder))


def test_whoever_is_killed_while_it_makes_a_folder_leaves_none_that_nobody_owns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_path: Path, _text: str) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", killed)
    with pytest.raises(KeyboardInterrupt):
        folder(tmp_path, DEAD)
    assert not list(tmp_path.glob("*/*/attempt-*"))


@pytest.mark.parametrize(("holder", "stays"), [(DEAD, False), (LIVING, True), (ELSEWHERE, True)])
def test_only_attempts_that_are_known_to_be_dead_are_swept(
    tmp_path: Path, holder: ProcessIdentity, stays: bool
) -> None:
    attempt = folder(tmp_path, holder)
    (attempt / "00000-1.block").write_bytes(b"rows")
    sweep_dead_attempts(tmp_path)
    assert attempt.exists() is stays


def test_whoever_is_killed_while_it_removes_a_folder_leaves_it_to_anybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = folder(tmp_path, LIVING)

    def killed(directory: Path, *, ignore_errors: bool) -> None:
        (directory / "owner").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove_attempt(attempt)
    sweep_dead_attempts(tmp_path)
    assert list(attempt.parent.iterdir()) == []
    remove_attempt(attempt)  # which another was faster to do


def test_a_new_attempt_sweeps_its_own_table_and_no_other(tmp_path: Path) -> None:
    same, other = folder(tmp_path, DEAD), folder(tmp_path, DEAD, table="items")
    folder(tmp_path, LIVING)
    assert (same.exists(), other.exists()) == (False, True)


def test_a_folder_without_an_owner_is_left_to_its_maker_for_a_while(tmp_path: Path) -> None:
    young, old = folder(tmp_path, LIVING), folder(tmp_path, LIVING)
    for attempt in (young, old):
        (attempt / "owner").unlink()
    os.utime(old, (0, 0))
    sweep_dead_attempts(tmp_path)
    assert (young.exists(), old.exists()) == (True, False)


def test_a_worker_that_does_not_share_the_folder_says_so(tmp_path: Path) -> None:
    refuse_unshared(str(tmp_path))
    with pytest.raises(EngineError, match=r"cannot write to .*elsewhere") as told:
        refuse_unshared(str(tmp_path / "elsewhere"))
    assert "HAKIRI_CANDIDATES" in str(told.value.hint)
