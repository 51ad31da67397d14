"""The samples of the seeds and the design parse; what is not built in them is refused by its name."""

from __future__ import annotations

from hakiri_dagster.errors import Problem
from tests.unit.manifest.conftest import Load, Read
from tests.unit.manifest.samples import (
    DESIGN_ENV,
    DESIGN_PROJECT,
    DESIGN_QUALITY,
    SEED_BACKFILL,
    SEED_JSON,
    SEED_PROJECT,
    SEED_QUALITY,
)

REFUSED = "not yet built"


def others(problems: tuple[Problem, ...]) -> list[Problem]:
    return [problem for problem in problems if REFUSED not in problem.message]


def test_the_seed_project_is_refused_for_its_shop_its_sync_and_an_unset_secret_only(read: Read) -> None:
    problems = read(SEED_PROJECT).problems
    assert [(p.line, p.message) for p in problems] == [
        (9, "`[sync]` is not yet built"),
        (24, "source: the connector `shopify` is not yet built"),
        (25, "the secret `SHOPIFY_TOKEN` is not set"),
    ]


def test_the_context_path_of_the_seed_is_taken_with_a_warning(read: Read) -> None:
    (warning,) = read(SEED_PROJECT).warnings
    assert (warning.line, warning.column) == (6, 1)
    assert "no effect" in warning.message


def test_the_seed_json_pipeline_is_taken(read: Read) -> None:
    assert read(None, {"github-issues.json": SEED_JSON}).problems == ()


def test_the_seed_backfill_is_taken(read: Read) -> None:
    assert read(SEED_BACKFILL).problems == ()


def test_every_quality_key_of_the_seed_is_taken(read: Read) -> None:
    (of_the_hooks,) = read(None, {"orders.json": SEED_QUALITY}).problems
    assert of_the_hooks.message == "no function `done` is registered for hooks"


def test_the_design_project_loads(load: Load) -> None:
    project = load(DESIGN_PROJECT, env=DESIGN_ENV)
    assert [(table.label, table.mode) for table in project.tables] == [
        ("shop-orders/customers", "append"),
        ("shop-orders/orders", "upsert"),
    ]


def test_the_design_quality_sections_hold_for_every_table(load: Load) -> None:
    tables = load(DESIGN_PROJECT + DESIGN_QUALITY, env=DESIGN_ENV).tables
    assert {tuple(table.validation.check_ids) for table in tables} == {
        ("regex_email", "row_count", "freshness_updated_at")
    }


def test_what_is_not_built_is_refused_on_a_table_too(read: Read) -> None:
    text = """\
id = "shop"
source = { connector = "files", config = { path = "data" } }
destination = { connector = "bigquery", config = { dataset = "raw" } }
[[tables]]
name = "a"
transforms = [{ rename = { a = "b" } }]
[[tables]]
name = "b"
transforms = [{ drop = "c" }]
"""
    problems = read(None, {"shop.toml": text}).problems
    assert others(problems) == []
    assert [(p.line, p.column) for p in problems] == [(3, 29), (6, 1), (9, 1)]


def test_asking_for_nothing_is_not_refused(load: Load) -> None:
    text = """\
{"id": "shop", "source": {"connector": "files", "config": {"path": "data"}}, "tables": ["a"],
 "transforms": [], "rowLevel": [], "datasetLevel": {}, "backupBeforeLoad": false, "preHook": null}
"""
    assert load(None, {"shop.json": text}).tables[0].load.backup_before_load is None


def test_a_misspelt_connector_is_told_which_one_was_meant(read: Read) -> None:
    text = 'id = "a"\nsource = { connector = "postgress" }\ntables = ["x"]\n'
    (problem,) = read(None, {"a.toml": text}).problems
    assert problem.hint == "did you mean `postgres`?"


def test_files_that_are_not_on_a_disk_are_refused_by_name(read: Read) -> None:
    text = """\
id = "a"
source = { connector = "files", config = { path = "s3://bucket/data" } }
tables = ["x", { name = "y", path = "https://example.com/y.csv" }]
"""
    problems = read(None, {"a.toml": text}).problems
    assert [(p.line, p.column, p.message) for p in problems] == [
        (2, 51, "reading files from `s3://` is not yet built"),
        (3, 37, "reading files from `https://` is not yet built"),
    ]
