"""Manifests become one project: merged by id, filled in, with every default resolved."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from hakiri_dagster.errors import ManifestError
from hakiri_dagster.manifest.project import load_project
from hakiri_dagster.security.secrets import redact
from tests.unit.manifest.conftest import Load, Read, WriteProject
from tests.unit.manifest.samples import DESIGN_ENV, DESIGN_PROJECT, files_pipeline, postgres_pipeline


def test_inline_toml_and_json_pipelines_are_one_project(load: Load) -> None:
    inline = "[[pipeline]]\n" + files_pipeline("inline", "a")
    as_json = '{"id": "in-json", "source": {"connector": "postgres", "config": {"schema": "shop"}}, "tables": ["c"]}'
    project = load(inline, {"x.toml": files_pipeline("in-toml", "b"), "y.json": as_json})
    assert [pipeline.id for pipeline in project.pipelines] == ["inline", "in-toml", "in-json"]
    assert [(p.origin.file, p.origin.line) for p in project.pipelines] == [
        ("manifests/hakiri.toml", 1),
        ("manifests/pipelines/x.toml", 1),
        ("manifests/pipelines/y.json", 1),
    ]


def test_toml_and_json_in_either_spelling_mean_the_same(load: Load) -> None:
    snake = """\
id = "a"
source = { connector = "files", config = { path = "data", null_values = ["NA"], infer_schema = false } }
tables = [{ name = "t", primary_key = ["id"], load = { fail_on_empty_source = false } }]
backfill = { start_from = 2020-01-01, max_chunks_per_tick = 3 }
"""
    camel = """\
{"id": "a",
 "source": {"connector": "files", "config": {"path": "data", "nullValues": ["NA"], "inferSchema": false}},
 "tables": [{"name": "t", "primaryKey": ["id"], "failOnEmptySource": false}],
 "backfill": {"startFrom": "2020-01-01", "maxChunksPerTick": 3}}
"""
    (from_toml,) = load(None, {"a.toml": snake}).tables
    (from_json,) = load(None, {"a.toml": postgres_pipeline('["q"]', "z"), "a.json": camel}).pipelines[0].tables
    for field in ("source", "mode", "primary_key", "upsert_key", "load", "backfill", "validation", "columns"):
        assert getattr(from_toml, field) == getattr(from_json, field)


def test_an_id_in_two_places_is_refused_with_both_places(read: Read) -> None:
    inline = '[project]\nname = "x"\n[[pipeline]]\n' + files_pipeline("github-issues", "a")
    as_json = '{"id": "github-issues", "source": {"connector": "files", "config": {"path": "d"}}, "tables": ["b"]}'
    (problem,) = read(inline, {"github-issues.json": as_json}).problems
    assert problem.message == (
        "pipeline `github-issues` defined in two places:\n"
        "  manifests/hakiri.toml:3\n"
        "  manifests/pipelines/github-issues.json:1"
    )
    assert problem.hint == (
        "keep one source of truth; run `hakiri pipeline convert github-issues --to json` to migrate"
    )


def test_an_id_twice_in_files_of_one_kind_is_refused_without_a_way_to_convert(read: Read) -> None:
    twice = {"a.toml": files_pipeline("one", "x"), "b.toml": files_pipeline("one", "y")}
    (problem,) = read(None, twice).problems
    assert problem.hint == "keep one source of truth; rename or delete the other"


def test_ids_that_are_one_name_in_dagster_are_refused(read: Read) -> None:
    (problem,) = read(None, {"a.toml": files_pipeline("a-b", "x"), "b.toml": files_pipeline("a_b", "y")}).problems
    assert "differ only in `-` and `_`" in problem.message
    assert (problem.file, problem.line) == ("manifests/pipelines/b.toml", 1)


def test_a_table_overrides_its_pipeline_key_by_key(load: Load) -> None:
    text = """\
id = "a"
source = { connector = "postgres", config.schema = "shop" }
incremental = "updated_at"
load = { mode = "truncate", provenance = "full", empty_as_null = true }
backfill = { window = "1w", parallelism = 4 }
validate = { quarantine = { enabled = true, table = "dlq.rows" } }
owners = ["team:data"]
tags = { domain = "shop", tier = "1" }

[[tables]]
name = "plain"

[[tables]]
name = "own"
incremental = false
load = { mode = "append", provenance = "standard" }
backfill = { parallelism = 1 }
quarantine = { enabled = false }
owners = ["ann@example.com"]
tags = { tier = "2" }
"""
    plain, own = load(None, {"a.toml": text}).tables
    assert (plain.mode, plain.load.provenance, plain.load.empty_as_null) == ("truncate", "full", True)
    assert (own.mode, own.load.provenance, own.load.empty_as_null) == ("append", "standard", True)
    assert (plain.backfill.window, plain.backfill.parallelism) == ("1w", 4)
    assert (own.backfill.window, own.backfill.parallelism) == ("1w", 1)
    assert own.validation.quarantine.enabled is False
    assert own.quarantine_table == ("dlq", "rows")
    assert (plain.cursor, own.cursor) == ("updated_at", None)
    assert (plain.owners, own.owners) == (("team:data",), ("ann@example.com",))
    assert (plain.tags, own.tags) == ({"domain": "shop", "tier": "1"}, {"domain": "shop", "tier": "2"})
    assert (plain.origin.line, own.origin.line) == (10, 13)


def test_the_mode_is_upsert_with_a_primary_key_and_append_without(load: Load) -> None:
    text = postgres_pipeline('["x", { name = "y", primary_key = ["a", "b"] }]')
    x, y = load(None, {"a.toml": text}).tables
    assert (x.mode, x.upsert_key) == ("append", ())
    assert (y.mode, y.upsert_key) == ("upsert", ("a", "b"))


def test_an_upsert_key_without_a_mode_is_warned_of(read: Read) -> None:
    text = postgres_pipeline('[{ name = "y", upsert_key = ["a"] }]')
    reading = read(None, {"a.toml": text})
    assert reading.problems == ()
    assert "`upsert_key` has no effect" in reading.warnings[0].message


@pytest.mark.parametrize(
    ("project", "destination", "expected"),
    [
        ("", "", (None, "public", "context")),
        ("", 'destination = "context"', (None, "public", "context")),
        ("", 'destination = { connector = "context" }', (None, "public", "context")),
        ("", 'destination = { connector = "postgres" }', (None, "public", None)),
        ("", 'destination = { connector = "postgres", config = { schema = "s" } }', (None, "s", None)),
        ('[context]\ndefault_destination = "context"\n', "", (None, "public", "context")),
        ('[context]\ndefault_destination = "w"\n', "", ("postgresql://h/w", "raw", "w")),
        ('[context]\ndefault_destination = "w"\n', 'destination = "v"', (None, "v", "v")),
        ('[context]\ndefault_destination = "w"\n', 'destination.connector = "context"', (None, "public", "context")),
    ],
)
def test_a_pipeline_lands_where_it_says_or_where_the_project_says(
    load: Load, project: str, destination: str, expected: tuple[str | None, str, str | None]
) -> None:
    named = """\
[destinations.w]
connector = "postgres"
config = { url = "postgresql://h/w", schema = "raw" }
[destinations.v]
connector = "postgres"
config.schema = "v"
"""
    (table,) = load(project + named, {"a.toml": files_pipeline(more=destination)}).tables
    url, schema, name = expected
    assert table.destination.connector == "postgres"
    assert table.destination.config == {"url": url, "schema": schema}
    assert table.destination.name == name
    assert (table.target_schema, table.target_name) == (schema, "orders")


def test_destinations_that_nobody_chose_are_warned_of(read: Read) -> None:
    reading = read('[destinations.w]\nconnector = "postgres"\n', {"a.toml": files_pipeline()})
    assert "land in the embedded PostgreSQL" in reading.warnings[0].message


def test_relative_paths_begin_at_the_project(load: Load, tmp_path: Path) -> None:
    text = """\
id = "a"
source = { connector = "files", config = { path = "data/../in" } }
tables = ["x", { name = "y", path = "other/*.csv" }, { name = "w", path = "/abs" }]
"""
    x, y, w = load(None, {"a.toml": text}).tables
    assert x.source.config["path"] == str(tmp_path / "in")
    assert [x.path, y.path, w.path] == [None, str(tmp_path / "other/*.csv"), "/abs"]


def test_the_settings_of_files_have_defaults_and_one_spelling(load: Load) -> None:
    text = files_pipeline().replace('path = "data"', 'path = "/d", format = "ndjson", nullValues = ["NA"]')
    (table,) = load(None, {"a.toml": text}).tables
    assert table.source.config == {
        "path": "/d",
        "format": "jsonl",
        "header": True,
        "delimiter": ",",
        "encoding": "UTF-8",
        "infer_schema": True,
        "null_values": ["NA"],
        "compression": None,
        "multiline": True,
        "quote": '"',
        "escape": '"',
    }


def test_references_are_filled_from_the_environment_and_their_passwords_are_redacted(load: Load) -> None:
    project = load(DESIGN_PROJECT, env=DESIGN_ENV)
    table = project.tables[0]
    assert table.source.config["url"] == DESIGN_ENV["SHOP_URL"]
    assert table.destination.config == {"url": DESIGN_ENV["WAREHOUSE_URL"], "schema": "raw"}
    assert redact("wh-s3cret and sh-s3cret") == "*** and ***"
    assert "s3cret" not in repr(table)


def test_a_reference_may_be_a_part_of_a_text_and_two_dollars_are_one(load: Load) -> None:
    text = files_pipeline().replace('"data"', '"/in/${YEAR}/${MONTH}/$${x}"')
    (table,) = load(None, {"a.toml": text}, env={"YEAR": "2024", "MONTH": "05"}).tables
    assert table.source.config["path"] == "/in/2024/05/${x}"


def test_references_are_filled_in_the_audit_url_and_in_paths(load: Load) -> None:
    text = files_pipeline().replace('["orders"]', '[{ name = "x", path = "/${D}" }]')
    env = {"D": "days", "AUDIT": "postgresql://u:aud1t-pw@h/a"}
    project = load('[audit]\nurl = "${AUDIT}"\n', {"a.toml": text}, env=env)
    assert project.audit_url == env["AUDIT"]
    assert project.tables[0].path == "/days"
    assert redact("aud1t-pw") == "***"


def test_the_values_of_secrets_are_redacted(load: Load) -> None:
    load(None, {"a.toml": files_pipeline(more='secrets = ["TOKEN_OF_SHOP"]\n')}, env={"TOKEN_OF_SHOP": "tkn-9876"})
    assert redact("Bearer tkn-9876") == "Bearer ***"


def test_a_wrong_value_from_the_environment_is_never_shown(read: Read) -> None:
    text = files_pipeline(
        more='destination = { connector = "postgres", config = { url = "${DB}", schema = "${S}" } }\n'
    )
    reading = read(None, {"a.toml": text}, env={"DB": "mysql://u:my-s3cret@h/d", "S": "pg_s3cret-schema"})
    assert len(reading.problems) == 2
    assert "s3cret" not in str(ManifestError(reading.problems))


def test_a_quarantine_table_has_a_name_that_postgresql_keeps(load: Load) -> None:
    first, second = "t" * 60 + "aa", "t" * 60 + "bb"
    text = files_pipeline("p" * 63, first).replace("]", f', "{second}"]')
    a, b = (table.quarantine_table[1] for table in load(None, {"a.toml": text}).tables)
    assert a != b
    assert len(a.encode()) <= 63
    assert load(None, {"a.toml": files_pipeline()}).tables[0].quarantine_table == ("hakiri", "quarantine_shop_orders")


def test_a_quarantine_table_without_a_schema_is_in_the_schema_of_the_target(load: Load) -> None:
    text = files_pipeline(
        more='quarantine = { table = "bad" }\ndestination = { connector = "context", config = { schema = "raw" } }\n'
    )
    assert load(None, {"a.toml": text}).tables[0].quarantine_table == ("raw", "bad")


def test_a_wrong_pipeline_does_not_hide_what_is_wrong_with_another_file(read: Read) -> None:
    reading = read(
        "[projekt]\n[[pipeline]]\n" + files_pipeline("One", "a"),
        {"b.toml": "id = \n", "a.json": '{"id": "two"}', "c.toml": files_pipeline("three", "c", "schedule = 'x'\n")},
    )
    assert reading.project is None
    assert [(p.file.rpartition("/")[2], p.line) for p in reading.problems] == [
        ("hakiri.toml", 1),
        ("hakiri.toml", 3),
        ("a.json", 1),
        ("a.json", 1),
        ("b.toml", 1),
        ("c.toml", 4),
    ]
    assert reading.pipeline_ids == ("One", "two", "three")


def test_loading_raises_everything_at_once_with_exit_code_2(write_project: WriteProject) -> None:
    root = write_project(None, {"a.toml": files_pipeline("A B"), "b.toml": files_pipeline("b", more="x = 1\n")})
    with pytest.raises(ManifestError) as refused:
        load_project(root, {})
    assert refused.value.exit_code == 2
    assert len(refused.value.problems) == 2


def test_a_folder_without_manifests_says_what_to_do(read: Read, tmp_path: Path) -> None:
    (problem,) = read().problems
    assert "not a project" in problem.message
    assert problem.hint is not None
    assert "hakiri init" in problem.hint
    (tmp_path / "hakiri.toml").write_text("")
    (problem,) = read().problems
    assert problem.hint == "move `hakiri.toml` and `pipelines/` into `manifests/`"


def test_an_empty_project_file_is_an_empty_project(load: Load) -> None:
    assert load("").pipelines == ()


def test_files_that_are_not_manifests_are_warned_of(read: Read, tmp_path: Path) -> None:
    reading = read(None, {"a.toml": files_pipeline(), "b.yaml": "id: b", "README.md": "hello"})
    assert [warning.file for warning in reading.warnings] == ["manifests/pipelines/b.yaml"]


def test_a_manifest_that_cannot_be_read_is_told(read: Read, tmp_path: Path) -> None:
    (tmp_path / "manifests" / "pipelines" / "a.toml").mkdir(parents=True)
    (problem,) = read().problems
    assert problem.message.startswith("cannot be read: ")


def test_a_resolved_project_can_be_pickled(load: Load) -> None:
    project = load(DESIGN_PROJECT, env=DESIGN_ENV)
    assert pickle.loads(pickle.dumps(project)) == project


def test_a_project_of_two_thousand_tables_is_read(load: Load) -> None:
    tables = ", ".join(f'{{ name = "t{n}", primary_key = ["id"] }}' for n in range(2000))
    text = postgres_pipeline(f"[{tables}]")
    assert len(load(None, {"big.toml": text}).tables) == 2000
