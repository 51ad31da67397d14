from __future__ import annotations

import pytest

from hakiri_dagster.manifest.load_spec import BackupSpec
from tests.unit.manifest.conftest import Load, Read
from tests.unit.manifest.samples import files_pipeline


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("true", BackupSpec(keep=1)),
        ("{ keep = 3 }", BackupSpec(keep=3)),
        ("{}", BackupSpec(keep=1)),
        ("false", None),
    ],
)
def test_it_says_how_many_copies_are_kept(load: Load, written: str, meant: BackupSpec | None) -> None:
    text = files_pipeline(more=f'backupBeforeLoad = {written}\nloadMode = "truncate"\n')
    assert load(None, {"shop.toml": text}).tables[0].load.backup_before_load == meant


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{ keep = 0 }", "`load.backup_before_load.keep` must be at least 1"),
        ("{ kep = 2 }", "unknown key `kep` in `load.backup_before_load`"),
        ("3", "`load.backup_before_load`: must be true, false or a table"),
        ('"yes"', "`load.backup_before_load`: must be true, false or a table"),
    ],
)
def test_nonsense_is_told(read: Read, written: str, message: str) -> None:
    text = files_pipeline(more=f'load = {{ mode = "truncate", backup_before_load = {written} }}\n')
    (problem,) = read(None, {"shop.toml": text}).problems
    assert problem.message == message


def test_a_table_may_do_without(load: Load) -> None:
    text = """\
id = "shop"
source = { connector = "files", config = { path = "data" } }
tables = ["a", { name = "b", load = { backup_before_load = false } }]
load = { mode = "truncate", backup_before_load = { keep = 2 } }
"""
    a, b = load(None, {"shop.toml": text}).tables
    assert (a.load.backup_before_load, b.load.backup_before_load) == (BackupSpec(keep=2), None)


def test_where_rows_are_only_added_it_is_said_to_have_no_effect(read: Read) -> None:
    text = files_pipeline(more="backup_before_load = true\n")
    (warning,) = read(None, {"shop.toml": text}).warnings
    assert "`backup_before_load` has no effect, as load mode `append` only adds rows" in warning.message
