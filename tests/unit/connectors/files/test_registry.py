from __future__ import annotations

import pytest

from hakiri_dagster.connectors.files.connector import FILES
from hakiri_dagster.connectors.registry import connector
from hakiri_dagster.errors import UsageError


def test_connectors_are_found_by_name():
    assert connector("files") is FILES
    assert connector("postgres").check_config({}, "orders", None) is not None


def test_an_unknown_connector_is_told_with_those_there_are():
    with pytest.raises(UsageError, match=r"no connector `ftp`(.|\n)*`files`, `postgres` and `rest`"):
        connector("ftp")
