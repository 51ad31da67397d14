"""`hakiri verify`: rows that were lost, changed or deleted are found by chunk, and loaded again if asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hakiri_dagster.cli.verify_command import Repair, verify_pipeline
from hakiri_dagster.pipeline.verification import VerifyOptions
from tests.integration.orchestration.conftest import ShopProject

MODES = ("append", "upsert", "incremental_watermark", "scd2")
WHOLE = ("truncate", "blue_green", "delete_missing")


def table_of(mode: str) -> dict[str, Any]:
    load: dict[str, Any] = {"mode": mode}
    if mode == "incremental_watermark":
        load["watermark_column"] = "day"
    keyed = {"primary_key": ["id"]} if mode in ("upsert", "scd2", "delete_missing") else {}
    return {"name": mode, "incremental": "day", "load": load} | keyed


@pytest.fixture
def days(shop: ShopProject) -> ShopProject:
    """One source for a table of each mode: views of it, with ten rows a month and two without a cursor."""
    shop.execute(
        "CREATE SCHEMA src; CREATE TABLE src.days (id int PRIMARY KEY, v text, day date);"
        "INSERT INTO src.days SELECT n, 'v' || n, date '2024-01-01' + (n % 10) + make_interval(months => n / 10)"
        " FROM generate_series(0, 39) AS n;"
        "INSERT INTO src.days VALUES (100, 'none', NULL), (101, 'none', NULL);"
        + "".join(f"CREATE VIEW src.{mode} AS SELECT * FROM src.days;" for mode in (*MODES[:-1], *WHOLE))
        + "CREATE VIEW src.scd2 AS SELECT * FROM src.days WHERE day IS NOT NULL"
    )
    source = {"connector": "postgres", "config": {"url": shop.url, "schema": "src"}}
    shop.manifest({"id": "shop", "source": source, "tables": [table_of(mode) for mode in (*MODES, *WHOLE)]})
    return shop


class Verify:
    def __init__(self, shop: ShopProject, capsys: pytest.CaptureFixture[str]) -> None:
        self._shop, self._capsys = shop, capsys
        self.exit_code = 0

    def __call__(
        self, table: str | None = None, *, repair: bool = False, deletes: bool = False, **options: Any
    ) -> dict[str, Any]:
        self._capsys.readouterr()
        self.exit_code = verify_pipeline(
            self._shop.root, "shop", table, VerifyOptions(**options), Repair(repair, deletes), as_json=True
        )
        document = json.loads(self._capsys.readouterr().out)
        return {found["table"]: found for found in document["tables"]}


@pytest.fixture
def verify(days: ShopProject, capsys: pytest.CaptureFixture[str]) -> Verify:
    return Verify(days, capsys)


def differences(found: dict[str, Any]) -> dict[str, dict[str, int]]:
    names = ("missing", "extra", "changed", "deleted_at_source", "moved", "not_loaded")
    return {one["chunk"]: {name: one[name] for name in names if one[name]} for one in found["differences"]}


def load_ids(shop: ShopProject, table: str) -> dict[Any, int]:
    return dict(shop.rows(f"SELECT id, _hakiri_load_id FROM raw.{table}"))


def test_what_was_changed_behind_its_back_is_found_and_repaired_in_every_mode(
    days: ShopProject, verify: Verify
) -> None:
    days.apply()
    assert {name: found["status"] for name, found in verify(digest=True).items()} == dict.fromkeys(
        (*MODES, *WHOLE), "same"
    )
    assert verify.exit_code == 0
    before = {mode: load_ids(days, mode) for mode in MODES}
    for mode in (*MODES, *WHOLE):
        days.execute(f"DELETE FROM raw.{mode} WHERE id IN (11, 12); UPDATE raw.{mode} SET v = 'x' WHERE id = 25")

    by_count = verify()
    assert verify.exit_code == 1
    for mode in MODES:
        assert differences(by_count[mode]) == {"2024-02": {"missing": 2}}, "counts do not show changed values"
    for mode in WHOLE:
        assert differences(by_count[mode]) == {"full": {"missing": 2}}
    found = verify(digest=True, repair=True)
    assert verify.exit_code == 0, "all that was found is pending"
    keyless = {"missing": 1, "deleted_at_source": 1}
    for mode in MODES:
        changed = {"changed": 1} if mode in ("upsert", "scd2") else keyless
        assert differences(found[mode]) == {"2024-02": {"missing": 2}, "2024-03": changed}
        assert found[mode]["pending"] == ["2024-02", "2024-03"]

    applied = days.apply()
    assert {mode: applied[mode]["chunks"]["done"] for mode in MODES} == dict.fromkeys(MODES, 2)
    assert {name: found["status"] for name, found in verify(digest=True).items()} == dict.fromkeys(
        (*MODES, *WHOLE), "same"
    )
    for mode in MODES:
        after = load_ids(days, mode)
        untouched = [n for n in range(40) if n // 10 not in (1, 2)]
        assert {n: after[n] for n in untouched} == {n: before[mode][n] for n in untouched}
