from __future__ import annotations

from contextlib import closing

from psycopg.conninfo import make_conninfo

from hakiri_dagster.destinations.postgres.connection import Connections


def setting(url: str, options: str, name: str) -> str:
    with closing(Connections(make_conninfo(url, options=options), label="warehouse").open()) as connection:
        row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return str(row[0])


def test_a_url_cannot_change_what_the_way_rows_are_written_depends_on(database_url: str) -> None:
    theirs = "-c TimeZone=Asia/Tokyo -c datestyle=SQL,DMY -c bytea_output=escape"
    assert setting(database_url, theirs, "timezone") == "UTC"
    assert setting(database_url, theirs, "datestyle").startswith("ISO")
    assert setting(database_url, theirs, "bytea_output") == "hex"


def test_a_url_may_set_its_own_timeouts_and_search_path(database_url: str) -> None:
    theirs = "-c lock_timeout=5s -c statement_timeout=7s -c search_path=shop"
    assert setting(database_url, theirs, "lock_timeout") == "5s"
    assert setting(database_url, theirs, "statement_timeout") == "7s"
    assert setting(database_url, theirs, "search_path") == "shop"
    assert setting(database_url, "", "lock_timeout") == "1min"
