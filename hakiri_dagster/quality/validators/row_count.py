"""row_count: there are neither too few rows nor too many."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from typing_extensions import override

from hakiri_dagster.manifest.validator_spec import RowCountValidator
from hakiri_dagster.quality.measures import Answers, Measure, Rows
from hakiri_dagster.quality.validators.contract import Kind, Verdict
from hakiri_dagster.quality.validators.numbers import bounds_shown, whole, within


class RowCount(Kind[RowCountValidator]):
    @override
    def asks(self, validator: RowCountValidator) -> Sequence[Measure]:
        return (Rows(),)

    @override
    def verdict(self, validator: RowCountValidator, answers: Answers, now: datetime) -> Verdict:
        rows = whole(answers[Rows()])
        return Verdict(within(rows, validator.min, validator.max), f"{rows:,} row(s)", {"rows": rows})

    @override
    def shown(self, validator: RowCountValidator) -> str:
        return f"{bounds_shown(validator.min, validator.max)} row(s)"
