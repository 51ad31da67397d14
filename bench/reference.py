"""What we are compared with: `psql \\copy`, hand-written SQL and dlt, on the same server and the same rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from tpch import COLUMNS, KEYS, Data

from hakiri_dagster.engine.embedded_postgres import Server
from hakiri_dagster.engine.java import ensure_java
from hakiri_dagster.engine.postgres_account import reachable_binaries

BENCH = Path(__file__).resolve().parent
DATABASE = "bench"
_DLT_HOME = BENCH / ".venv-dlt"
_GX_HOME = BENCH / ".venv-gx"
_GX_PACKAGES = ("great_expectations", "pyspark", "setuptools")
_DLT_PACKAGES = ("dlt[postgres,parquet]", "adbc-driver-postgresql", "adbc-driver-manager", "pyarrow")


class Warehouse:
    def __init__(self, server: Server) -> None:
        server.ensure_database(DATABASE)
        self.url = server.url(DATABASE)
        self._server = server

    @property
    def postmaster(self) -> int:
        return int((self._server.home.data / "postmaster.pid").read_text().split()[0])

    def run(self, statement: sql.Composable) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)

    def count(self, schema: str, table: str) -> int:
        with psycopg.connect(self.url) as connection:
            row = connection.execute(
                sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, table))
            ).fetchone()
        assert row is not None
        return int(row[0])

    def size(self, schema: str, table: str) -> int:
        with psycopg.connect(self.url) as connection:
            name = sql.Identifier(schema, table).as_string()
            row = connection.execute("SELECT pg_relation_size(%s::regclass)", (name,)).fetchone()
        assert row is not None
        return int(row[0])

    def forget(self, schema: str) -> None:
        self.run(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))

    def settle(self) -> None:
        """What the work before has left to be written is not the next one's to pay for."""
        self.run(sql.SQL("CHECKPOINT"))

    def analyze(self, schema: str, table: str) -> None:
        """As autovacuum leaves a table that has rested for a while."""
        self.run(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(schema, table)))

    def create(self, schema: str, table: str, *, keyed: bool) -> None:
        self.run(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        columns = sql.SQL(COLUMNS[table])  # our own constant text
        key = sql.SQL(", PRIMARY KEY ({})").format(_names(KEYS[table])) if keyed else sql.SQL("")
        self.run(sql.SQL("CREATE TABLE {} ({}{})").format(sql.Identifier(schema, table), columns, key))

    @property
    def log(self) -> Path:
        return self._server.home.log

    def psql(self, *commands: str) -> subprocess.Popen[bytes]:
        flags = [flag for command in commands for flag in ("-c", command)]
        return self._client("psql", "-Xq", "-v", "ON_ERROR_STOP=1", *flags)

    def pgbench(self, *arguments: str, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        return self._client("pgbench", *arguments, PGOPTIONS=options)

    def _client(self, name: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        binary = reachable_binaries(self._server.home.account) / name
        return subprocess.Popen(
            [binary, *arguments],
            env={**os.environ, **_environment(self.url), **environment},
            stdout=subprocess.DEVNULL,
        )


def copy_seconds(warehouse: Warehouse, data: Data) -> float:
    """The yardstick: lineitem as CSV from two files at once into one table."""
    warehouse.forget("yardstick")
    warehouse.create("yardstick", "lineitem", keyed=False)
    halves = data.halves("lineitem")
    warehouse.settle()
    return _copied(warehouse, "yardstick", "lineitem", halves)


def keyed_copy_seconds(warehouse: Warehouse, data: Data) -> float:
    """The yardstick, and then the primary key."""
    copied = copy_seconds(warehouse, data)
    key = sql.SQL("ALTER TABLE {} ADD PRIMARY KEY ({})").format(
        sql.Identifier("yardstick", "lineitem"), _names(KEYS["lineitem"])
    )
    began = time.perf_counter()
    warehouse.run(key)
    return copied + time.perf_counter() - began


def copied_again_seconds(warehouse: Warehouse, schema: str, table: str, work_dir: Path) -> float:
    """The rows that a table has, into one of the same shape with the same indexes."""
    warehouse.forget("by_hand")
    warehouse.run(sql.SQL("CREATE SCHEMA by_hand"))
    place, again = sql.Identifier(schema, table), sql.Identifier("by_hand", table)
    warehouse.run(sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)").format(again, place))
    with tempfile.TemporaryDirectory(dir=work_dir) as folder:
        rows = Path(folder) / "rows"
        _finished(warehouse.psql(f"\\copy {place.as_string()} to '{rows}'"))
        warehouse.settle()
        started = time.perf_counter()
        _finished(warehouse.psql(f"\\copy {again.as_string()} from '{rows}'"))
        seconds = time.perf_counter() - started
    warehouse.forget("by_hand")
    return seconds


def upsert_seconds(warehouse: Warehouse, data: Data, table: str, one_in: int) -> float:
    """What a careful person would write: COPY into a temporary table, INSERT … ON CONFLICT, one transaction."""
    warehouse.forget("by_hand")
    warehouse.create("by_hand", table, keyed=True)
    _copied(warehouse, "by_hand", table, data.halves(table))
    return _merge_seconds(warehouse, data, table, one_in, [_upsert(table)])


def scd2_seconds(warehouse: Warehouse, data: Data, table: str, one_in: int) -> float:
    """The same with a history: what differs from the current version is closed, and inserted as the new one."""
    warehouse.forget("by_hand")
    warehouse.create("by_hand", table, keyed=False)
    _copied(warehouse, "by_hand", table, data.halves(table))
    for statement in _with_versions(table):
        warehouse.run(statement)
    return _merge_seconds(warehouse, data, table, one_in, _scd2(table))


def _merge_seconds(warehouse: Warehouse, data: Data, table: str, one_in: int, statements: Sequence[str]) -> float:
    warehouse.run(sql.SQL("VACUUM ANALYZE {}").format(sql.Identifier("by_hand", table)))
    _, changes = data.changed(table, one_in)
    warehouse.settle()
    started = time.perf_counter()
    _finished(
        warehouse.psql(
            "BEGIN",
            f"CREATE TEMP TABLE changes ({COLUMNS[table]}) ON COMMIT DROP",
            f"\\copy changes from '{changes}' with (format csv)",
            *statements,
            "COMMIT",
        )
    )
    return time.perf_counter() - started


def dlt_seconds(warehouse: Warehouse, data: Data, table: str) -> float:
    """dlt as its own documentation advises for speed: Parquet files, loaded through ADBC."""
    _install(_DLT_HOME, _DLT_PACKAGES)
    warehouse.forget("by_dlt")
    warehouse.settle()
    done = subprocess.run(
        [_DLT_HOME / "bin" / "python", BENCH / "dlt_load.py", data.parquet(table), table],
        env={**os.environ, "BENCH_URL": warehouse.url},
        stdout=subprocess.PIPE,
        check=True,
    )
    seconds: float = json.loads(done.stdout.splitlines()[-1])["seconds"]
    warehouse.forget("by_dlt")
    return seconds


def _copied(warehouse: Warehouse, schema: str, table: str, files: Sequence[Path]) -> float:
    started = time.perf_counter()
    for process in [warehouse.psql(f"\\copy {schema}.{table} from '{file}' with (format csv)") for file in files]:
        _finished(process)
    return time.perf_counter() - started


def _finished(process: subprocess.Popen[bytes]) -> None:
    if process.wait() != 0:
        raise SystemExit("psql failed; its message is above")


def _with_versions(table: str) -> list[sql.Composed]:
    place = sql.Identifier("by_hand", table)
    columns = sql.SQL(
        "ALTER TABLE {} ADD valid_from timestamptz NOT NULL DEFAULT now(), ADD valid_to timestamptz, "
        "ADD is_current boolean NOT NULL DEFAULT true"
    )
    return [
        columns.format(place),
        sql.SQL("ALTER TABLE {} ADD PRIMARY KEY ({}, valid_from)").format(place, _names(KEYS[table])),
    ]


def _scd2(table: str) -> list[str]:
    same_key = sql.SQL(" AND ").join(sql.SQL("t.{0} = c.{0}").format(sql.Identifier(k)) for k in KEYS[table])
    others = [name for name in _columns(table) if name not in KEYS[table]]
    differs = sql.SQL(" OR ").join(sql.SQL("t.{0} IS DISTINCT FROM c.{0}").format(sql.Identifier(o)) for o in others)
    close = sql.SQL(
        "UPDATE {} AS t SET valid_to = now(), is_current = false FROM changes AS c WHERE {} AND t.is_current AND ({})"
    )
    insert = sql.SQL(
        "INSERT INTO {0} SELECT c.*, now(), NULL, true FROM changes AS c "
        "WHERE NOT EXISTS (SELECT FROM {0} AS t WHERE {1} AND t.is_current)"
    )
    place = sql.Identifier("by_hand", table)
    return [close.format(place, same_key, differs).as_string(), insert.format(place, same_key).as_string()]


def _upsert(table: str) -> str:
    others = [name for name in _columns(table) if name not in KEYS[table]]
    sets = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in others)
    return (
        sql.SQL("INSERT INTO {} SELECT * FROM changes ON CONFLICT ({}) DO UPDATE SET {}")
        .format(sql.Identifier("by_hand", table), _names(KEYS[table]), sets)
        .as_string()
    )


def _columns(table: str) -> list[str]:
    return [line.split()[0] for line in COLUMNS[table].replace("NOT NULL", "").split(", ")]


def _names(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _environment(url: str) -> dict[str, str]:
    parameters = psycopg.conninfo.conninfo_to_dict(url)
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    return {variable: str(parameters[name]) for name, variable in names.items()}


def expectations_seconds(data: Data, table: str, rules: Sequence[Mapping[str, Any]]) -> float:
    """Great Expectations, in a Python of its own, on a Spark that runs already."""
    _install(_GX_HOME, _GX_PACKAGES)
    done = subprocess.run(
        [_GX_HOME / "bin" / "python", BENCH / "gx_check.py", data.parquet(table), json.dumps(list(rules))],
        env={**os.environ, "JAVA_HOME": str(ensure_java())},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    told = json.loads(done.stdout.decode().splitlines()[-1])
    if not told["success"] or told["asked"] != len(rules):
        raise SystemExit(f"Great Expectations does not find what is there: {told}")
    return float(told["seconds"])


def load_by_hand(warehouse: Warehouse, data: Data, schema: str, table: str) -> None:
    """As a table that is there: with statistics."""
    warehouse.create(schema, table, keyed=False)
    _copied(warehouse, schema, table, data.halves(table))
    warehouse.run(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(schema, table)))


def _install(home: Path, packages: Sequence[str]) -> None:
    if (home / "installed").exists():
        return
    uv = Path(sys.executable).parent / "uv"
    command = str(uv) if uv.exists() else "uv"
    python = home / "bin" / "python"
    subprocess.run([command, "venv", "--quiet", "--clear", "--python", sys.executable, home], check=True)
    subprocess.run([command, "pip", "install", "--quiet", "--python", python, *packages], check=True)
    (home / "installed").touch()
