"""Verdicts that count rows which are in the way."""

from __future__ import annotations

from hakiri_dagster.quality.measures import Answer, Violations
from hakiri_dagster.quality.validators.contract import Verdict
from hakiri_dagster.quality.validators.numbers import whole


def of_violations(rows: Answer, found: Answer, what: str) -> Verdict:
    if not isinstance(found, Violations):
        raise TypeError(f"{found!r} counts no violations")
    told = f"{found.rows:,} of {whole(rows):,} row(s) {what}"
    observed = f"{told}: {found}" if found.few else told
    return Verdict(found.rows == 0, observed, {"violations": found.rows, "rows": whole(rows)})
