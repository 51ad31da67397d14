"""One pipeline's spec with every default filled in."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.children import Child
from hakiri_dagster.manifest.landing import Landings
from hakiri_dagster.manifest.load_spec import ADDING_MODES, IN_ORDER_MODES, WHOLE_TABLE_MODES, LoadMode, LoadSpec
from hakiri_dagster.manifest.mode_checks import mode_warnings
from hakiri_dagster.manifest.overlay import overlay
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.rest_spec import ENDPOINT_KEYS
from hakiri_dagster.manifest.source_config import as_config
from hakiri_dagster.manifest.spec import (
    FilesSource,
    GithubSource,
    OtherSource,
    PipelineSpec,
    PostgresSource,
    RestSource,
    StripeSource,
    TableSpec,
)
from hakiri_dagster.manifest.tables import Endpoint, Origin, Pipeline, Table
from hakiri_dagster.manifest.trigger_spec import DeliveredTrigger
from hakiri_dagster.manifest.verify_spec import VerifySpec


@dataclass(frozen=True, slots=True)
class Declared:
    """A pipeline that is well-formed by itself, and where it is written."""

    entry: Entry
    spec: PipelineSpec
    children: Mapping[int, Child] = field(default_factory=dict)


def resolve_pipeline(declared: Declared, landings: Landings, root: Path) -> Pipeline | None:
    """None where its source or destination is refused."""
    entry, spec = declared.entry, declared.spec
    source, destination = _source(declared, root), landings.choose(spec.destination)
    if source is None or destination is None:
        return None
    return Pipeline(
        id=spec.id,
        tables=tuple(
            _table(declared, index, table, source, destination, root) for index, table in enumerate(spec.tables)
        ),
        schedule=spec.schedule,
        timezone=spec.timezone,
        secrets=spec.secrets,
        description=spec.description,
        owners=spec.owners,
        tags=spec.tags,
        origin=Origin(entry.file, entry.line),
        backfill=spec.backfill,
        triggers=spec.triggers,
        verify=spec.verify,
    )


def pipeline_warnings(declared: Declared, landings: Landings) -> Iterator[Problem]:
    entry, spec = declared.entry, declared.spec
    if spec.destination is None and landings.default is None and landings.named:
        message = "no destination is chosen, so the tables land in the embedded PostgreSQL"
        hint = "set `default_destination` under `[context]`, or `destination` here"
        yield entry.problem((), message, hint)
    yield from mode_warnings(entry)
    for index, table in enumerate(spec.tables):
        load = overlay(spec.load, table.load)
        if table.load is not None and table.load.lag is not None and _mode(load, table) in WHOLE_TABLE_MODES:
            message = f"table `{table.name}`: `lag` has no effect, as `{_mode(load, table)}` loads the whole table"
            yield entry.problem(("tables", index, "load", "lag"), message, "take it out", at_key=True)
        for key in ("lag", "max_lag", "on_max_lag"):
            is_own = table.load is not None and key in table.load.model_fields_set
            whole = _mode(load, table) in WHOLE_TABLE_MODES
            if is_own and not whole and not (spec.incremental or table.incremental or load.watermark_column):
                message = f"table `{table.name}`: `{key}` has no effect, as it has no cursor"
                yield entry.problem(("tables", index, "load", key), message, "set `incremental`", at_key=True)
        if load.upsert_key and _mode(load, table) == "append" and load.mode is None:
            message = f"table `{table.name}`: `upsert_key` has no effect, as its load mode is `append`"
            yield entry.problem(("tables", index), message, 'set `load.mode = "upsert"`')
        mode = _mode(load, table)
        if load.backup_before_load is not None and mode in ADDING_MODES:
            message = f"table `{table.name}`: `backup_before_load` has no effect, as load mode `{mode}` only adds rows"
            yield entry.problem(("tables", index), message, "take it out, or set it to false for this table")


def _source(declared: Declared, root: Path) -> Endpoint | None:
    match declared.spec.source:
        case FilesSource(config=config):
            return Endpoint("files", {**as_config(config), "path": _absolute(config.path, root)})
        case PostgresSource(config=config):
            return Endpoint("postgres", as_config(config))
        case RestSource(config=config):
            written = declared.entry.value(("source", "connector"))
            return Endpoint("rest", as_config(config), preset=None if written == "rest" else str(written))
        case OtherSource():
            return None
        case GithubSource() | StripeSource():
            raise AssertionError("a preset was written out when it was read")


def _place(table: TableSpec, source: Endpoint, root: Path) -> str | None:
    if table.path is None or source.connector == "rest":
        return table.path
    return _absolute(table.path, root)


def _endpoint(table: TableSpec, source: Endpoint, child: Child | None) -> dict[str, Any]:
    if source.connector != "rest":
        return {}
    return as_config(table, include=ENDPOINT_KEYS) | ({} if child is None else child.endpoint())


def _absolute(path: str, root: Path) -> str:
    """URLs stay as they are. Not `resolve()`: a path may be a glob, and links are the user's own affair."""
    if "://" in path:
        return path
    return os.path.normpath(os.path.join(root.absolute(), path))


def _mode(load: LoadSpec, table: TableSpec) -> LoadMode:
    return load.mode or ("upsert" if table.primary_key else "append")


def _verify(spec: PipelineSpec, table: TableSpec) -> VerifySpec | None:
    if table.verify is False or (table.verify is None and spec.verify is None):
        return None
    return overlay(spec.verify or VerifySpec(), table.verify)


def _table(
    declared: Declared, index: int, table: TableSpec, source: Endpoint, destination: Endpoint, root: Path
) -> Table:
    spec, entry = declared.spec, declared.entry
    load = overlay(spec.load, table.load)
    mode = _mode(load, table)
    cursor = spec.incremental if table.incremental is None else table.incremental
    return Table(
        pipeline_id=spec.id,
        name=table.name,
        source=source,
        destination=destination,
        target_schema=destination.config["schema"],
        target_name=table.target or table.name,
        mode=mode,
        primary_key=table.primary_key or (),
        upsert_key=load.upsert_key or table.primary_key or (),
        cursor=load.watermark_column if mode in IN_ORDER_MODES else cursor or None,
        path=_place(table, source, root),
        endpoint=_endpoint(table, source, declared.children.get(index)),
        columns=table.columns,
        load=load,
        backfill=overlay(spec.backfill, table.backfill),
        validation=overlay(spec.validation, table.validation),
        description=table.description,
        owners=table.owners or spec.owners,
        tags={**spec.tags, **table.tags},
        schedule=spec.schedule,
        timezone=spec.timezone,
        origin=Origin(entry.file, entry.line_of(("tables", index))),
        position=index,
        contract=table.contract or spec.contract,
        renamed=table.renamed,
        verify=_verify(spec, table),
        told_when=any(isinstance(trigger, DeliveredTrigger) for trigger in spec.triggers),
    )
