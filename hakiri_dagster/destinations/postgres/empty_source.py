"""The guard of modes that replace all rows: a source that suddenly has none is rather broken than empty."""

from __future__ import annotations

from hakiri_dagster.destinations.contract import LoadAnswers
from hakiri_dagster.destinations.postgres.modes.contract import Work
from hakiri_dagster.destinations.postgres.modes.registry import mode_of
from hakiri_dagster.destinations.postgres.table_answers import of_table
from hakiri_dagster.destinations.refusals_contract import EmptySource


def refuse_empty_source(work: Work) -> None:
    """To be asked before the first statement that destroys something. Validators are asked all the same: of the rows
    that this load has in the target, which are none."""
    table, target = work.load.table, work.load.target
    if not (work.blocks.empty and table.whole_table and table.load.fail_on_empty_source):
        return
    work.ask_candidate((target.schema, target.name), load_id=work.load.fence.load_id)
    raise EmptySource(
        f"the source returned 0 rows; load mode {table.mode} would {mode_of(table).what_no_rows_do}, "
        "so nothing was changed. Set fail_on_empty_source = false to allow it.",
        LoadAnswers(work.answers, of_table(work)),
        where=table.label,
    )
