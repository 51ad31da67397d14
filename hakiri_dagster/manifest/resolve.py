"""One pipeline's spec with every default filled in, and what is wrong with it as a whole."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest.landing import Landings, UnknownDestinationError
from hakiri_dagster.manifest.overlay import overlay
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.source_config import as_config
from hakiri_dagster.manifest.spec import (
    FilesSource,
    LoadMode,
    LoadSpec,
    OtherSource,
    PipelineSpec,
    PostgresSource,
    TableSpec,
)
from hakiri_dagster.manifest.tables import Endpoint, Origin, Pipeline, Table


@dataclass(frozen=True, slots=True)
class Declared:
    """A pipeline that is well-formed by itself, and where it is written."""

    entry: Entry
    spec: PipelineSpec


@dataclass(slots=True)
class Resolved:
    """`pipeline` is None where something is wrong."""

    pipeline: Pipeline | None = None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)


def resolve_pipeline(declared: Declared, landings: Landings, root: Path) -> Resolved:
    entry, spec = declared.entry, declared.spec
    resolved = Resolved()
    source = _source(spec, root)
    destination = _destination(declared, landings, resolved)
    if source is None or destination is None:
        return resolved
    resolved.warnings += _idle_upsert_keys(declared)
    tables = tuple(_table(declared, index, table, source, destination, root) for index, table in enumerate(spec.tables))
    resolved.pipeline = Pipeline(
        id=spec.id,
        tables=tables,
        schedule=spec.schedule,
        timezone=spec.timezone,
        secrets=spec.secrets,
        description=spec.description,
        owners=spec.owners,
        tags=spec.tags,
        origin=Origin(entry.file, entry.line),
    )
    return resolved


def _source(spec: PipelineSpec, root: Path) -> Endpoint | None:
    match spec.source:
        case FilesSource(config=config):
            return Endpoint("files", {**as_config(config), "path": _absolute(config.path, root)})
        case PostgresSource(config=config):
            return Endpoint("postgres", as_config(config))
        case OtherSource():
            return None


def _destination(declared: Declared, landings: Landings, resolved: Resolved) -> Endpoint | None:
    entry, chosen = declared.entry, declared.spec.destination
    if chosen is None and landings.default is None and landings.named:
        message = "no destination is chosen, so the tables land in the embedded PostgreSQL"
        hint = "set `default_destination` under `[context]`, or `destination` here"
        resolved.warnings.append(entry.problem((), message, hint))
    try:
        return landings.choose(chosen)
    except UnknownDestinationError as error:
        if isinstance(chosen, str):
            resolved.problems.append(entry.problem(("destination",), str(error), error.hint))
        return None


def _absolute(path: str, root: Path) -> str:
    """URLs stay as they are. Not `resolve()`: a path may be a glob, and links are the user's own affair."""
    if "://" in path:
        return path
    return os.path.normpath(os.path.join(root.absolute(), path))


def _load(spec: PipelineSpec, table: TableSpec) -> LoadSpec:
    return overlay(spec.load, table.load)


def _mode(load: LoadSpec, table: TableSpec) -> LoadMode:
    return load.mode or ("upsert" if table.primary_key else "append")


def _table(
    declared: Declared, index: int, table: TableSpec, source: Endpoint, destination: Endpoint, root: Path
) -> Table:
    spec, entry = declared.spec, declared.entry
    load = _load(spec, table)
    cursor = spec.incremental if table.incremental is None else table.incremental
    return Table(
        pipeline_id=spec.id,
        name=table.name,
        source=source,
        destination=destination,
        target_schema=destination.config["schema"],
        target_name=table.target or table.name,
        mode=_mode(load, table),
        primary_key=table.primary_key or (),
        upsert_key=load.upsert_key or table.primary_key or (),
        cursor=cursor or None,
        path=None if table.path is None else _absolute(table.path, root),
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
    )


def table_problems(declared: Declared) -> Iterator[Problem]:
    """What can be told without knowing where the tables land."""
    entry, spec = declared.entry, declared.spec
    yield from _tables_named_twice(declared)
    for index, table in enumerate(spec.tables):
        at = ("tables", index)
        load = _load(spec, table)
        if _mode(load, table) == "upsert" and not (load.upsert_key or table.primary_key):
            own = table.load is not None and table.load.mode is not None
            message = f"table `{table.name}`: load mode `upsert` needs a key"
            yield entry.problem(
                (*at, "load", "mode") if own else at, message, "set `primary_key`, or `load.upsert_key`"
            )
        if table.path is not None and not isinstance(spec.source, FilesSource):
            message = f'table `{table.name}`: `path` is for sources with `connector = "files"`'
            yield entry.problem((*at, "path"), message, "take `path` out", at_key=True)


def _tables_named_twice(declared: Declared) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for index, table in enumerate(declared.spec.tables):
        earlier = seen.setdefault(table.name.lower(), table.name)
        if earlier is not table.name:
            also = "" if earlier == table.name else f" (as `{earlier}`: only the case differs)"
            message = f"the table `{table.name}` is named twice{also}"
            yield declared.entry.problem(("tables", index), message, "keep one of them")


def _idle_upsert_keys(declared: Declared) -> Iterator[Problem]:
    spec = declared.spec
    for index, table in enumerate(spec.tables):
        load = _load(spec, table)
        if load.upsert_key and load.mode is None and not table.primary_key:
            message = f"table `{table.name}`: `upsert_key` has no effect, as its load mode is `append`"
            yield declared.entry.problem(("tables", index), message, 'set `load.mode = "upsert"`')
