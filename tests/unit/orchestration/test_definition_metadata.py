"""What the user interface shows of a table before it is loaded."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from hakiri_dagster.cli.manifest_commands import init
from hakiri_dagster.definitions import project_definitions
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.settings import Settings


def test_the_code_reference_opens_the_manifest_at_the_tables_line(tmp_path: Path) -> None:
    init(tmp_path)
    definitions = project_definitions(load_project(tmp_path), Settings())
    key = dg.AssetKey(["shop", "orders"])
    metadata = definitions.resolve_assets_def(key).metadata_by_key[key]
    references = metadata["dagster/code_references"]
    assert isinstance(references, dg.CodeReferencesMetadataValue)
    (reference,) = references.code_references
    assert isinstance(reference, dg.LocalFileCodeReference)
    file = Path(reference.file_path)
    assert file.is_absolute()
    assert reference.line_number is not None
    assert '"orders"' in file.read_text().splitlines()[reference.line_number - 1]
