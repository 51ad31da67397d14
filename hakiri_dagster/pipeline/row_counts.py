"""`load.expected_row_count_delta`: a load far larger or smaller than the ones before it is told, and never fails."""

from __future__ import annotations

from hakiri_dagster.audit.alerts import Alert
from hakiri_dagster.manifest.load_spec import RowCountDeltaSpec
from hakiri_dagster.pipeline.alerts import not_failing, raise_alert
from hakiri_dagster.pipeline.survey import Survey
from hakiri_dagster.pipeline.way import Way

FEWEST_RUNS = 3
"""Of fewer, a mean says nothing."""


def tell_of_an_unusual_row_count(way: Way, survey: Survey) -> None:
    """What is compared are whole runs that went well: of one that failed in part some rows are missing. A run without
    rows has none to compare; a table that is loaded whole and comes out empty is compared all the same."""
    band, totals = way.table.load.expected_row_count_delta, way.totals
    loaded = totals.rows > 0 or (totals.chunks > 0 and survey.shape == "full")
    if band is None or totals.errors or not loaded:
        return
    not_failing(way, lambda: _compare(way, band))


def _compare(way: Way, band: RowCountDeltaSpec) -> None:
    table, observed = way.table, way.totals.rows
    before = way.audit.runs.row_counts(table.pipeline_id, table.name, band.window_runs)
    if len(before) < FEWEST_RUNS:
        return
    mean = sum(before) / len(before)
    ratio = observed / mean
    if not band.min_ratio <= ratio <= band.max_ratio:
        raise_alert(way, _alert(observed, mean, ratio, len(before), band))


def _alert(observed: int, mean: float, ratio: float, runs: int, band: RowCountDeltaSpec) -> Alert:
    return Alert(
        "row_count_anomaly",
        f"{observed:,} rows were loaded, {ratio:.3g} times the mean of the last {runs} runs ({mean:,.1f}); "
        f"expected were {band.min_ratio:g} to {band.max_ratio:g} times",
        details={
            "observed": observed,
            "mean": mean,
            "ratio": ratio,
            "runs": runs,
            "min_ratio": band.min_ratio,
            "max_ratio": band.max_ratio,
        },
    )
