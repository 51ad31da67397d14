"""The seed's flat names on a table or pipeline: `loadMode` means `load.mode`, `rowLevel` means `validate.row_level`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic.alias_generators import to_camel

Section = Literal["load", "validate"]

LOAD_KEYS: Mapping[str, str] = {
    "load_mode": "mode",
    "upsert_key": "upsert_key",
    "watermark_column": "watermark_column",
    "cdc_source": "cdc_source",
    "fail_on_empty_source": "fail_on_empty_source",
    "on_miss_action": "on_miss_action",
    "expected_row_count_delta": "expected_row_count_delta",
    "backup_before_load": "backup_before_load",
    "pre_hook": "pre_hook",
    "post_hook": "post_hook",
}
VALIDATE_KEYS: Mapping[str, str] = {
    "dataset_level": "dataset_level",
    "row_level": "row_level",
    "quarantine": "quarantine",
}


def _both_spellings(section: Section, keys: Mapping[str, str]) -> dict[str, tuple[Section, str]]:
    return {spelling: (section, field) for flat, field in keys.items() for spelling in (flat, to_camel(flat))}


FLAT_KEYS: Mapping[str, tuple[Section, str]] = {
    **_both_spellings("load", LOAD_KEYS),
    **_both_spellings("validate", VALIDATE_KEYS),
}
"""Flat spelling → the section and field it stands for."""


def flat_spellings(section: str, field: str) -> tuple[str, ...]:
    return tuple(flat for flat, place in FLAT_KEYS.items() if place == (section, field))


def fold_flat_keys(entry: Any) -> Any:
    """Moves flat keys under their section.

    One that is given in its section as well stays where it is: the model refuses it there, at its own place.
    """
    if not isinstance(entry, dict) or FLAT_KEYS.keys().isdisjoint(entry):
        return entry
    folded = dict(entry)
    for flat in FLAT_KEYS.keys() & entry.keys():
        section, field = FLAT_KEYS[flat]
        inside = folded.get(section, {})
        if isinstance(inside, dict) and inside.keys().isdisjoint({field, to_camel(field)}):
            folded[section] = {**inside, field: folded.pop(flat)}
    return folded
