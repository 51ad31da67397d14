"""Whatever a manifest holds, reading it ends in a project or in problems with a place; never in a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from hakiri_dagster.manifest.project import ProjectReading, read_project
from hakiri_dagster.manifest.schema import pipeline_schema, project_schema

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["append", "upsert", "files", "postgres", "context", "${A}", "${", "a", "every 5m", "1mo", "\0"]),
)


def names(schema: dict[str, Any]) -> list[str]:
    found = {key for part in schema["$defs"].values() for key in part.get("properties", {})}
    return sorted(found | set(schema["properties"]))


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(names(schema))
    return st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=15
    )


def manifests(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    inner = values(schema)
    return st.fixed_dictionaries({}, optional=dict.fromkeys(schema["properties"], inner))


def read(**files: bytes) -> ProjectReading:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "manifests" / "pipelines").mkdir(parents=True)
        for name, content in files.items():
            place = "hakiri.toml" if name == "hakiri" else f"pipelines/a.{name}"
            (root / "manifests" / place).write_bytes(content)
        return read_project(root, {"A": "filled"})


def is_an_answer(reading: ProjectReading, text: str | None = None) -> None:
    assert (reading.project is None) == bool(reading.problems)
    for problem in reading.problems:
        assert problem.message
        assert problem.column >= 1
        if text is not None:
            assert 1 <= problem.line <= text.count("\n") + 1


@settings(deadline=None, max_examples=100)
@given(manifests(pipeline_schema()))
def test_any_json_pipeline_gets_an_answer(manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=1)
    is_an_answer(read(json=text.encode()), text)


@settings(deadline=None, max_examples=100)
@given(manifests(project_schema()))
def test_any_project_file_gets_an_answer(manifest: dict[str, Any]) -> None:
    text = tomlkit.dumps(_without_nulls(manifest))
    is_an_answer(read(hakiri=text.encode("utf-8", "surrogatepass")))


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=80), st.text(max_size=80))
def test_any_bytes_get_an_answer(content: bytes, text: str) -> None:
    is_an_answer(read(hakiri=content, json=text.encode("utf-8", "surrogatepass"), toml=text.encode("utf-8", "replace")))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value if inner is not None]
    return value
