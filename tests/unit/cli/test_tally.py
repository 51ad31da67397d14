from __future__ import annotations

from hakiri_dagster.cli.tally import Tally
from hakiri_dagster.errors import RowsRefused
from tests.integration.destinations.postgres.scenario import make_table


def test_the_start_of_the_engine_is_not_the_tables_time() -> None:
    table = make_table("append")
    tally = Tally()
    tally.waited_for_engine(table, 4.0)
    tally.took(table, 5.5)
    assert tally.of(table).document("orders")["duration_s"] == 1.5


def test_a_chunk_that_failed_is_told_without_the_name_of_its_table_which_is_told_before() -> None:
    table = make_table("append")
    tally = Tally()
    tally.failed(table, "2024-04", RowsRefused("nothing was published", where=table.label, hint="mend the source"))
    assert tally.of(table).error == "chunk 2024-04: nothing was published\n  hint: mend the source"
    elsewhere = Tally()
    elsewhere.failed(table, "2024-04", RowsRefused("nothing was published", where="customers.csv"))
    assert elsewhere.of(table).error == "chunk 2024-04: customers.csv: nothing was published"
