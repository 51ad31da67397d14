"""cardinality: a column has neither too few distinct values nor too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow.types as at
from typing_extensions import override

from hakiri_dagster.manifest.validator_spec import CardinalityValidator
from hakiri_dagster.planning.arrow_types import type_told
from hakiri_dagster.quality.measures import Answers, Distinct, Measure
from hakiri_dagster.quality.validators.contract import Kind, Kinds, Verdict
from hakiri_dagster.quality.validators.numbers import bounds_shown, whole, within


class Cardinality(Kind[CardinalityValidator]):
    @override
    def asks(self, validator: CardinalityValidator) -> Sequence[Measure]:
        return (_distinct(validator),)

    @override
    def verdict(self, validator: CardinalityValidator, answers: Answers, now: datetime) -> Verdict:
        count = whole(answers[_distinct(validator)])
        passed = within(count, validator.min_distinct, validator.max_distinct)
        return Verdict(passed, f"{count:,} distinct value(s) in {validator.column}", {"distinct": count})

    @override
    def shown(self, validator: CardinalityValidator) -> str:
        return f"{bounds_shown(validator.min_distinct, validator.max_distinct)} distinct value(s) in {validator.column}"

    @override
    def misfits(self, validator: CardinalityValidator, kinds: Kinds) -> Iterator[str]:
        kind = kinds[validator.column]
        if at.is_nested(kind) or at.is_null(kind):
            yield f"{validator.column} is {type_told(kind)}, whose values are not told apart"


def _distinct(validator: CardinalityValidator) -> Distinct:
    """Exact as far as the verdict depends on it."""
    return Distinct(validator.column, exact=max(validator.min_distinct or 0, validator.max_distinct or 0))
