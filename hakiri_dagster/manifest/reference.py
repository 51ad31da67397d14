"""Writes `docs/manifest.md`, the reference of the manifest language, from the models."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from hakiri_dagster.manifest.flat_keys import LOAD_KEYS, VALIDATE_KEYS
from hakiri_dagster.manifest.not_yet import FEATURES, PROJECT_FEATURES
from hakiri_dagster.manifest.spec import ProjectSpec

Schema = Mapping[str, Any]

_HEADINGS = {
    "ProjectSpec": "The project: `manifests/hakiri.toml`",
    "PipelineSpec": "A pipeline: `[[pipeline]]`, or a file in `manifests/pipelines/`",
    "TableSpec": "A table: an entry of `tables`",
    "LoadSpec": "`load`",
    "BackfillSpec": "`backfill`",
    "FilesTrigger": "The trigger `files`",
    "SourceTrigger": "The trigger `source`",
    "ValidateSpec": "`validate`",
    "FilesSource": '`source` with `connector = "files"`',
    "FilesConfig": "`source.config` of `files`",
    "PostgresSource": '`source` with `connector = "postgres"`',
    "PostgresConfig": "`source.config` of `postgres`",
    "RestSource": '`source` with `connector = "rest"`',
    "RestConfig": "`source.config` of `rest`",
    "GithubSource": '`source` with `connector = "github"`',
    "GithubConfig": "`source.config` of `github`",
    "BearerAuth": "`auth` of the type `bearer`",
    "BasicAuth": "`auth` of the type `basic`",
    "HeaderAuth": "`auth` of the type `header`",
    "QueryAuth": "`auth` of the type `query`",
    "NoPages": "`pagination` of the type `none`",
    "LinkPages": "`pagination` of the type `link`",
    "NextUrlPages": "`pagination` of the type `next_url`",
    "CursorPages": "`pagination` of the type `cursor`",
    "LastRecordPages": "`pagination` of the type `last_record`",
    "NumberedPages": "`pagination` of the type `page`",
    "OffsetPages": "`pagination` of the type `offset`",
    "StripeSource": '`source` with `connector = "stripe"`',
    "StripeConfig": "`source.config` of `stripe`",
    "TimeoutSpec": "`timeout` of an API",
    "RetrySpec": "`retry` of an API",
    "CursorParams": "`cursor_params` of a table of `rest`",
    "WebhookTrigger": "The trigger `webhook`",
    "SqsTrigger": "The trigger `sqs`",
    "CloudflareQueueTrigger": "The trigger `cloudflare_queue`",
    "ContinuedSpec": "`continued` of a table of `rest`",
    "SegmentsSpec": "`segments` of a table of `rest`",
    "PostgresDestination": 'A destination with `connector = "postgres"`',
    "PostgresTargetConfig": "`config` of a `postgres` destination",
    "ProjectInfo": "`[project]`",
    "ContextSpec": "`[context]`",
    "AuditSpec": "`[audit]`",
    "SyncSpec": "`[sync]`",
    "OtherSource": "`source` with another connector",
    "OtherDestination": "A destination with another connector",
    "DatasetLevelSpec": "`validate.dataset_level`",
    "RowCountValidator": "The validator `row_count`",
    "FreshnessValidator": "The validator `freshness`",
    "FkIntegrityValidator": "The validator `fk_integrity`",
    "CardinalityValidator": "The validator `cardinality`",
    "DuplicateKeyValidator": "The validator `duplicate_key`",
    "NullRatioValidator": "The validator `null_ratio`",
    "AcceptedValuesValidator": "The validator `accepted_values`",
    "RangeValidator": "The validator `range`",
    "SchemaMatchesValidator": "The validator `schema_matches`",
    "RowCountMatchesSourceValidator": "The validator `row_count_matches_source`",
    "SqlValidator": "The validator `sql`",
    "LateSpec": "`validate.late`",
    "VerifySpec": "`verify`",
    "QuarantineSpec": "`validate.quarantine`",
    "NotNullRule": "The row rule `not_null`",
    "RegexRule": "The row rule `regex`",
    "RangeRule": "The row rule `range`",
    "MaxLengthRule": "The row rule `max_length`",
    "MinLengthRule": "The row rule `min_length`",
    "OneOfRule": "The row rule `one_of`",
    "CompareRule": "The row rule `compare`",
    "FieldTypeRule": "The row rule `field_type`",
    "ExpressionRule": "The row rule `expression`",
    "UniqueRule": "The row rule `unique_within_load`",
    "RowCountDeltaSpec": "`load.expected_row_count_delta`",
    "BackupSpec": "`load.backup_before_load`",
    "SqlHook": "The hook `sql`",
    "RefreshMatViewHook": "The hook `refresh_mat_view`",
    "WebhookHook": "The hook `webhook`",
    "CustomFunctionHook": "The hook `custom_function`",
    "ContextDestination": 'A destination with `connector = "context"`',
    "EmbeddedTargetConfig": "`config` of the `context` destination",
}

_INTRODUCTION = """# Manifest reference

Generated from the models in `hakiri_dagster/manifest/` by `python -m hakiri_dagster.manifest.generate`.

- Every key is written in snake_case, or in the same words in camelCase (`upsert_key`, `upsertKey`): not both at once.
- `${NAME}` in `source.config`, in a destination's `config`, in `path`, in `triggers` and in `[audit] url` is filled in
  from the environment; `$${` is a plain `${`. A name that is not set is an error.
- What a table does not say, its pipeline says, key by key.
- A manifest can be checked in an editor: `schemas/pipeline.json` for `manifests/pipelines/*`, `schemas/hakiri.json`
  for `manifests/hakiri.toml`. `hakiri validate` tells everything that is wrong, with file, line and column.
"""


def manifest_reference() -> str:
    root = ProjectSpec.model_json_schema(mode="validation")
    definitions = root.pop("$defs")
    models: dict[str, Schema] = {"ProjectSpec": root, **definitions}
    sections = [_section(name, models) for name in _in_order(models)]
    return "\n".join([_INTRODUCTION, *sections, _flat_section(), _not_yet_section()])


def _in_order(models: Mapping[str, Schema]) -> list[str]:
    """Breadth first from the project, so that a model comes after what holds it."""
    order = {"ProjectSpec": None}
    waiting = deque(order)
    while waiting:
        for found in _references(models[waiting.popleft()]):
            if found not in order and "properties" in models[found]:
                order[found] = None
                waiting.append(found)
    return list(order)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _heading(name: str) -> str:
    return _HEADINGS[name]


def _section(name: str, models: Mapping[str, Schema]) -> str:
    schema = models[name]
    required = schema.get("required", [])
    rows = [
        f"| `{key}` | {_kind(value)} | {_default(key, value, required)} | {_meaning(value, models)} |"
        for key, value in schema["properties"].items()
    ]
    table = ["| key | type | default | what it says |", "|---|---|---|---|", *rows]
    return "\n".join([f"## {_heading(name)}", "", schema["description"], "", *table, ""])


def _meaning(value: Schema, models: Mapping[str, Schema]) -> str:
    """pydantic leaves a description out that is the same as the model's own."""
    described = value if "description" in value else models[next(_references(value))]
    return str(described["description"]).replace("|", "\\|")


def _default(key: str, property_: Schema, required: list[str]) -> str:
    if key in required:
        return "required"
    default = property_.get("default")
    return "" if default in (None, [], {}) else f"`{json.dumps(default)}`"


def _kind(schema: Schema) -> str:
    match dict(schema):
        case {"$ref": reference}:
            name = reference.rpartition("/")[2]
            return "any" if name == "JsonValue" else f"[{_heading(name)}](#{_anchor(_heading(name))})"
        case {"enum": values}:
            return " \\| ".join(f"`{value}`" for value in values)
        case {"const": value}:
            return f"`{json.dumps(value) if isinstance(value, bool) else value}`"
        case {"anyOf": ways} | {"oneOf": ways}:
            kinds = dict.fromkeys(_kind(way) for way in ways if way.get("type") != "null")
            return " or ".join(kinds)
        case {"type": "array", "items": items}:
            return f"list of {_kind(items)}"
        case {"type": "object", "additionalProperties": dict() as inner}:
            return f"table of {_kind(inner)}"
        case {"type": str(kind)}:
            return _TYPES[kind]
        case _:
            return "any"


_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "table of text",
}


def _anchor(heading: str) -> str:
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _flat_section() -> str:
    rows = [f"| `{flat}` | `load.{field}` |" for flat, field in LOAD_KEYS.items()]
    rows += [f"| `{flat}` | `validate.{field}` |" for flat, field in VALIDATE_KEYS.items()]
    text = "On a table or a pipeline these mean the same as the key on the right; giving both is an error."
    return "\n".join(["## Short names", "", text, "", "| key | means |", "|---|---|", *rows, ""])


def _not_yet_section() -> str:
    items: list[str] = []
    items += [f"- {name}" for name in (*FEATURES.values(), *PROJECT_FEATURES.values())]
    text = "Part of the language, and refused by name at `hakiri validate`:"
    return "\n".join(["## Not yet built", "", text, "", *items, ""])
