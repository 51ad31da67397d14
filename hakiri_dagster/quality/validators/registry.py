"""The kinds of validators, and what all of a table's ask together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hakiri_dagster.manifest import validator_spec as spec
from hakiri_dagster.manifest.spelling import or_rather
from hakiri_dagster.manifest.validator_spec import DatasetValidator, columns_of, id_of, scope_of
from hakiri_dagster.quality.distinct import MOST_EXACT
from hakiri_dagster.quality.measures import (
    AboutLoad,
    Answers,
    Checksums,
    Digest,
    Distinct,
    InPassing,
    Measure,
    Unanswered,
)
from hakiri_dagster.quality.validators.accepted_values import AcceptedValues
from hakiri_dagster.quality.validators.cardinality import Cardinality
from hakiri_dagster.quality.validators.contract import Kind, Kinds, Verdict
from hakiri_dagster.quality.validators.duplicate_key import DuplicateKey
from hakiri_dagster.quality.validators.fk_integrity import FkIntegrity
from hakiri_dagster.quality.validators.freshness import Freshness
from hakiri_dagster.quality.validators.matches_source import MatchesSource
from hakiri_dagster.quality.validators.null_ratio import NullRatio
from hakiri_dagster.quality.validators.row_count import RowCount
from hakiri_dagster.quality.validators.schema_matches import SchemaMatches
from hakiri_dagster.quality.validators.select import Select
from hakiri_dagster.quality.validators.value_range import ValueRange

_KINDS: Mapping[type[spec.Validator], Kind[Any]] = {
    spec.RowCountValidator: RowCount(),
    spec.FreshnessValidator: Freshness(),
    spec.FkIntegrityValidator: FkIntegrity(),
    spec.CardinalityValidator: Cardinality(),
    spec.DuplicateKeyValidator: DuplicateKey(),
    spec.NullRatioValidator: NullRatio(),
    spec.AcceptedValuesValidator: AcceptedValues(),
    spec.RangeValidator: ValueRange(),
    spec.SchemaMatchesValidator: SchemaMatches(),
    spec.RowCountMatchesSourceValidator: MatchesSource(),
    spec.SqlValidator: Select(),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the validators of a table ask: of the rows of a load, in passing and in the destination, and of the table
    that the load leaves."""

    in_passing: tuple[InPassing, ...] = ()
    of_candidate: tuple[Measure, ...] = ()
    of_table: tuple[Measure, ...] = ()

    @classmethod
    def by(cls, validators: Sequence[DatasetValidator], *, portable: bool = True) -> Asked:
        """`portable`: checksums are compared with those of another engine."""
        once = dict.fromkeys(
            (scope_of(one), digest_of(measure, portable=portable) if isinstance(measure, Checksums) else measure)
            for one in validators
            for measure in asks(one)
        )
        rest = [(scope, measure) for scope, measure in once if not isinstance(measure, AboutLoad)]
        return cls(
            tuple(
                one for scope, one in rest if scope == "candidate" and isinstance(one, InPassing) and _in_passing(one)
            ),
            tuple(one for scope, one in rest if scope == "candidate" and not _in_passing(one)),
            tuple(measure for scope, measure in rest if scope == "table"),
        )


def _in_passing(measure: Measure) -> bool:
    """Of more distinct values than the workers count one by one, the destination knows how many there are."""
    return isinstance(measure, InPassing) and not (isinstance(measure, Distinct) and measure.exact > MOST_EXACT)


def digest_of(measure: Checksums, *, portable: bool) -> Digest:
    """The destination's half."""
    return Digest(measure.columns, portable)


def asks(validator: DatasetValidator) -> Sequence[Measure]:
    return _KINDS[type(validator)].asks(validator)


def questions(validators: Sequence[DatasetValidator]) -> tuple[Measure, ...]:
    return tuple(dict.fromkeys(measure for validator in validators for measure in asks(validator)))


def verdict(validator: DatasetValidator, answers: Answers, now: datetime) -> Verdict:
    """One whose question has no answer does not pass."""
    for measure in asks(validator):
        answer = answers[measure]
        if isinstance(answer, Unanswered):
            return Verdict(False, answer.reason)
    return _KINDS[type(validator)].verdict(validator, answers, now)


def shown(validator: DatasetValidator) -> str:
    return _KINDS[type(validator)].shown(validator)


def objections(validators: Sequence[DatasetValidator], kinds: Kinds) -> Iterator[str]:
    """Why validators cannot be asked of columns of these kinds."""
    for validator in validators:
        absent = [column for column in columns_of(validator) if column not in kinds]
        for column in absent:
            told = f"validator {id_of(validator)} is about {column}, which the source does not have"
            yield f"{told}{or_rather(column, kinds)}"
        if not absent:
            for wrong in _KINDS[type(validator)].misfits(validator, kinds):
                yield f"validator {id_of(validator)}: {wrong}"
