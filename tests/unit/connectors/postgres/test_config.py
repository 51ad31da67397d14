from __future__ import annotations

from typing import Any

import pytest

from hakiri_dagster.connectors.postgres import POSTGRES
from hakiri_dagster.connectors.postgres.config import SourceConfig

URL = "postgresql://reader:s3cr3t@db.example:5433/shop"


def told(table: str = "orders", path: str | None = None, **config: Any) -> list[str]:
    return list(POSTGRES.check_config({"url": URL, **config}, table, path))


def test_good_settings_have_no_problems() -> None:
    assert told() == []
    assert told(schema="sales", max_connections=2, text_columns=["price"]) == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"shema": "x"}, "unknown setting `shema`; did you mean `schema`?"),
        ({"schema": ""}, "`schema` must be the name of a schema"),
        ({"max_connections": 0}, "`max_connections` must be a number from 1 to 64"),
        ({"max_connections": True}, "`max_connections` must be a number from 1 to 64"),
        ({"text_columns": "price"}, "`text_columns` must be a list of column names"),
        ({"row_security": False}, '`row_security` must be "on" or "off"'),
        ({"url": "mysql://h/d"}, "`url` must be like `postgresql://user:password@host:5432/database`"),
        ({"url": 5}, "`url` must be like `postgresql://user:password@host:5432/database`"),
        ({"url": "postgresql://u:s3%zzcr3t@h/d"}, "`url` cannot be parsed"),
        ({"url": "postgresql://u:s3@cr3t@h/d"}, "`url` has an `@` in user or password"),
    ],
)
def test_a_wrong_setting_is_told_without_the_url(config: dict[str, Any], expected: str) -> None:
    [problem] = told(**config)
    assert problem.startswith(expected)
    assert "cr3t" not in problem


def test_a_path_and_a_table_without_a_name_are_told() -> None:
    assert len(told(table="", path="x.csv")) == 2


def test_the_place_and_the_lineage_say_where_and_not_how_to_get_in() -> None:
    config = SourceConfig.of({"url": URL, "schema": "sales"})
    assert config.place == "db.example:5433/shop"
    assert config.lineage == ("db.example:5433", "shop", "sales")
    assert "s3cr3t" not in repr(config)
    assert config.without_secrets("oops s3cr3t") == "oops ***"


def test_the_embedded_server_has_a_name_before_it_is_up() -> None:
    assert told(url=None) == []
    assert SourceConfig.of({"url": None, "schema": "sales"}).lineage == ("embedded", "sales")


def test_a_connection_attempt_ends_unless_the_url_says_otherwise() -> None:
    assert "connect_timeout=15" in SourceConfig.of({"url": URL}).conninfo
    assert "connect_timeout=3" in SourceConfig.of({"url": URL + "?connect_timeout=3"}).conninfo
