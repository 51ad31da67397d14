from __future__ import annotations

import re

from hakiri_dagster.manifest.flat_keys import LOAD_KEYS
from hakiri_dagster.manifest.load_spec import LoadSpec
from hakiri_dagster.manifest.reference import manifest_reference
from hakiri_dagster.manifest.spec import BackfillSpec, TableSpec


def test_every_key_of_a_section_is_in_the_reference() -> None:
    text = manifest_reference()
    for model in (LoadSpec, BackfillSpec, TableSpec):
        for name, field in model.model_fields.items():
            key = field.validation_alias if isinstance(field.validation_alias, str) else name
            assert f"| `{key}` |" in text
    for flat in LOAD_KEYS:
        assert f"| `{flat}` | `load." in text


def test_every_link_leads_to_one_heading() -> None:
    text = manifest_reference()
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    anchors = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert len(anchors) == len(set(anchors))
    links = set(re.findall(r"\]\(#([^)]*)\)", text))
    assert links
    assert links <= set(anchors)


def test_no_cell_of_a_table_is_broken_by_its_text() -> None:
    for line in manifest_reference().splitlines():
        if line.startswith("| `"):
            assert re.sub(r"\\\|", "", line).count("|") in (3, 5), line
