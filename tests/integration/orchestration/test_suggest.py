"""`hakiri suggest`: what it prints can be put into the manifest as it stands, and the target passes it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hakiri_dagster.cli.suggest_command import suggested
from hakiri_dagster.manifest.project import read_project
from hakiri_dagster.orchestration.apply import Applier
from tests.integration.orchestration.conftest import ShopProject

ROWS = "".join(
    f"{i},{i / 8},{'paid' if i % 3 else 'open'},2026-01-{1 + i % 28:02},note {i},{i if i % 4 else ''},"
    f"8b9f1c1e-93ce-4d4f-8f0a-6b1f3d2b8a{i % 90 + 10}\n"
    for i in range(60)
)
CSV = f"id,amount,status,day,note,maybe,token\n{ROWS}"


def write(shop: ShopProject, tables: str, file: str = "hakiri.toml", more: str = "") -> Path:
    path = shop.root / "manifests" / file
    path.parent.mkdir(exist_ok=True)
    header = '[project]\nname = "p"\n\n[[pipeline]]\n' if file == "hakiri.toml" else ""
    destination = f'destination = {{ connector = "postgres", config = {{ url = "{shop.url}", schema = "raw" }} }}'
    source = 'source = { connector = "files", config = { path = "data", format = "csv" } }'
    path.write_text(f'{header}id = "shop"\n{source}\n{destination}\ntables = [{tables}]\n{more}')
    return path


def loaded(shop: ShopProject, *names: str, rows: str = CSV) -> None:
    for name in names:
        shop.file(f"data/{name}.csv", rows)
    for table in shop.apply().values():
        assert table["error"] is None


def suggestion(shop: ShopProject, name: str = "orders") -> str:
    with shop.runtime() as runtime:
        (table,) = [table for table in runtime.project.tables if table.name == name]
        return suggested(runtime, table)


def checks(shop: ShopProject, name: str = "orders") -> dict[str, bool]:
    """What the target passes, as the manifest is now; which must be valid."""
    reading = read_project(shop.root, {})
    assert (reading.problems, reading.warnings) == ((), ())
    with shop.runtime() as runtime:
        (table,) = [table for table in runtime.project.tables if table.name == name]
        found, error = Applier(runtime, shop.instance).check(table, None)
    assert error is None
    return {one.check_name: one.passed for one in found if one.check_name != "no_rows_set_aside"}


PROPOSED = {
    "not_null_id", "not_null_amount", "range_amount", "not_null_status", "one_of_status", "not_null_day", "range_day",
    "not_null_note", "max_length_note", "range_maybe", "not_null_token", "field_type_token",
    "table_row_count", "duplicate_key_id", "duplicate_key_note", "duplicate_key_token", "null_ratio_maybe",
}  # fmt: skip


def test_a_pipeline_of_one_table_gets_a_section_of_its_own(shop: ShopProject) -> None:
    path = write(shop, '{ name = "orders", primary_key = ["id"] }')
    loaded(shop, "orders")
    text = suggestion(shop)
    assert "at the end of the pipeline at manifests/hakiri.toml, line 4, before the next `[[pipeline]]`" in text
    assert "few rows say little" in text
    assert "    # 2 value(s) in 60 row(s)\n" in text
    assert '{ type = "one_of", field = "status", values = ["open", "paid"], on_fail = "warn" },' in text
    assert '    # 15 of 60 row(s) are NULL\n    { column = "maybe", max = 0.39, on_fail = "warn" },' in text
    path.write_text(path.read_text() + "\n" + text)
    found = checks(shop)
    assert found.keys() == PROPOSED
    assert all(found.values())
    assert suggestion(shop).endswith("# nothing to propose that the manifest has not already")


def test_a_file_of_one_pipeline_gets_it_at_its_top_level(shop: ShopProject) -> None:
    path = write(shop, '"orders"', "pipelines/shop.toml")
    loaded(shop, "orders")
    path.write_text(path.read_text() + suggestion(shop))
    assert "[validate]" in path.read_text()
    assert all(checks(shop).values())


def test_nothing_that_is_proposed_stops_a_load(shop: ShopProject) -> None:
    path = write(shop, '"orders"', "pipelines/shop.toml")
    loaded(shop, "orders")
    path.write_text(path.read_text() + suggestion(shop))
    shop.file("data/orders.csv", "id,amount,status,day,note,maybe,token\n1,-999999,new,1850-01-01,,,x\n1,,,,,,\n")
    assert shop.apply()["orders"]["error"] is None
    assert shop.rows("SELECT count(*) FROM raw.orders WHERE id = 1 AND status IS DISTINCT FROM 'paid'") == [(2,)]


def test_one_table_of_several_gets_a_key_of_its_entry(shop: ShopProject) -> None:
    path = write(shop, '"customers", { name = "orders", primary_key = ["id"] }')
    loaded(shop, "orders", "customers")
    entry = suggestion(shop)
    assert "into the table's entry at manifests/hakiri.toml, line 8" in entry
    name = suggestion(shop, "customers")
    assert "in place of the table's name at manifests/hakiri.toml" in name
    text = path.read_text().replace('primary_key = ["id"]', f'primary_key = ["id"], {pasted(entry)}')
    path.write_text(text.replace('tables = ["customers",', f"tables = [{pasted(name)}"))
    for table in ("orders", "customers"):
        found = checks(shop, table)
        assert len(found) > 10
        assert all(found.values())


def pasted(text: str) -> str:
    """Without the comments above it."""
    lines = text.splitlines()
    first = next(place for place, line in enumerate(lines) if not line.startswith("#"))
    return "\n".join(lines[first:])


def test_a_table_of_toml_s_own_form_gets_a_section_of_its_own(shop: ShopProject) -> None:
    path = write(shop, "@")
    body = path.read_text().replace("tables = [@]\n", "")
    path.write_text(f'{body}[[pipeline.tables]]\nname = "orders"\n[[pipeline.tables]]\nname = "customers"\n')
    loaded(shop, "orders", "customers")
    text = suggestion(shop, "customers")
    assert "at the end of the table at manifests/hakiri.toml, line 10, before the next table or pipeline" in text
    assert "[pipeline.tables.validate]" in text
    path.write_text(path.read_text() + text)
    assert all(checks(shop, "customers").values())


def test_what_a_list_would_replace_is_in_it(shop: ShopProject) -> None:
    """A table's lists are over its pipeline's."""
    rules = '[pipeline.validate]\nrow_level = [{ type = "notNull", field = "id", on_fail = "skip" }]\n'
    validators = "[pipeline.validate.dataset_level]\nrow_count = { min = 1 }\n"
    path = write(shop, '"orders", "customers"', more=rules + validators)
    loaded(shop, "orders", "customers")
    text = suggestion(shop)
    assert '{ type = "notNull", field = "id", on_fail = "skip" },' in text
    assert "{ min = 1 }," in text
    assert '"not_null"' not in "".join(line for line in text.splitlines() if '"id"' in line)
    path.write_text(path.read_text().replace('"orders",', pasted(text)))
    with shop.runtime() as runtime:
        (table,) = [table for table in runtime.project.tables if table.name == "orders"]
    assert table.validation.row_level[0].on_fail == "skip"
    assert all(checks(shop).values())


def test_a_section_that_is_there_is_replaced_by_one_that_holds_it(shop: ShopProject) -> None:
    there = '[pipeline.validate]\nprofile = true\nquarantine = { table = "raw.bad" }\n[[pipeline.validate.row_level]]\n'
    rule = 'type = "regex"\nfield = "note"\npattern = "^[a-z]+ \\\\d+$"\n'
    path = write(shop, '"orders"', more=there + rule)
    loaded(shop, "orders")
    text = suggestion(shop)
    assert "in place of `validate`, which is in it" in text
    path.write_text(path.read_text().replace(there + rule, text))
    found = checks(shop)
    assert "regex_note" in found
    assert all(found.values())
    with shop.runtime() as runtime:
        (table,) = runtime.project.tables
    assert (table.validation.profile, table.validation.quarantine.table) == (True, "raw.bad")


def test_a_manifest_in_json_gets_json(shop: ShopProject, capsys: pytest.CaptureFixture[str]) -> None:
    source = {"connector": "files", "config": {"path": "data", "format": "csv"}}
    shop.manifest({"id": "shop", "source": source, "tables": ["orders"]})
    loaded(shop, "orders")
    member = json.loads(f"{{{suggestion(shop)}}}")
    assert "a member of the pipeline at manifests/pipelines/shop.json" in capsys.readouterr().err
    shop.manifest({"id": "shop", "source": source, "tables": ["orders"], **member})
    assert all(checks(shop).values())


HOSTILE = ['a "b"', "c'd", "e.f", "g\\h", "${HOME}", "]]", "é = 1 # x", "line\nbreak", "UPPER", "a_b"]


def test_columns_and_values_of_any_name_are_quoted(shop: ShopProject) -> None:
    path = write(shop, '"orders"')
    header = ",".join('"{}"'.format(name.replace('"', '""')) for name in HOSTILE)
    row = ",".join('"{}"'.format(name.replace('"', '""').replace("\n", "#")) for name in HOSTILE)
    loaded(shop, "orders", rows=f"{header}\n" + f"{row}\n" * 30)
    text = suggestion(shop)
    path.write_text(path.read_text() + text)
    named = {rule["field"] for rule in tomllib.loads(path.read_text())["pipeline"][0]["validate"]["row_level"]}
    assert named == set(HOSTILE)
    found = checks(shop)
    assert len(found) == 2 * len(HOSTILE) + 1
    assert all(found.values())


def test_a_cursor_of_time_is_asked_for_its_age(shop: ShopProject) -> None:
    path = write(shop, '{ name = "orders", incremental = "at" }')
    shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.orders (id integer, at timestamptz)")
    shop.execute("INSERT INTO raw.orders SELECT i, now() - i * interval '10 hours' FROM generate_series(1, 3) AS i")
    shop.file("data/orders.csv", "id,at\n1,2026-01-01T00:00:00Z\n")
    text = suggestion(shop)
    assert '{ column = "at", within_hours = 24.0, on_fail = "warn" },' in text
    path.write_text(path.read_text() + text)
    assert all(checks(shop).values())


def test_only_what_the_source_has_is_proposed(shop: ShopProject) -> None:
    """Rules are asked of its rows, which may be of other types, and without columns of the target's own."""
    write(shop, '"orders"')
    shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.orders (id integer, code integer, extra integer)")
    shop.execute("INSERT INTO raw.orders SELECT i, i * 7, 1 FROM generate_series(1, 30) AS i")
    shop.file("data/orders.csv", "id,code\n1,x7\n")
    text = suggestion(shop)
    assert "extra" not in text
    assert '"range", field = "code"' not in text
    assert '"not_null", field = "code"' in text


def test_the_whole_table_decides_what_is_unique(shop: ShopProject) -> None:
    path = write(shop, '"orders"')
    shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.orders (one bigint, two bigint)")
    shop.execute("INSERT INTO raw.orders SELECT i, greatest(i, 2) FROM generate_series(1, 9000) AS i")
    shop.file("data/orders.csv", "one,two\n1,7\n")
    text = suggestion(shop)
    assert '{ columns = ["one"], on_fail = "warn" },' in text
    assert 'columns = ["two"]' not in text
    path.write_text(path.read_text() + text)
    assert all(checks(shop).values())


def test_an_empty_target_has_nothing_to_say(shop: ShopProject) -> None:
    write(shop, '"orders"')
    shop.execute("CREATE SCHEMA raw; CREATE TABLE raw.orders (id integer)")
    shop.file("data/orders.csv", "id\n1\n")
    told: Any = suggestion(shop).splitlines()
    assert told[1:] == [
        "# the target has no rows: load some, and ask again",
        "# nothing to propose that the manifest has not already",
    ]
