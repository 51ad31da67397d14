"""Pipelines and tables of one project that get in each other's way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import parse_qs, unquote, urlsplit

from hakiri_dagster.errors import Problem
from hakiri_dagster.manifest import rule_spec, validator_spec
from hakiri_dagster.manifest.places import Entry
from hakiri_dagster.manifest.positions import KeyPath
from hakiri_dagster.manifest.resolve import Declared
from hakiri_dagster.manifest.tables import Pipeline, Table

Relation = tuple[str, str, str]
"""Database, schema and name."""


def ids_defined_twice(entries: Sequence[Entry]) -> Iterator[Problem]:
    by_id: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.pipeline_id is not None:
            by_id.setdefault(entry.pipeline_id, []).append(entry)
    for pipeline_id, same in by_id.items():
        if len(same) > 1:
            yield _defined_twice(pipeline_id, same)
    yield from _same_in_dagster(by_id)


def _defined_twice(pipeline_id: str, same: Sequence[Entry]) -> Problem:
    count = "two" if len(same) == 2 else str(len(same))
    where = "".join(f"\n  {entry.file}:{entry.line}" for entry in same)
    other = "toml" if same[-1].document.is_toml else "json"
    both = len({entry.document.is_toml for entry in same}) == 2
    way = (
        f"run `hakiri pipeline convert {pipeline_id} --to {other}` to migrate" if both else "rename or delete the other"
    )
    return same[-1].problem(
        (), f"pipeline `{pipeline_id}` defined in {count} places:{where}", f"keep one source of truth; {way}"
    )


def _same_in_dagster(by_id: dict[str, list[Entry]]) -> Iterator[Problem]:
    """Dagster's jobs and groups have names without `-`."""
    seen: dict[str, str] = {}
    for pipeline_id, (entry, *_) in by_id.items():
        earlier = seen.setdefault(pipeline_id.replace("-", "_"), pipeline_id)
        if earlier != pipeline_id:
            message = (
                f"the ids `{earlier}` and `{pipeline_id}` differ only in `-` and `_`, which is one name in Dagster"
            )
            yield entry.problem(("id",), message, "rename one of them")


def tables_in_conflict(pairs: Sequence[tuple[Declared, Pipeline]]) -> Iterator[Problem]:
    targets: dict[Relation, Table] = {}
    for declared, pipeline in pairs:
        for index, table in enumerate(pipeline.tables):
            target = _target(table)
            earlier = targets.setdefault(target, table)
            if earlier.label != table.label:
                yield declared.entry.problem(
                    ("tables", index),
                    f"{table.label} and {earlier.label} ({earlier.origin.file}:{earlier.origin.line}) both load into"
                    f" `{table.target_schema}.{table.target_name}`",
                    "set another `target`, or another schema in the destination",
                )
            if _origin(table) == target:
                yield declared.entry.problem(
                    ("tables", index),
                    f"{table.label} would load `{table.target_schema}.{table.target_name}` into itself",
                    "set another `target`, or another schema in the destination",
                )


def checks_called_alike(pairs: Sequence[tuple[Declared, Pipeline]]) -> Iterator[Problem]:
    """A table's rules and validators are checks of one asset, be they its own or its pipeline's."""
    for declared, pipeline in pairs:
        told: set[KeyPath] = set()  # a list of the pipeline's is that of many tables
        for index, table in enumerate(pipeline.tables):
            seen: set[str] = set()
            for path, name in _checks(table, declared.entry, index):
                if name in seen and path not in told:
                    told.add(path)
                    message = f"{table.label} has two checks with the id `{name}`"
                    yield declared.entry.problem(path, message, "give one of them an `id` of its own")
                seen.add(name)


def _checks(table: Table, entry: Entry, index: int) -> Iterator[tuple[KeyPath, str]]:
    """Each with the place where it is written: in the table's own list, or else in its pipeline's."""
    lists: dict[KeyPath, list[str]] = {("row_level",): list(map(rule_spec.id_of, table.validation.row_level))}
    for validator in table.validation.dataset_level.validators:
        lists.setdefault(("dataset_level", validator_spec.kind_of(validator)), []).append(
            validator_spec.id_of(validator)
        )
    for path, ids in lists.items():
        own: KeyPath = ("tables", index, "validate", *path)
        written = ("validate", *path) if entry.value(own) is None else own
        yield from (((*written, place), name) for place, name in enumerate(ids))


def _target(table: Table) -> Relation:
    return _database(table.destination.config["url"]), table.target_schema, table.target_name


def _origin(table: Table) -> Relation | None:
    if table.source.connector != "postgres":
        return None
    config = table.source.config
    return _database(config["url"]), config["schema"], table.name


def _database(url: str | None) -> str:
    """One name for one database, whoever logs in to it."""
    if url is None:
        return "embedded"
    parts = urlsplit(url)
    asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    hosts = asked.get("host") or parts.netloc.rpartition("@")[2].lower()
    port = "" if hosts.rpartition(":")[2].isdecimal() else f":{asked.get('port', '5432')}"
    return f"{hosts}{port}/{asked.get('dbname') or unquote(parts.path).lstrip('/')}"
