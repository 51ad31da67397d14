"""row_count_matches_source: what was read is what the source holds, counted once more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from typing_extensions import override

from hakiri_dagster.manifest.validator_spec import RowCountMatchesSourceValidator
from hakiri_dagster.quality.measures import Answers, Measure, Rows, RowsAtSource, RowsSetAside
from hakiri_dagster.quality.validators.contract import Kind, Verdict
from hakiri_dagster.quality.validators.numbers import whole


class MatchesSource(Kind[RowCountMatchesSourceValidator]):
    @override
    def asks(self, validator: RowCountMatchesSourceValidator) -> Sequence[Measure]:
        return Rows(), RowsSetAside(), RowsAtSource()

    @override
    def verdict(self, validator: RowCountMatchesSourceValidator, answers: Answers, now: datetime) -> Verdict:
        rows, aside, source = (whole(answers[measure]) for measure in self.asks(validator))
        told = f" and {aside:,} set aside" if aside else ""
        observed = f"{rows:,} row(s) here{told}, {source:,} at the source"
        return Verdict(rows + aside == source, observed, {"rows": rows, "rows_at_source": source})

    @override
    def shown(self, validator: RowCountMatchesSourceValidator) -> str:
        return "as many rows as the source holds"
