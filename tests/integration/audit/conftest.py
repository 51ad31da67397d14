from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hakiri_dagster.audit.database import AuditDb, open_audit

OpenAudit = Callable[[], AuditDb]


@pytest.fixture(params=["sqlite", "postgres"])
def audit_url(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "sqlite" else str(request.getfixturevalue("database_url"))


@pytest.fixture
def open_again(audit_url: str | None, tmp_path: Path) -> Iterator[OpenAudit]:
    """The same audit DB, opened as another process would."""
    opened: list[AuditDb] = []

    def open_one() -> AuditDb:
        opened.append(open_audit(audit_url, tmp_path))
        return opened[-1]

    yield open_one
    for audit in opened:
        audit.close()


@pytest.fixture
def audit(open_again: OpenAudit) -> AuditDb:
    return open_again()
