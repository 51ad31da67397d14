"""`hakiri receive`: the inbox of webhooks alone, until Ctrl-C. Loads neither Dagster nor Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hakiri_dagster.audit.database import open_audit
from hakiri_dagster.cli.opening import opened_project
from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.tables import Project
from hakiri_dagster.triggers.inbox import Inbox
from hakiri_dagster.triggers.receiving import Reception, doors_of

_PATIENCE = 1.0
"""Seconds for a lock of the audit DB's, which is tried for five times. Who sends a webhook waits for ten or so."""


def receive(root: Path, host: str, port: int) -> int:
    project = opened_project(root)
    try:
        with opened_inbox(project, host, port) as inbox:
            print(f"Webhooks: POST http://{_shown(host)}:{inbox.port}/hooks/<pipeline id>", file=sys.stderr, flush=True)
            inbox.serve_forever()
    except KeyboardInterrupt:
        print("stopping …", file=sys.stderr)
    return 0


@contextmanager
def opened_inbox(project: Project, host: str, port: int) -> Iterator[Inbox]:
    doors = doors_of(project.pipelines)
    if not doors:
        raise UsageError(
            "no pipeline has a trigger of the type `webhook`",
            hint='add `triggers = [{ type = "webhook", secret = "${NAME}" }]` to one',
        )
    with open_audit(project.audit_url, project.state_dir, patience=_PATIENCE) as audit:
        try:
            inbox = Inbox(host, port, Reception(doors, audit.deliveries), _tell)
        except OSError as error:
            raise UsageError(
                f"cannot listen at {_shown(host)}:{port}: {error.strerror or error}",
                hint="choose another with --port or --host",
            ) from error
        with inbox:
            yield inbox


def _tell(line: str) -> None:
    print(f"{datetime.now(UTC).isoformat(timespec='seconds')} {line}", file=sys.stderr, flush=True)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
