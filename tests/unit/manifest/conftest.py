from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hakiri_dagster.manifest.project import ProjectReading, read_project
from hakiri_dagster.manifest.tables import Project

WriteProject = Callable[..., Path]
Read = Callable[..., ProjectReading]
Load = Callable[..., Project]


@pytest.fixture
def write_project(tmp_path: Path) -> WriteProject:
    """`hakiri` is the text of hakiri.toml; keywords are further files under manifests/pipelines/."""

    def write(hakiri: str | bytes | None = None, files: Mapping[str, str | bytes] | None = None) -> Path:
        folder = tmp_path / "manifests" / "pipelines"
        folder.mkdir(parents=True, exist_ok=True)
        texts = {f"pipelines/{name}": text for name, text in (files or {}).items()}
        if hakiri is not None:
            texts["hakiri.toml"] = hakiri
        for name, text in texts.items():
            content = text.encode() if isinstance(text, str) else text
            (tmp_path / "manifests" / name).write_bytes(content)
        return tmp_path

    return write


@pytest.fixture
def read(write_project: WriteProject) -> Read:
    def read_text(
        hakiri: str | bytes | None = None,
        files: Mapping[str, str | bytes] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ProjectReading:
        return read_project(write_project(hakiri, files), env or {})

    return read_text


@pytest.fixture
def load(read: Read) -> Load:
    def load_text(
        hakiri: str | None = None,
        files: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Project:
        reading = read(hakiri, files, env)
        assert reading.problems == ()
        assert reading.project is not None
        return reading.project

    return load_text
