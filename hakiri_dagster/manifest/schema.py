"""JSON Schema of the manifest language, for editors and agents, made from the models.

Both spellings of a key are in it, one of them at a time; so are the flat names on pipelines and tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from hakiri_dagster.manifest.flat_keys import LOAD_KEYS, VALIDATE_KEYS
from hakiri_dagster.manifest.spec import PipelineSpec, ProjectSpec

Schema = dict[str, Any]

BASE = "https://hakiri.dev/schemas/v1"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def pipeline_schema() -> Schema:
    """A file in `manifests/pipelines/`."""
    return _schema(PipelineSpec, "pipeline.json", "A pipeline")


def project_schema() -> Schema:
    """`manifests/hakiri.toml`."""
    return _schema(ProjectSpec, "hakiri.json", "A project")


def schema_text(schema: Schema) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _schema(model: type[BaseModel], file: str, title: str) -> Schema:
    generated = model.model_json_schema(mode="validation")
    definitions: dict[str, Schema] = generated.pop("$defs")
    table = definitions.pop("TableSpec")
    objects = {
        "#": generated,
        "#/$defs/TableWithKeys": table,
        **{f"#/$defs/{name}": schema for name, schema in definitions.items() if "properties" in schema},
    }
    for pointer, schema in objects.items():
        _accept_both_spellings(schema, pointer)
    for schema in (table, generated if model is PipelineSpec else definitions["PipelineSpec"]):
        _accept_flat_keys(schema)
    definitions |= {"TableWithKeys": table, "TableSpec": _table_or_its_name(table)}
    head = {"$schema": DIALECT, "$id": f"{BASE}/{file}", "title": title}
    body = _quiet({**generated, "$defs": dict(sorted(definitions.items()))}, is_properties=False)
    return {**head, **dict(body)}


def _accept_both_spellings(schema: Schema, pointer: str) -> None:
    properties: dict[str, Schema] = schema["properties"]
    required: list[str] = schema.pop("required", [])
    pairs = {name: to_camel(name) for name in properties if _has_camel(name)}
    conditions: list[Schema] = []
    for snake, camel in pairs.items():
        properties[camel] = {"$ref": f"{pointer}/properties/{snake}"}
        if snake in required:
            conditions.append({"oneOf": [{"required": [snake]}, {"required": [camel]}]})
        else:
            conditions.append({"not": {"required": [snake, camel]}})
    single = [name for name in required if name not in pairs]
    if single:
        schema["required"] = single
    if conditions:
        schema["allOf"] = conditions


_FLAT_SECTIONS = (("load", LOAD_KEYS, "LoadSpec"), ("validate", VALIDATE_KEYS, "ValidateSpec"))


def _accept_flat_keys(schema: Schema) -> None:
    conditions: list[Schema] = schema.setdefault("allOf", [])
    for section, keys, definition in _FLAT_SECTIONS:
        for flat, field in keys.items():
            spellings = sorted({flat, to_camel(flat)})
            meaning = {
                "$ref": f"#/$defs/{definition}/properties/{field}",
                "description": f"The same as `{section}.{field}`.",
            }
            schema["properties"] |= dict.fromkeys(spellings, meaning)
            conditions += _given_once(spellings, section, field)


def _given_once(spellings: list[str], section: str, field: str) -> Iterator[Schema]:
    inside = {"anyOf": [{"required": [key]} for key in sorted({field, to_camel(field)})]}
    in_section = {"required": [section], "properties": {section: {"type": "object", **inside}}}
    for spelling in spellings:
        yield {"not": {"required": [spelling], "allOf": [in_section]}}
    if len(spellings) == 2:
        yield {"not": {"required": spellings}}


def _has_camel(name: str) -> bool:
    return name.isidentifier() and to_camel(name) != name


def _table_or_its_name(table: Schema) -> Schema:
    name = {**table["properties"]["name"], "description": "A table's name, with nothing else to say."}
    return {"anyOf": [name, {"$ref": "#/$defs/TableWithKeys"}]}


_NOISE = ("title", "discriminator")


def _quiet(schema: Mapping[str, Any], *, is_properties: bool) -> Iterator[tuple[str, Any]]:
    """Without what pydantic adds: it titles every key with its own name."""
    for key, value in schema.items():
        if key in _NOISE and not is_properties:
            continue
        if isinstance(value, dict):
            yield key, dict(_quiet(value, is_properties=key in ("properties", "$defs") and not is_properties))
        elif isinstance(value, list):
            yield key, [dict(_quiet(v, is_properties=False)) if isinstance(v, dict) else v for v in value]
        else:
            yield key, value
