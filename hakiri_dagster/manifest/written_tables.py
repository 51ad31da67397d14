"""Where in the manifests a table's `validate` belongs, and what stands there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hakiri_dagster.manifest.files import PROJECT_FILE, read_manifests
from hakiri_dagster.manifest.flat_keys import FLAT_KEYS
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.tables import Table

Form = Literal["json", "section", "entry", "name"]
"""`section`: a table of TOML of its own; `entry`: a key of the table's entry; `name`: the entry is a name alone."""


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """`there`: keys that say already what must hold. `of_pipeline`: its pipeline has no other table."""

    form: Form
    file: str
    line: int
    there: tuple[str, ...]
    of_pipeline: bool

    @property
    def header(self) -> str:
        """Of a section of its own."""
        around = "pipeline." if self.file == PROJECT_FILE else ""
        return f"{around}validate" if self.of_pipeline else f"{around}tables.validate"


def written_table(root: Path, table: Table) -> WrittenTable:
    entry = next(one for one in read_manifests(root).pipelines if one.pipeline_id == table.pipeline_id)
    tables = entry.value(("tables",))
    index = next(place for place, one in enumerate(tables) if table.name in (one, _name(one)))
    own = _said(tables[index])
    of_pipeline = len(tables) == 1 and not own
    form = _form(entry, tables[index], of_pipeline=of_pipeline)
    line = entry.line if of_pipeline else entry.line_of(("tables", index))
    return WrittenTable(form, entry.file, line, _said(entry.data) if of_pipeline else own, of_pipeline)


def _form(entry: Entry, table: object, *, of_pipeline: bool) -> Form:
    if entry.file.endswith(".json"):
        return "json"
    if of_pipeline or _has_headers(entry):
        return "section"
    return "name" if isinstance(table, str) else "entry"


def _has_headers(entry: Entry) -> bool:
    """The place of a list in brackets is its bracket; that of `[[tables]]` is the header of the first."""
    place_of = entry.document.positions.value
    return place_of((*entry.path, "tables")) == place_of((*entry.path, "tables", 0))


def _name(table: object) -> object:
    return table.get("name") if isinstance(table, dict) else None


def _said(written: object) -> tuple[str, ...]:
    """In the words that are written."""
    if not isinstance(written, dict):
        return ()
    flat = [key for key, (section, _) in FLAT_KEYS.items() if section == "validate"]
    return tuple(key for key in ("validate", *flat) if key in written)
