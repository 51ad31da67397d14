"""The real things that tests share: one Spark, one PostgreSQL, a fresh database and a fresh project for each test."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import hypothesis
import psycopg
import pytest
from psycopg import sql
from pyspark.sql import SparkSession

from hakiri_dagster.engine.embedded_postgres import Server, hold
from hakiri_dagster.engine.spark import open_session
from hakiri_dagster.settings import Settings

TEMPLATE = "pristine"

# No JVM of the tests lives long enough to earn back what the second compiler costs it: a third of a cold load.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")

# How long an example takes is the machine's affair.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

_database_numbers = count(1)


@pytest.fixture(scope="session")
def open_folder() -> Iterator[Path]:
    """Unlike pytest's own folders, one that PostgreSQL's account may enter when the tests run as root."""
    folder = Path(tempfile.mkdtemp(prefix="hakiri-tests-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def spark(open_folder: Path) -> Iterator[SparkSession]:
    session = open_session(Settings(), open_folder / "spark-state")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres_server(open_folder: Path) -> Iterator[Server]:
    with hold(open_folder / "postgres", durable=False) as server:
        server.ensure_database(TEMPLATE)
        yield server


@pytest.fixture
def database_url(postgres_server: Server) -> Iterator[str]:
    name = f"test_{next(_database_numbers)}"
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(TEMPLATE))
        )
        yield postgres_server.url(name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def project_dir(open_folder: Path) -> Iterator[Path]:
    project = Path(tempfile.mkdtemp(prefix="project-", dir=open_folder))
    project.chmod(0o755)
    (project / "manifests").mkdir()
    yield project
    shutil.rmtree(project, ignore_errors=True)
