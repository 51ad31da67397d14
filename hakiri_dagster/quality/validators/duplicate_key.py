"""duplicate_key: no two rows share a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow.types as at
from typing_extensions import override

from hakiri_dagster.manifest.validator_spec import DuplicateKeyValidator
from hakiri_dagster.planning.arrow_types import type_told
from hakiri_dagster.quality.measures import Answers, Duplicates, Measure, Rows
from hakiri_dagster.quality.validators.contract import Kind, Kinds, Verdict
from hakiri_dagster.quality.validators.violations import of_violations


class DuplicateKey(Kind[DuplicateKeyValidator]):
    @override
    def asks(self, validator: DuplicateKeyValidator) -> Sequence[Measure]:
        return Rows(), Duplicates(validator.columns)

    @override
    def verdict(self, validator: DuplicateKeyValidator, answers: Answers, now: datetime) -> Verdict:
        found = answers[Duplicates(validator.columns)]
        return of_violations(answers[Rows()], found, f"share ({', '.join(validator.columns)}) with others")

    @override
    def shown(self, validator: DuplicateKeyValidator) -> str:
        return f"no two rows share ({', '.join(validator.columns)})"

    @override
    def misfits(self, validator: DuplicateKeyValidator, kinds: Kinds) -> Iterator[str]:
        for column in validator.columns:
            if at.is_nested(kinds[column]):
                yield f"{column} is {type_told(kinds[column])}, whose values are not told apart"
