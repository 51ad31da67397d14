"""Records as an API would send them."""

from __future__ import annotations

import json

from hakiri_dagster.connectors.json.raw_text import Record


def record(text: str) -> Record:
    return Record(text, json.loads(text))
