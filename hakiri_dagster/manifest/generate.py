"""`python -m hakiri_dagster.manifest.generate [DIR]` writes the files of the repository that the models determine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from hakiri_dagster.manifest.reference import manifest_reference
from hakiri_dagster.manifest.schema import pipeline_schema, project_schema, schema_text


def generated_files() -> Mapping[str, str]:
    return {
        "schemas/pipeline.json": schema_text(pipeline_schema()),
        "schemas/hakiri.json": schema_text(project_schema()),
        "docs/manifest.md": manifest_reference(),
    }


def write_generated_files(root: Path) -> None:
    for name, text in generated_files().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_generated_files(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
