from __future__ import annotations

from pathlib import Path

import pytest

from hakiri_dagster.cli.opening import opened_project
from hakiri_dagster.errors import UsageError
from hakiri_dagster.settings import Settings


def test_an_empty_environment_gives_the_defaults() -> None:
    assert Settings.from_env({}) == Settings()


def test_a_lease_lasts_ten_minutes() -> None:
    assert Settings().lease_ttl_seconds == 600


def test_an_empty_value_means_the_default() -> None:
    empty = dict.fromkeys(
        ["HAKIRI_SPARK", "HAKIRI_LEASE_TTL", "HAKIRI_RETRIES", "HAKIRI_RETRY_BASE", "HAKIRI_SPARK_CONF"], ""
    )
    assert Settings.from_env(empty) == Settings()


def test_values_are_read_as_what_they_are() -> None:
    told = {"HAKIRI_LEASE_TTL": "60", "HAKIRI_RETRIES": "0", "HAKIRI_RETRY_BASE": "0.5"}
    settings = Settings.from_env({**told, "HAKIRI_SPARK_CONF": "spark.a=1 spark.b='x y=z'"})
    assert (settings.lease_ttl_seconds, settings.retries, settings.retry_base_seconds) == (60, 0, 0.5)
    assert settings.spark_conf == {"spark.a": "1", "spark.b": "x y=z"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("HAKIRI_LEASE_TTL", "ten"),
        ("HAKIRI_LEASE_TTL", "0"),
        ("HAKIRI_RETRIES", "-1"),
        ("HAKIRI_RETRY_BASE", "soon"),
        ("HAKIRI_RETRY_BASE", "nan"),
        ("HAKIRI_RETRY_BASE", "inf"),
    ],
)
def test_a_wrong_number_is_told_with_its_name(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is '{text}'"):
        Settings.from_env({name: text})


@pytest.mark.parametrize("text", ["spark.a", "=x", "spark.a=1 'open"])
def test_wrong_spark_settings_are_told_without_their_values(text: str) -> None:
    with pytest.raises(UsageError, match="HAKIRI_SPARK_CONF") as caught:
        Settings.from_env({"HAKIRI_SPARK_CONF": f"spark.password=hunter2 {text}"})
    assert "hunter2" not in str(caught.value)


def test_an_unknown_log_level_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAKIRI_LOG", "loud")
    with pytest.raises(UsageError, match="HAKIRI_LOG is 'loud'"):
        opened_project(tmp_path)
