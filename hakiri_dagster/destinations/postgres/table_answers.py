"""What validators ask of the whole table, answered as a load would leave it."""

from __future__ import annotations

from hakiri_dagster.destinations.hooks_contract import Relation
from hakiri_dagster.destinations.postgres import fence
from hakiri_dagster.destinations.postgres.asked_rows import AskedRows
from hakiri_dagster.destinations.postgres.measuring import answered
from hakiri_dagster.destinations.postgres.modes.contract import Work
from hakiri_dagster.destinations.postgres.modes.registry import mode_of
from hakiri_dagster.quality.measures import Answers


def of_table(work: Work, place: Relation | None = None) -> Answers:
    """`place`: a relation of its own, which is not kept locked, as hooks have still to work on it."""
    load = work.load
    if not load.asked.of_table:
        return {}
    asked = place or (load.target.schema, load.target.name)
    rows = AskedRows(asked, load.target, frozenset(mode_of(load.table).added_columns(load.table)))
    if place is None:
        return answered(work.connection, rows, load.asked.of_table)
    with work.connections.transaction(load.table.label) as connection:
        fence.name_attempt(connection, load)
        return answered(connection, rows, load.asked.of_table)
