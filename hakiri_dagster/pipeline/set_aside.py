"""The rows of a slice that are not loaded: those that its workers set aside, and those that the destination refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from hakiri_dagster.destinations.contract import BadRow
from hakiri_dagster.destinations.refusals_contract import RefusedRows
from hakiri_dagster.pipeline.passes import StagedSlice
from hakiri_dagster.pipeline.retries import retried
from hakiri_dagster.pipeline.unseen import told_of
from hakiri_dagster.pipeline.way import Way


@dataclass(frozen=True, slots=True)
class SetAside:
    """`of` the rows that were read `rows` were set aside. `unplaced` of them may belong to any slice; of those `unfit`
    no rule says so: they cannot be read, or not be stored. `unseen`: how many values of rows have no column, by the
    names of their members. `truncated`: how many timestamps of the other rows were cut to microseconds, by column."""

    rows: int
    of: int
    unplaced: int
    unfit: int
    first: str | None
    first_unfit: str | None
    unseen: Mapping[str, int] = field(default_factory=dict)
    truncated: Mapping[str, int] = field(default_factory=dict)


def set_aside(slice_: StagedSlice, refused: RefusedRows | None = None) -> SetAside:
    report = slice_.report
    by_destination, first_refused = (0, None) if refused is None else (refused.rows, refused.first)
    return SetAside(
        rows=report.bad_rows + by_destination,
        of=report.rows + report.bad_rows,
        unplaced=report.unplaced,
        unfit=report.unfit + by_destination,
        first=report.bad_sample or first_refused,
        first_unfit=report.unfit_sample or first_refused,
        unseen=report.unseen,
        truncated=report.truncated,
    )


def keep_set_aside(way: Way, slice_: StagedSlice, refused: RefusedRows | None = None) -> SetAside:
    """In quarantine, whatever becomes of the others; and tells of them."""
    table, report, found = way.table, slice_.report, set_aside(slice_, refused)
    kept = table.validation.quarantine.enabled
    if found.rows and not (kept and found.unfit and table.load.bad_rows == "abort"):
        where = f"kept in {table.quarantine_place}" if kept else "not kept, because quarantine is off"
        text = f"{found.rows} row(s) set aside, {where}; the first: {found.first}"
        way.observer.warned(table, f"chunk {slice_.claimed.key}: {text}")
    if report.discarded:
        text = (
            f'{report.discarded} value(s) discarded, as contract = "discard_value"; the first: {report.discard_sample}'
        )
        way.observer.warned(table, f"chunk {slice_.claimed.key}: {text}")
    unseen = told_of(found.unseen)
    if unseen is not None:
        way.observer.warned(table, f"chunk {slice_.claimed.key}: {unseen}")
    if kept:
        retried(way, lambda: way.destination.quarantine(slice_.load, _rows(slice_, refused)))
    return found


def _rows(slice_: StagedSlice, refused: RefusedRows | None) -> Iterator[BadRow]:
    yield from slice_.bad_rows()
    for row in refused or ():
        yield replace(row, source_file=slice_.path_of(row.file_hash))
