"""The schema `hakiri` in the destination: created on first use, brought up to date by numbered scripts."""

from __future__ import annotations

from importlib.resources import files

from psycopg import errors

from hakiri_dagster.destinations.postgres.connection import Connection
from hakiri_dagster.errors import DestinationError

SCHEMA = "hakiri"
_LOCK = "SELECT pg_advisory_xact_lock(pg_catalog.hashtextextended('hakiri control schema', 0::bigint))"


def scripts() -> list[str]:
    folder = files("hakiri_dagster.destinations.postgres") / "migrations"
    named = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    return [entry.read_text(encoding="utf-8") for entry in named]


def ensure_control_schema(connection: Connection) -> None:
    """Commits. Safe when two processes do it at once."""
    wanted = scripts()
    version = installed_version(connection)
    if version > len(wanted):
        raise DestinationError(
            f"schema {SCHEMA} was made by a newer hakiri (version {version}, this one knows {len(wanted)})",
            hint="update hakiri-dagster",
        )
    if version < len(wanted):
        connection.execute(_LOCK)
        _install(connection, wanted)
    connection.commit()


def is_outdated(connection: Connection) -> bool:
    """It is there, and an earlier version has made it."""
    return 0 < installed_version(connection) < len(scripts())


def installed_version(connection: Connection) -> int:
    """0 where there is none. Leaves no transaction open."""
    try:
        with connection.transaction():
            row = connection.execute("SELECT max(version) FROM hakiri.version").fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return 0
    return int(row[0] or 0) if row else 0


def _install(connection: Connection, wanted: list[str]) -> None:
    present = connection.execute("SELECT to_regnamespace('hakiri')").fetchone()
    if present is None or present[0] is None:
        connection.execute("CREATE SCHEMA hakiri")
    connection.execute("CREATE TABLE IF NOT EXISTS hakiri.version (version integer PRIMARY KEY)")
    row = connection.execute("SELECT coalesce(max(version), 0) FROM hakiri.version").fetchone()
    done = int(row[0]) if row else 0
    for number, script in enumerate(wanted[done:], start=done + 1):
        connection.execute(script.encode())
        connection.execute("INSERT INTO hakiri.version VALUES (%s)", (number,))
