from __future__ import annotations

import csv
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from hakiri_dagster.errors import UsageError
from hakiri_dagster.manifest.documents import parse_document
from hakiri_dagster.manifest.project import load_project, read_project
from hakiri_dagster.manifest.scaffold import write_scaffold
from hakiri_dagster.manifest.schema import pipeline_schema, project_schema


def test_the_new_project_is_valid_without_warnings(tmp_path: Path) -> None:
    write_scaffold(tmp_path / "new")
    reading = read_project(tmp_path / "new", {})
    assert (reading.problems, reading.warnings) == ((), ())
    assert reading.pipeline_ids == ("shop", "catalogue")


def test_every_table_of_the_new_project_has_its_file_and_its_columns(tmp_path: Path) -> None:
    write_scaffold(tmp_path)
    for table in load_project(tmp_path, {}).tables:
        with (Path(table.source.config["path"]) / f"{table.name}.csv").open(encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        assert rows
        assert {len(row) for row in rows} == {len(header)}
        assert {*table.primary_key, *([table.cursor] if table.cursor else [])} <= set(header)


def test_the_new_manifests_validate_against_the_schema(tmp_path: Path) -> None:
    write_scaffold(tmp_path)
    for name, schema in (("hakiri.toml", project_schema()), ("pipelines/catalogue.json", pipeline_schema())):
        document = parse_document((tmp_path / "manifests" / name).read_bytes(), name)
        Draft202012Validator(schema).validate(document.data)


def test_a_file_that_is_there_is_never_overwritten_and_nothing_else_is_written(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.csv").write_text("mine")
    with pytest.raises(UsageError, match=r"data/orders\.csv"):
        write_scaffold(tmp_path)
    assert (tmp_path / "data" / "orders.csv").read_text() == "mine"
    assert not (tmp_path / "manifests").exists()


def test_a_gitignore_that_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")
    scaffold = write_scaffold(tmp_path)
    assert scaffold.kept_gitignore
    assert ".gitignore" not in scaffold.written
    assert (tmp_path / ".gitignore").read_text() == "mine\n"


def test_the_state_folder_of_a_new_project_is_ignored_by_git(tmp_path: Path) -> None:
    write_scaffold(tmp_path)
    assert ".hakiri/" in (tmp_path / ".gitignore").read_text().splitlines()


def test_further_files_are_written_and_guarded_too(tmp_path: Path) -> None:
    extra = {"dagster.yaml": "x: 1\n"}
    assert "dagster.yaml" in write_scaffold(tmp_path / "a", extra).written
    assert (tmp_path / "a" / "dagster.yaml").read_text() == "x: 1\n"
    (tmp_path / "dagster.yaml").write_text("mine")
    with pytest.raises(UsageError, match=r"dagster\.yaml"):
        write_scaffold(tmp_path, extra)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_scaffold(tmp_path / "file")
