"""What a preset is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hakiri_dagster.manifest.rest_spec import RestConfig
from hakiri_dagster.manifest.spec import BackfillSpec, TableSpec


@dataclass(frozen=True, slots=True)
class Preset:
    """`tables`: what is known of them, by name. `hints`: how the API bears to be asked, unless the operator says it."""

    name: str
    config: RestConfig
    tables: Mapping[str, TableSpec]
    hints: BackfillSpec
