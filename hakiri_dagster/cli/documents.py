"""What `--json` prints: one document, with every secret masked."""

from __future__ import annotations

import json
from typing import Any

from hakiri_dagster.security.secrets import redact_within


def print_json(document: Any) -> None:
    print(json.dumps(redact_within(document), indent=2, ensure_ascii=False))


def print_json_line(document: Any) -> None:
    """For who reads documents as they come."""
    print(json.dumps(redact_within(document), ensure_ascii=False), flush=True)
