"""docs/operations.md names the attributes that spans have."""

from __future__ import annotations

import re

from tests.unit.docs.pages import ROOT, sections

SECTION = sections(ROOT / "docs" / "operations.md")["Spans"]
MAKERS = [
    *(ROOT / "hakiri_dagster" / "pipeline" / "spans").glob("*.py"),
    ROOT / "hakiri_dagster" / "pipeline" / "runtime.py",
    ROOT / "hakiri_dagster" / "cli" / "command_span.py",
]


def test_every_attribute_is_explained_and_none_else() -> None:
    told = set(re.findall(r"`(hakiri\.[a-z_.]+)`", SECTION)) - {"hakiri.run.chunks.published"}
    made = {name for path in MAKERS for name in re.findall(r'"(hakiri\.[a-z_.]+)"', path.read_text())}
    assert told == made
