"""A validator of a manifest, judged with answers at hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from hakiri_dagster.manifest.validator_spec import DatasetLevelSpec, DatasetValidator
from hakiri_dagster.quality.measures import Answer, Measure
from hakiri_dagster.quality.validators import registry
from hakiri_dagster.quality.validators.contract import Verdict

NOON = datetime(2024, 1, 2, 12, tzinfo=UTC)


def declared(kind: str, **settings: Any) -> DatasetValidator:
    (validator,) = DatasetLevelSpec.model_validate({kind: settings}).validators
    return validator


def judged(validator: DatasetValidator, answers: dict[Measure, Answer]) -> Verdict:
    return registry.verdict(validator, answers, NOON)


def misfits(validator: DatasetValidator, **kinds: pa.DataType) -> list[str]:
    return list(registry.objections([validator], kinds))


def passes(validator: DatasetValidator, *cases: dict[Measure, Answer]) -> Iterator[bool]:
    return (judged(validator, answers).passed for answers in cases)
