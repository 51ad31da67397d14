"""accepted_values: a column holds no value but those that are named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow.types as at
from typing_extensions import override

from hakiri_dagster.manifest.validator_spec import AcceptedValuesValidator
from hakiri_dagster.planning.arrow_types import type_told
from hakiri_dagster.quality.comparable import readable_among
from hakiri_dagster.quality.measures import Answers, Measure, Rows, Strangers
from hakiri_dagster.quality.validators.contract import Kind, Kinds, Verdict
from hakiri_dagster.quality.validators.violations import of_violations

_MOST_SHOWN = 10


class AcceptedValues(Kind[AcceptedValuesValidator]):
    @override
    def asks(self, validator: AcceptedValuesValidator) -> Sequence[Measure]:
        return Rows(), Strangers(validator.column, validator.values)

    @override
    def verdict(self, validator: AcceptedValuesValidator, answers: Answers, now: datetime) -> Verdict:
        found = answers[Strangers(validator.column, validator.values)]
        return of_violations(answers[Rows()], found, f"hold another {validator.column}")

    @override
    def shown(self, validator: AcceptedValuesValidator) -> str:
        told = ", ".join(map(str, validator.values[:_MOST_SHOWN]))
        return f"{validator.column} is one of {told}{', …' if len(validator.values) > _MOST_SHOWN else ''}"

    @override
    def misfits(self, validator: AcceptedValuesValidator, kinds: Kinds) -> Iterator[str]:
        kind = kinds[validator.column]
        if at.is_nested(kind) or at.is_binary(kind) or not readable_among(validator.values, kind):
            yield f"{validator.column} is {type_told(kind)}, which not all of the values are"
