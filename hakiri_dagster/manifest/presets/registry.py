"""Presets by the connector's name, and pipelines as they would be written without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.field_types import quoted
from hakiri_dagster.manifest.overlay import overlay
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.presets import github as github_api
from hakiri_dagster.manifest.presets import stripe as stripe_api
from hakiri_dagster.manifest.presets.contract import Preset
from hakiri_dagster.manifest.presets.github import github
from hakiri_dagster.manifest.presets.stripe import stripe
from hakiri_dagster.manifest.spec import GithubSource, PipelineSpec, RestSource, StripeSource, TableSpec

_MERGED = ("params", "columns")
"""Keys of a table that add to what the preset says; the others replace it."""


_KEYS = {"github": dict.fromkeys(github_api.TABLES, ("id",)), "stripe": dict.fromkeys(stripe_api.TABLES, ("id",))}


def known_key(connector: Any, table: Any) -> tuple[str, ...] | None:
    """Of a table as it is written: whatever stands there."""
    if not isinstance(connector, str) or not isinstance(table, str):
        return None
    return _KEYS.get(connector, {}).get(table)


def preset_of(spec: PipelineSpec) -> Preset | None:
    match spec.source:
        case GithubSource(config=config):
            return github(config)
        case StripeSource(config=config):
            return stripe(config)
        case _:
            return None


def written_out(spec: PipelineSpec) -> PipelineSpec:
    """With `connector = "rest"`, and all that the preset knows."""
    preset = preset_of(spec)
    if preset is None:
        return spec
    return spec.model_copy(
        update={
            "source": RestSource(connector="rest", config=preset.config),
            "tables": tuple(_table(spec, preset, table) for table in spec.tables),
            "backfill": overlay(preset.hints, spec.backfill),
        }
    )


def known_tables(spec: PipelineSpec) -> Mapping[str, TableSpec]:
    preset = preset_of(spec)
    return {} if preset is None else preset.tables


def preset_problems(entry: Entry, spec: PipelineSpec) -> Iterator[Problem]:
    preset = preset_of(spec)
    if preset is None:
        return
    for index, table in enumerate(spec.tables):
        known = preset.tables.get(table.name)
        if known is None and table.path is None:
            message = f"`{preset.name}` has no table {quoted(table.name)}"
            hint = f"it has {', '.join(sorted(preset.tables))}; of another endpoint give the `path`, as with `rest`"
            yield entry.problem(("tables", index), message, hint)
        elif known is not None and _has_another_cursor(spec, table, known):
            message = f"table {quoted(table.name)}: the API cannot be asked for ranges of its cursor"
            hint = (
                f'set `incremental = "{known.incremental}"`, which is the default, or `false`: it is loaded whole'
                if known.incremental
                else "set `incremental = false` for this table: it is loaded whole"
            )
            yield entry.problem(("tables", index), message, hint)


def _has_another_cursor(spec: PipelineSpec, table: TableSpec, known: TableSpec) -> bool:
    """Ranges of another column than the one that the API knows would lose rows in silence."""
    if table.cursor_params is not None or known.explode is not None:
        return False
    said = spec.incremental if table.incremental is None and known.incremental else table.incremental
    return any(one and one != known.incremental for one in (said, overlay(spec.load, table.load).watermark_column))


def _table(spec: PipelineSpec, preset: Preset, table: TableSpec) -> TableSpec:
    known = preset.tables.get(table.name)
    if known is None:
        return table
    update: dict[str, Any] = {name: getattr(table, name) for name in table.model_fields_set}
    update |= {name: {**getattr(known, name), **update[name]} for name in _MERGED if name in update}
    if "epochs" in update:
        update["epochs"] = (*known.epochs, *table.epochs)
    if known.backfill is not None:
        update["backfill"] = overlay(overlay(known.backfill, spec.backfill), table.backfill)
    if known.load is not None:
        update["load"] = overlay(overlay(known.load, spec.load), table.load)
    if table.incremental is None and table.cursor_params is None:
        off = spec.incremental is False or not known.incremental
        update["incremental"] = False if off else known.incremental
    return known.model_copy(update=update)
