"""The exported JSON Schema agrees with the models, as an independent validator sees it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from hakiri_dagster.manifest.documents import parse_document
from hakiri_dagster.manifest.generate import generated_files
from hakiri_dagster.manifest.schema import pipeline_schema, project_schema
from hakiri_dagster.manifest.spec import PipelineSpec
from tests.unit.manifest.samples import (
    DESIGN_PROJECT,
    DESIGN_QUALITY,
    SEED_BACKFILL,
    SEED_JSON,
    SEED_PROJECT,
    SEED_QUALITY,
    files_pipeline,
    postgres_pipeline,
)

REPOSITORY = Path(__file__).parents[3]
PIPELINE = Draft202012Validator(pipeline_schema())
PROJECT = Draft202012Validator(project_schema())

GOOD: dict[str, Any] = {
    "id": "a",
    "source": {"connector": "files", "config": {"path": "d", "format": "json", "nullValues": ["NA"]}},
    "tables": ["t", {"name": "u", "primaryKey": ["x"], "loadMode": "upsert", "backfill": {"window": 100000}}],
}


@pytest.mark.parametrize("name", generated_files())
def test_what_the_repository_holds_is_what_the_models_say(name: str) -> None:
    committed = (REPOSITORY / name).read_text(encoding="utf-8")
    assert committed == generated_files()[name], "run `python -m hakiri_dagster.manifest.generate`"


@pytest.mark.parametrize(
    ("schema", "identity"),
    [
        (pipeline_schema(), "https://hakiri.dev/schemas/v1/pipeline.json"),
        (project_schema(), "https://hakiri.dev/schemas/v1/hakiri.json"),
    ],
)
def test_the_schema_is_draft_2020_12(schema: dict[str, Any], identity: str) -> None:
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == identity


@pytest.mark.parametrize("text", [SEED_PROJECT, SEED_BACKFILL, DESIGN_PROJECT, DESIGN_PROJECT + DESIGN_QUALITY, ""])
def test_good_projects_validate(text: str) -> None:
    PROJECT.validate(parse_document(text.encode(), "hakiri.toml").data)


@pytest.mark.parametrize(
    "text",
    [
        files_pipeline(more='schedule = "every 15m"\ntimezone = "Europe/Berlin"\nsecrets = ["A"]\n'),
        files_pipeline(
            more='destination = "w"\nincremental = "x"\n[backfill]\nwindow = "30d"\nstart_from = 2020-01-01\n'
        ),
        files_pipeline(more='[load]\nmode = "truncate"\npreHook = { type = "sql", statement = "ANALYZE" }\n'),
        postgres_pipeline('[{ name = "a", incremental = false, columns = { x = "numeric(15,2)" } }]'),
        postgres_pipeline('["a"]', more='destination = { connector = "context", config = { schema = "raw" } }\n'),
        postgres_pipeline('["a"]', more='destination = { connector = "bigquery", config = { dataset = "raw" } }\n'),
    ],
)
def test_good_pipelines_validate_in_toml_and_as_json(text: str) -> None:
    document = parse_document(text.encode(), "a.toml").data
    PIPELINE.validate(document)
    PIPELINE.validate(parse_document(json.dumps(document).encode(), "a.json").data)
    PROJECT.validate({"pipeline": [document]})


@pytest.mark.parametrize("text", [SEED_JSON, SEED_QUALITY, json.dumps(GOOD)])
def test_good_json_pipelines_validate(text: str) -> None:
    PIPELINE.validate(json.loads(text))
    PipelineSpec.model_validate(json.loads(text))


@pytest.mark.parametrize(
    "change",
    [
        {"id": "A b"},
        {"id": "a" * 64},
        {"id": 5},
        {"tables": []},
        {"tables": [{}]},
        {"tables": [5]},
        {"tables": [{"name": "a", "primary_key": []}]},
        {"tables": [{"name": "a", "primary_key": ["x"], "primaryKey": ["x"]}]},
        {"tables": [{"name": "a", "loadMode": "append", "load": {"mode": "append"}}]},
        {"tables": [{"name": "a", "unknown": 1}]},
        {"unknown": 1},
        {"source": {"connector": "files"}},
        {"source": {"connector": "files", "config": {}}},
        {"source": {"connector": "files", "config": {"path": "d", "formt": "csv"}}},
        {"source": {"connector": "files", "config": {"path": "d", "format": "xml"}}},
        {"source": {"connector": "postgres", "config": {"path": "d"}}},
        {"source": {"config": {}}},
        {"source": "files"},
        {"destination": 5},
        {"destination": {"connector": "postgres", "config": {"uri": "x"}}},
        {"load": {"mode": "appnd"}},
        {"loadMode": "appnd"},
        {"load_mode": "append", "loadMode": "append"},
        {"load_mode": "append", "load": {"mode": "append"}},
        {"rowLevel": [], "validate": {"row_level": []}},
        {"rowLevel": [{"type": "regexp", "field": "x"}]},
        {"rowLevel": [{"type": "regex", "field": "x"}]},
        {"datasetLevel": {"freshness": {"column": "x"}}},
        {"datasetLevel": {"freshness": {"column": "x", "withinHours": 1, "within_hours": 1}}},
        {"preHook": {"type": "sql"}},
        {"backfill": {"window": "30dd"}},
        {"backfill": {"window": 0}},
        {"backfill": {"parallelism": 65}},
        {"backfill": {"parallelism": "4"}},
        {"backfill": {"start_from": "yesterday"}},
        {"backfill": {"start_from": 1, "startFrom": 1}},
        {"quarantine": {"table": "a.b.c"}},
        {"incremental": True},
        {"secrets": ["A-B"]},
        {"secrets": "A"},
        {"tags": {"a": "b c"}},
    ],
)
def test_bad_pipelines_are_refused_by_the_schema_and_by_the_model(change: dict[str, Any]) -> None:
    bad = {**GOOD, **change}
    assert not PIPELINE.is_valid(bad)
    assert not PROJECT.is_valid({"pipeline": [bad]})
    with pytest.raises(ValidationError):
        PipelineSpec.model_validate(bad)


def test_a_pipeline_of_the_schema_needs_its_id_source_and_tables() -> None:
    for key in GOOD:
        assert not PIPELINE.is_valid({name: value for name, value in GOOD.items() if name != key})


@pytest.mark.parametrize(
    "text",
    [
        "[projekt]\n",
        "[project]\nnam = 1\n",
        "[context]\ndefaultDestination = 1\n",
        "[destinations.a]\n",
        "pipeline = 1\n",
    ],
)
def test_bad_projects_are_refused(text: str) -> None:
    assert not PROJECT.is_valid(tomllib.loads(text))


KEYS = sorted({*pipeline_schema()["properties"], *pipeline_schema()["$defs"]["LoadSpec"]["properties"]})
VALUES = st.sampled_from([None, True, False, 0, 1, 1.5, "append", "a", "", [], ["a"], {}, {"mode": "append"}])


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3))
def test_what_the_model_takes_the_schema_takes(extra: dict[str, Any]) -> None:
    manifest = {**GOOD, **extra}
    try:
        PipelineSpec.model_validate(manifest)
    except ValidationError:
        return
    PIPELINE.validate(manifest)


def test_every_key_in_the_schema_is_described() -> None:
    schema = pipeline_schema()
    for name, definition in {"PipelineSpec": schema, **schema["$defs"]}.items():
        for key, value in definition.get("properties", {}).items():
            assert value.get("description") or "$ref" in value, f"{name}.{key}"
