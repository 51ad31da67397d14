"""fk_integrity: what a column refers to is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow.types as at
from typing_extensions import override

from hakiri_dagster.manifest.validator_spec import FkIntegrityValidator
from hakiri_dagster.planning.arrow_types import type_told
from hakiri_dagster.quality.measures import Answers, Measure, Orphans, Rows
from hakiri_dagster.quality.validators.contract import Kind, Kinds, Verdict
from hakiri_dagster.quality.validators.violations import of_violations


class FkIntegrity(Kind[FkIntegrityValidator]):
    @override
    def asks(self, validator: FkIntegrityValidator) -> Sequence[Measure]:
        return Rows(), _orphans(validator)

    @override
    def verdict(self, validator: FkIntegrityValidator, answers: Answers, now: datetime) -> Verdict:
        return of_violations(
            answers[Rows()], answers[_orphans(validator)], f"refer to what {validator.ref_table} does not hold"
        )

    @override
    def shown(self, validator: FkIntegrityValidator) -> str:
        return f"every {validator.column} is in {validator.ref_table}.{validator.ref_column}"

    @override
    def misfits(self, validator: FkIntegrityValidator, kinds: Kinds) -> Iterator[str]:
        if at.is_nested(kinds[validator.column]):
            yield f"{validator.column} is {type_told(kinds[validator.column])}, which refers to nothing"


def _orphans(validator: FkIntegrityValidator) -> Orphans:
    schema, _, name = validator.ref_table.rpartition(".")
    return Orphans(validator.column, schema or None, name, validator.ref_column)
