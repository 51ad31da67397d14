"""What `hakiri suggest` prints, put where it says, into manifests of every shape."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hakiri_dagster.manifest.rule_spec import NotNullRule
from hakiri_dagster.manifest.snippet import Addition, snippet
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.manifest.validator_spec import DuplicateKeyValidator, NullRatioValidator, RowCountValidator, id_of
from hakiri_dagster.manifest.written_tables import written_table
from tests.unit.manifest.conftest import Read, WriteProject

SHOP = """
id = "shop"
source = { connector = "files", config = { path = "data", format = "csv" } }
destination = { connector = "postgres", config = { url = "${URL}" } }
"""
PROJECT = '[project]\nname = "p"\n\n[[pipeline]]\n'
COUNTS = 'row_count = [{ min = 2 }, { max = 1000000, scope = "table" }]'
DOTTED = f"validate.dataset_level = {{ {COUNTS} }}\n"
OTHERS = '[[{}tables]]\nname = "customers"\n'


def section(around: str) -> str:
    return f"[{around}validate]\nprofile = true\n[{around}validate.dataset_level]\n{COUNTS}\n"


RULE = Addition(NotNullRule(type="not_null", field="id", on_fail="warn"), "no NULL")
NEW_KIND = Addition(NullRatioValidator(column="email", max=0.5, on_fail="warn"), "some NULL")
ANOTHER_KIND = Addition(DuplicateKeyValidator(columns=("id",), on_fail="warn"), "all differ")
KNOWN_KIND = Addition(RowCountValidator(id="few", max=9, on_fail="warn"), "few rows")

Put = Callable[[str, str], str]
"""A manifest and what is printed → the manifest with it."""


def instead_of(there: str) -> Put:
    return lambda text, printed: text.replace(there, printed)


def before_the_next(header: str, *, without: str = "") -> Put:
    """At the end of the first table."""

    def put(text: str, printed: str) -> str:
        first, *others = text.replace(without, "").split(f"\n[[{header}]]\n")
        return f"\n[[{header}]]\n".join([f"{first}\n[[{header}]]\n{others[0]}\n{printed}", *others[1:]])

    return put


def shape(file: str, text: str, put: Put, form: str) -> object:
    return pytest.param(file, text, put, id=form)


TABLE = 'name = "orders"\n'
OWN, PROJECTS = "", "pipeline."
SHAPES = [
    shape(
        "shop.toml",
        f"{SHOP}\n[[tables]]\n{TABLE}{DOTTED}\n{OTHERS.format(OWN)}",
        before_the_next("tables", without=DOTTED),
        "dotted keys of a table with a header",
    ),
    shape(
        "shop.toml",
        f"{SHOP}\n[[tables]]\n{TABLE}load.mode = 'append'\n\n{section('tables.')}\n{OTHERS.format(OWN)}",
        instead_of(section("tables.")),
        "sections of a table with a header",
    ),
    shape(
        "hakiri.toml",
        f"{PROJECT}{SHOP}\n[[pipeline.tables]]\n{TABLE}[pipeline.tables.load]\nmode = 'append'\n\n"
        f"{OTHERS.format(PROJECTS)}",
        before_the_next("pipeline.tables"),
        "a table of the project's file that has another section",
    ),
    shape(
        "hakiri.toml",
        f"{PROJECT}{SHOP}\n[[pipeline.tables]]\n{TABLE}{DOTTED}",
        before_the_next("pipeline.tables", without=DOTTED),
        "the only table, with keys of its own",
    ),
    shape(
        "hakiri.toml",
        f"{PROJECT}{SHOP}tables = ['orders']\n{section(PROJECTS)}",
        instead_of(section(PROJECTS)),
        "a pipeline of one table",
    ),
    shape(
        "shop.toml",
        f'{SHOP}tables = ["customers", {{ name = "orders", validate = {{ dataset_level = {{ {COUNTS} }} }} }}]\n',
        instead_of(f"validate = {{ dataset_level = {{ {COUNTS} }} }}"),
        "an entry in braces",
    ),
    shape(
        "shop.toml",
        f'{SHOP}tables = ["customers", {{ name = "orders", datasetLevel = {{ {COUNTS} }} }}]\n',
        instead_of(f"datasetLevel = {{ {COUNTS} }}"),
        "the flat key of an entry",
    ),
    shape(
        "shop.toml",
        f'{SHOP}tables = ["customers",\n"orders",\n]\n[validate.dataset_level]\n{COUNTS}\n',
        instead_of('"orders",'),
        "a name",
    ),
]


@pytest.mark.parametrize(
    "additions",
    [[RULE], [NEW_KIND], [KNOWN_KIND], [NEW_KIND, RULE, ANOTHER_KIND, KNOWN_KIND]],
    ids=["a rule", "another kind", "the same kind", "all"],
)
@pytest.mark.parametrize(("file", "text", "put"), SHAPES)
def test_it_can_be_put_in_as_it_stands(
    write_project: WriteProject, read: Read, file: str, text: str, put: Put, additions: list[Addition]
) -> None:
    def written(text: str) -> Table:
        reading = read(text, env=URL) if file == "hakiri.toml" else read(None, {file: text}, env=URL)
        assert reading.problems == ()
        assert reading.project is not None
        return next(table for table in reading.project.tables if table.name == "orders")

    before = written(text)
    root = write_project(None)
    after = written(put(text, snippet(before, written_table(root, before), additions)))
    assert checks_of(after) == {*checks_of(before), *(addition.check.model_dump_json() for addition in additions)}
    assert (after.validation.profile, after.load) == (before.validation.profile, before.load)


URL = {"URL": "postgresql://localhost/p"}


def checks_of(table: Table) -> set[str]:
    validation = table.validation
    return {check.model_dump_json() for check in (*validation.row_level, *validation.dataset_level.validators)}


def test_json_holds_what_was_there(write_project: WriteProject, read: Read) -> None:
    source = {"connector": "files", "config": {"path": "data", "format": "csv"}}
    destination = {"connector": "postgres", "config": {"url": "${URL}"}}
    there = {"dataset_level": {"row_count": [{"min": 2}]}}
    shop = {"id": "shop", "source": source, "destination": destination, "tables": ["orders"], "validate": there}
    first = read(None, {"shop.json": json.dumps(shop)}, env=URL).project
    assert first is not None
    (table,) = first.tables
    root = write_project(None)
    member = json.loads(f"{{{snippet(table, written_table(root, table), [RULE, NEW_KIND])}}}")
    second = read(None, {"shop.json": json.dumps(shop | member)}, env=URL).project
    assert second is not None
    (table,) = second.tables
    assert [id_of(one) for one in table.validation.dataset_level.validators] == ["row_count", "null_ratio_email"]
    assert [rule.on_fail for rule in table.validation.row_level] == ["warn"]
