"""What `--json` prints: one document, with every secret masked."""

from __future__ import annotations

import json
from typing import Any

from hakiri_dagster.security.secrets import redact


def print_json(document: Any) -> None:
    print(json.dumps(_redacted(document), indent=2, ensure_ascii=False))


def _redacted(value: Any) -> Any:
    """Text by text: masking the finished document could cut through its quotes."""
    match value:
        case str():
            return redact(value)
        case dict():
            return {key: _redacted(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_redacted(inner) for inner in value]
        case _:
            return value
