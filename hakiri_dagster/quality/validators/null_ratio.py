"""null_ratio: not too many rows lack a value."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from typing_extensions import override

from hakiri_dagster.manifest.validator_spec import NullRatioValidator
from hakiri_dagster.quality.measures import Answers, Measure, Nulls, Rows
from hakiri_dagster.quality.validators.contract import Kind, Verdict
from hakiri_dagster.quality.validators.numbers import whole


class NullRatio(Kind[NullRatioValidator]):
    @override
    def asks(self, validator: NullRatioValidator) -> Sequence[Measure]:
        return Rows(), Nulls(validator.column)

    @override
    def verdict(self, validator: NullRatioValidator, answers: Answers, now: datetime) -> Verdict:
        rows, nulls = whole(answers[Rows()]), whole(answers[Nulls(validator.column)])
        ratio = nulls / rows if rows else 0.0
        observed = f"{nulls:,} of {rows:,} row(s) have no {validator.column} ({ratio:.4g})"
        return Verdict(nulls <= validator.max * rows, observed, {"nulls": nulls, "rows": rows, "ratio": ratio})

    @override
    def shown(self, validator: NullRatioValidator) -> str:
        return f"at most {validator.max:g} of the rows have no {validator.column}"
