"""Why the rows of a slice keep it from being published."""

from __future__ import annotations

from collections.abc import Sequence

from hakiri_dagster.destinations.refusals_contract import TooManyRowsRefused
from hakiri_dagster.errors import RowsRefused
from hakiri_dagster.manifest.tables import Table
from hakiri_dagster.pipeline.outcomes import Outcome
from hakiri_dagster.pipeline.set_aside import SetAside
from hakiri_dagster.planning.chunks import NULL_KEY
from hakiri_dagster.planning.parts import bare_key


def refused_for_rows(table: Table, key: str, found: SetAside, *, only_chunk: bool) -> RowsRefused | None:
    """Rows that were set aside stop a slice where the manifest says so, and where no row is left of it. Of those that
    have no cursor none may be left: some modes can load none of them."""
    if found.unfit and table.load.bad_rows == "abort":
        return _not_storable(table, found)
    if (bare_key(key) != NULL_KEY or only_chunk) and _lacks_every_row(table, found, only_chunk=only_chunk):
        return nothing_left(table, found)
    return None


def _not_storable(table: Table, found: SetAside) -> RowsRefused:
    return _refused(
        table,
        f'{found.unfit} row(s) cannot be loaded, and load.bad_rows = "abort"; the first: {found.first_unfit}',
        kept="they are kept",
        cure='mend the source, or set bad_rows = "quarantine"',
    )


def nothing_left(table: Table, found: SetAside) -> RowsRefused:
    """The source is not empty, so nobody should be told to allow for that."""
    cure = "mend the source, the rules, or the types under `columns`"
    if not _may_not_be_emptied(table):
        cure += "; validate.quarantine.allow_all = true publishes such a chunk without rows"
    return _refused(
        table,
        f"none of {found.rows} row(s) can be loaded, so nothing was changed; the first: {found.first}",
        kept="they are kept",
        cure=cure,
    )


def too_many_refused(table: Table, error: TooManyRowsRefused) -> RowsRefused:
    cure = "mend the source, or what the target asks of its rows"
    return _refused(table, f"{error.what}; nothing was changed", kept="those found are kept", cure=cure)


def _lacks_every_row(table: Table, found: SetAside, *, only_chunk: bool) -> bool:
    """Whether all that the source held was set aside, and nobody has allowed for that. Lines that may belong to any
    chunk say nothing of the one that they are kept with, unless there is no other."""
    counted = found.rows if only_chunk else found.rows - found.unplaced
    if found.rows < found.of or not counted:
        return False
    return not table.validation.quarantine.allow_all or _may_not_be_emptied(table)


def _may_not_be_emptied(table: Table) -> bool:
    return table.whole_table and table.load.fail_on_empty_source


def refused_by_gates(table: Table, outcomes: Sequence[Outcome]) -> RowsRefused | None:
    stopping = [outcome for outcome in outcomes if outcome.stops]
    if not stopping:
        return None
    message = f"nothing was published: {'; '.join(outcome.why_it_stops or '' for outcome in stopping)}"
    if any(outcome.keeps_rows for outcome in stopping):
        return _refused(table, message, kept="such rows are kept", cure="mend the source, or the rule")
    return RowsRefused(message, where=table.label, hint="mend the source, or the validator")


def _refused(table: Table, message: str, *, kept: str, cure: str) -> RowsRefused:
    place = f"{kept} in {table.quarantine_place}; " if table.validation.quarantine.enabled else ""
    return RowsRefused(message, where=table.label, hint=f"{place}{cure}")
