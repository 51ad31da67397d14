from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hakiri_dagster.audit.database import AuditDb, open_audit


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[AuditDb]:
    with open_audit(None, tmp_path, patience=0.2) as opened:
        assert isinstance(opened, AuditDb)
        yield opened
