from __future__ import annotations

from hakiri_dagster.cli.tally import Tally
from tests.integration.destinations.postgres.scenario import make_table


def test_the_start_of_the_engine_is_not_the_tables_time() -> None:
    table = make_table("append")
    tally = Tally()
    tally.waited_for_engine(table, 4.0)
    tally.took(table, 5.5)
    assert tally.of(table).document("orders")["duration_s"] == 1.5
