"""What a table does not say, its pipeline says: key by key."""

from __future__ import annotations

from typing import TypeVar

from hakiri_dagster.manifest.field_types import Model
from hakiri_dagster.manifest.spec import QuarantineSpec
from hakiri_dagster.manifest.validator_spec import DatasetLevelSpec

M = TypeVar("M", bound=Model)

_SECTIONS = (DatasetLevelSpec, QuarantineSpec)
"""Sections inside a section. A single validator, hook or band is one value: it is replaced whole."""


def overlay(base: M, over: M | None) -> M:
    if over is None:
        return base
    changes = {}
    for name in over.model_fields_set:
        value, below = getattr(over, name), getattr(base, name)
        merges = isinstance(value, _SECTIONS) and type(value) is type(below)
        changes[name] = overlay(below, value) if merges else value
    return base.model_copy(update=changes)
