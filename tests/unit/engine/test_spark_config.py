from __future__ import annotations

from pathlib import Path

import pytest

from hakiri_dagster.engine.spark_config import LOG4J_FILE, default_driver_memory, is_remote, spark_config
from hakiri_dagster.settings import Settings

STATE = Path("/project with space/.hakiri")
GIB = 1 << 30


def test_a_local_session_keeps_to_this_machine_and_to_the_projects_folder() -> None:
    config = spark_config(Settings(), STATE)
    assert config["spark.master"] == "local[*]"
    assert config["spark.driver.bindAddress"] == "127.0.0.1"
    assert config["spark.local.dir"].startswith(str(STATE))
    assert config["spark.sql.warehouse.dir"].startswith(str(STATE))


def test_paths_with_spaces_reach_the_jvm_in_one_piece() -> None:
    options = spark_config(Settings(), STATE)["spark.driver.extraJavaOptions"]
    assert f'"-Dhakiri.spark.log={STATE}/spark/spark.log"' in options


@pytest.mark.parametrize("master", ["spark://head:7077", "yarn", "k8s://https://api:6443"])
def test_a_clusters_driver_can_be_reached_and_executors_use_their_own_disks(master: str) -> None:
    config = spark_config(Settings(spark=master), STATE)
    assert config["spark.master"] == master
    assert "spark.driver.bindAddress" not in config
    assert "spark.local.dir" not in config
    assert "spark.pyspark.python" not in config


def test_a_remote_session_is_given_nothing_that_only_a_starting_jvm_could_heed() -> None:
    settings = Settings(spark="sc://host:15002")
    config = spark_config(settings, STATE)
    assert is_remote(settings)
    assert config.pop("spark.remote") == "sc://host:15002"
    assert all(key.startswith("spark.sql.") for key in config)
    assert "spark.sql.warehouse.dir" not in config


@pytest.mark.parametrize("spark", ["local[2]", "yarn", "sc://host"])
def test_times_are_utc_and_names_case_sensitive_wherever_spark_runs(spark: str) -> None:
    config = spark_config(Settings(spark=spark), STATE)
    assert config["spark.sql.session.timeZone"] == "UTC"
    assert config["spark.sql.caseSensitive"] == "true"


def test_the_operators_own_settings_win() -> None:
    settings = Settings(spark_conf={"spark.ui.enabled": "true", "spark.x": "y"}, spark_driver_memory="3g")
    config = spark_config(settings, STATE)
    assert config["spark.ui.enabled"] == "true"
    assert config["spark.x"] == "y"
    assert config["spark.driver.memory"] == "3g"


@pytest.mark.parametrize(("machine", "expected"), [(2 * GIB, "512m"), (6 * GIB, "768m"), (64 * GIB, "1024m")])
def test_the_drivers_memory_follows_the_machine_within_bounds(machine: int, expected: str) -> None:
    assert default_driver_memory(machine) == expected


def test_the_log_settings_are_installed_with_the_package() -> None:
    assert LOG4J_FILE.is_file()
