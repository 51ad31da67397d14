"""What Dagster makes of the settings that a project gives it."""

from __future__ import annotations

import pytest

from hakiri_dagster.orchestration.dagster_home import opened_instance, psycopg2_url
from tests.integration.orchestration.conftest import ShopProject


def test_ticks_of_sensors_and_of_schedules_do_not_wait_for_each_other(
    shop: ShopProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many at once as there are sensors of ours, and one more."""
    for name in ("DAGSTER_HOME", "HAKIRI_DAGSTER_URL", "HAKIRI_PROJECT"):
        monkeypatch.setenv(name, "")  # so that what opening it sets is forgotten
    with opened_instance(shop.root, psycopg2_url(shop.url)) as instance:
        for kind in ("sensors", "schedules"):
            assert instance.get_settings(kind) == {"use_threads": True, "num_workers": 8}
